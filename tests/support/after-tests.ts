/**
 * What has to be put away after each test, or after each file of tests. Modules of this folder are loaded once for all files
 * of a worker, where a hook of Vitest's own would be one of the first file only; `clean-up.ts` has the hooks.
 */
type CleanUp = () => Promise<void> | void;

const afterTest: CleanUp[] = [];
const afterFile: CleanUp[] = [];

/** The last one registered runs first, as Vitest's own do. */
export function afterEveryTest(cleanUp: CleanUp): void {
  afterTest.unshift(cleanUp);
}

export function afterEveryFile(cleanUp: CleanUp): void {
  afterFile.unshift(cleanUp);
}

export async function cleanUpAfterTest(): Promise<void> {
  for (const cleanUp of afterTest) await cleanUp();
}

export async function cleanUpAfterFile(): Promise<void> {
  for (const cleanUp of afterFile) await cleanUp();
}
