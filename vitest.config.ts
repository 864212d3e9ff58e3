import { createHash, randomInt } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Folders whose tests start real processes and wait for them. Everything else is a unit test. */
const END_TO_END = [
  "tests/scenarios",
  "tests/dispatch",
  "tests/ledger",
  "tests/cli",
  "tests/demo",
  "tests/docs",
].map((folder) => `${folder}/**/*.test.ts`);
const LAYERS = "tests/verify/**/*.test.ts";
/** For what they cost, or for the tools of other ecosystems that they need. */
const LEFT_TO_VERIFY = readJson("tests/verify/left-to-verify.json") as string[];

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(new URL(file, import.meta.url), "utf8"));
}

/**
 * What a test may see of the machine it runs on. Anything else could change a result: a GIT_DIR when a hook
 * runs the tests, an agent harness's variables, a person's Git configuration. TEST_* is for the tests' own
 * settings, e.g. a seed. NODE_EXTRA_CA_CERTS, absent here, costs every child 38 ms.
 */
const KEPT =
  /^(PATH|TMPDIR|TEMP|TMP|CI|TERM|VITEST.*|TEST(_.*)?|COTENANT_(PROPERTY|SIM)_.*|NODE_ENV|SystemRoot|ComSpec|PATHEXT)$/i;

/** A place for whatever tests make, gone with this process. As /tmp, for some tests go on as another user. */
function makeRoom(parent: string): string {
  const room = mkdtempSync(join(parent, "cotenant-test-"));
  chmodSync(room, 0o1777);
  process.on("exit", () => rmSync(room, { recursive: true, force: true }));
  return room;
}

/** Where files cost no disk, if there is plenty of it; whoever starts Vitest may have a place there that is cleared. */
function memory(): string {
  const given = process.env["TEST_MEMORY_IN"];
  if (given !== undefined) return given;
  try {
    const { bavail, bsize } = statfsSync("/dev/shm");
    return bavail * bsize > 4 * 2 ** 30 ? "/dev/shm" : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** One for the whole run: `tests/support/sample.ts` tries a part of what there is, and this says which. */
function chooseSample(): void {
  if (process.env["TEST_WHOLE"] !== undefined) return;
  process.env["TEST_SAMPLE_SEED"] ??= String(randomInt(1_000_000));
  process.stderr.write(`samples: TEST_SAMPLE_SEED=${process.env["TEST_SAMPLE_SEED"]}\n`);
}

function makeHermetic(room: string, inMemory: string) {
  mkdirSync(join(room, "home"));
  // Newer Gits tidy up in the background, under the eyes of tests that look at every file.
  const gitConfig = "[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
  writeFileSync(join(room, "gitconfig"), gitConfig);
  for (const name of Object.keys(process.env)) if (!KEPT.test(name)) delete process.env[name];
  Object.assign(process.env, {
    HOME: join(room, "home"),
    USERPROFILE: join(room, "home"),
    TMPDIR: room,
    TEST_MEMORY: inMemory,
    LC_ALL: "C.UTF-8",
    TZ: "UTC",
    GIT_CONFIG_GLOBAL: join(room, "gitconfig"),
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_AUTHOR_NAME: "Test Author",
    GIT_AUTHOR_EMAIL: "author@example.invalid",
    GIT_COMMITTER_NAME: "Test Committer",
    GIT_COMMITTER_EMAIL: "committer@example.invalid",
  });
}

// Here and not in a setup file, because workers copy this process's environment when they start. Vitest reads this once for each
// project.
if (process.env["TEST_MEMORY"] === undefined) {
  makeHermetic(makeRoom(tmpdir()), makeRoom(memory()));
  chooseSample();
}
const IN_MEMORY = process.env["TEST_MEMORY"]!;

/**
 * Vitest starts with the largest files. Those of tests/verify are small and take longest, for the work is in their
 * layers: started last, one of them would run on alone.
 */
class LayersFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    if (process.env["TEST_WHOLE"] !== undefined) return sorted.sort((one, other) => rank(one) - rank(other));
    const isLayer = ({ moduleId }: TestSpecification) => moduleId.includes("/tests/verify/");
    return [...sorted.filter(isLayer), ...sorted.filter((file) => !isLayer(file))];
  }
}

/** Another order for each seed: whoever tries all has seldom the time for all. */
function rank({ moduleId }: TestSpecification): number {
  return createHash("sha256")
    .update(`${process.env["TEST_SAMPLE_SEED"]} ${moduleId}`)
    .digest()
    .readUInt32BE();
}

const { version } = readJson("package.json") as { version: string };

export default defineConfig({
  // __COTENANT_BUNDLED__ exists only in the bundles: its absence is how the code knows that it runs from src.
  define: { __COTENANT_VERSION__: JSON.stringify(version) },
  test: {
    // Processes, not threads: the native lock, signals and working directories belong to a process.
    pool: "forks",
    // Twice the two cores that this is made for: much of a test is waiting, for a process, a disk or a lease's end.
    maxWorkers: 4,
    sequence: { sequencer: LayersFirst },
    setupFiles: "tests/support/clean-up.ts",
    // A sample may have none of a `describe`.
    passWithNoTests: true,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["tests/**/*.test.ts"],
          exclude: [...END_TO_END, LAYERS, ...LEFT_TO_VERIFY],
          isolate: false,
          // Who hangs is found all the same; who is slow on a busy machine is right.
          testTimeout: 180_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: END_TO_END,
          exclude: LEFT_TO_VERIFY,
          // Their repositories are many and live for a second: in memory they cost a third less of the kernel's time. Tests
          // of the store and of the platform stay on the disk, and the layers choose for themselves.
          env: { TMPDIR: IN_MEMORY },
          globalSetup: "tests/support/bundle-program.ts",
          // Vitest and the helpers are loaded once for many files.
          isolate: false,
          testTimeout: 180_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "layers",
          include: [LAYERS],
          exclude: LEFT_TO_VERIFY,
          env: { TMPDIR: IN_MEMORY },
          testTimeout: 180_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "left to verify",
          include: LEFT_TO_VERIFY,
          env: { TMPDIR: IN_MEMORY },
          globalSetup: "tests/support/bundle-program.ts",
          testTimeout: 180_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
