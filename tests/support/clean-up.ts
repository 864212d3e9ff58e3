import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach } from "vitest";
import { cleanUpAfterFile, cleanUpAfterTest } from "./after-tests";

// Vitest runs a setup file anew for every file of tests. Each has a home of its own: the guard remembers there where a session
// has worked, and sessions of other files have the same names.
process.env["TEST_HOMES"] ??= process.env["HOME"]!;
process.env["HOME"] = process.env["USERPROFILE"] = mkdtempSync(join(process.env["TEST_HOMES"], "home-"));

afterEach(cleanUpAfterTest);
afterAll(cleanUpAfterFile);
