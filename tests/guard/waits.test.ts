import { beforeEach, describe, expect, it } from "vitest";
import { HARNESSES } from "../../src/features/guard/harness";
import { runHook } from "../../src/features/guard/run";
import type { BegunWait } from "../../src/features/guard/world";
import { HARNESS_NAMES, type HarnessName } from "../../src/identity/harness";
import { GuardedAgent, TestClock, toldIn } from "../support/guard";
import { TestRepo } from "../support/repo";

let repo: TestRepo;
let clock: TestClock;
let holder: GuardedAgent;
beforeEach(async () => {
  repo = TestRepo.make();
  for (const name of ["a.txt", "b.txt"]) repo.write(name, "one\n");
  repo.write(".cotenant/config.toml", "# nothing\n");
  repo.git("add", "a.txt", "b.txt");
  repo.git("commit", "--quiet", "--message", "first");
  clock = new TestClock();
  holder = new GuardedAgent(repo, { session: "aaaaaaaa-1", clock });
  await holder.write("a.txt");
  clock.onPause = async (aheadMs) => {
    if (aheadMs > 40_000) await holder.send("end");
  };
});

const waiting = (more = {}) =>
  new GuardedAgent(repo, { session: "bbbbbbbb-2", clock, patienceSecs: 195, ...more });

/** A write of a.txt in the words of each harness. */
const WRITES: Readonly<Record<HarnessName, (file: string) => object>> = {
  claude: (file_path) => ({ session_id: "s", tool_name: "Write", tool_input: { file_path } }),
  codex: (file) => ({
    session_id: "s",
    tool_name: "apply_patch",
    tool_input: { command: `*** Begin Patch\n*** Update File: ${file}\n*** End Patch` },
  }),
  cursor: (file_path) => ({
    conversation_id: "s",
    generation_id: "g",
    tool_name: "Write",
    tool_input: { file_path },
  }),
  gemini: (file_path) => ({ session_id: "s", tool_name: "write_file", tool_input: { file_path } }),
  copilot: (path) => ({ sessionId: "s", toolName: "create", toolArgs: { path } }),
  opencode: (filePath) => ({ sessionID: "s", tool: "write", args: { filePath }, showsWaits: true }),
  qwen: (file_path) => ({ session_id: "s", tool_name: "write_file", tool_input: { file_path } }),
  pi: (path) => ({ sessionID: "s", tool: "write", args: { path }, showsWaits: true }),
};

const TOLD: Readonly<Record<HarnessName, ((words: string) => object) | null>> = {
  claude: (additionalContext) => ({
    hookSpecificOutput: { hookEventName: "PreToolUse", additionalContext },
  }),
  codex: (additionalContext) => ({
    hookSpecificOutput: { hookEventName: "PreToolUse", additionalContext },
  }),
  cursor: (additional_context) => ({ additional_context }),
  copilot: (additionalContext) => ({ additionalContext }),
  // These take no words with a yes.
  gemini: null,
  opencode: null,
  qwen: null,
  pi: null,
};

describe("after a wait", () => {
  it.each(HARNESS_NAMES)("an agent of %s hears what it was for, if it can be told", async (harness) => {
    const waits: BegunWait[] = [];
    const world = { ...waiting({ harness }).world, onWait: (wait: BegunWait) => waits.push(wait) };
    const event = HARNESSES[harness].events.find(({ moment }) => moment === "before")!.name;
    const document = { cwd: repo.root, directory: repo.root, ...WRITES[harness](`${repo.root}/a.txt`) };
    const call = { harness, event, patienceMs: 195_000 };
    const { stdout, stderr, allowed } = await runHook(world, call, { text: JSON.stringify(document) });
    expect([allowed, stderr]).toEqual([true, ""]);
    const words = `cotenant: waited 180 s for a.txt, which ${holder.agentId} held; it is yours now.`;
    const told = TOLD[harness];
    expect(stdout).toBe(told === null ? "" : `${JSON.stringify(told(words))}\n`);
    // Our own plugins show people a wait when it begins.
    expect(waits).toEqual(
      harness !== "opencode" && harness !== "pi"
        ? []
        : [
            {
              message: `cotenant: a.txt is held by ${holder.agentId}; the agent waits`,
              until: expect.stringMatching(/^\d{4}-.*Z$/),
              waitMs: expect.closeTo(180_000, -4),
            },
          ],
    );
  });

  it("that was not in this hook nothing is said", async () => {
    const impatient = waiting({ patienceSecs: 10 });
    await impatient.write("a.txt");
    await holder.send("end");
    clock.aheadMs = 181_000;
    expect(toldIn(await impatient.write("a.txt"))).toBe("");
  });

  it("a command that goes over what was held hears that it is free", async () => {
    repo.write("d/x.txt", "x\n");
    repo.git("add", "d/x.txt");
    await holder.write("d/x.txt");
    expect(toldIn(await waiting().shell("rm -r d"))).toContain("which agent:claude-aaaaaaaa held; ");
  });
});
