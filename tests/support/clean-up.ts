import { mkdtempSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach } from "vitest";
import { cleanUpAfterFile, cleanUpAfterTest } from "./after-tests";

// Vitest runs a setup file anew for every file of tests. Each has a home of its own: the guard remembers there where a session
// has worked, and sessions of other files have the same names. Its name is short, because the daemon's socket is in it.
process.env["TEST_HOMES"] ??= dirname(process.env["HOME"]!);
process.env["HOME"] = process.env["USERPROFILE"] = mkdtempSync(join(process.env["TEST_HOMES"], "h"));

afterEach(cleanUpAfterTest);
afterAll(cleanUpAfterFile);
