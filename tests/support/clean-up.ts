import { afterAll, afterEach } from "vitest";
import { cleanUpAfterFile, cleanUpAfterTest } from "./after-tests";

// Vitest runs a setup file anew for every file of tests.
afterEach(cleanUpAfterTest);
afterAll(cleanUpAfterFile);
