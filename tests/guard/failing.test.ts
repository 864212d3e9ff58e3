import * as fs from "node:fs";
import { createRequire } from "node:module";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { inspectConfig } from "../../src/config/load";
import { configTemplate } from "../../src/config/template";
import { nothingToSay } from "../../src/features/guard/answers";
import { HARNESSES } from "../../src/features/guard/harness";
import type { HookInput } from "../../src/features/guard/report";
import { runHook } from "../../src/features/guard/run";
import { DEFAULT_SETTINGS, guardSettings } from "../../src/features/guard/settings";
import { HARNESS_NAMES } from "../../src/identity/harness";
import { findRepository } from "../../src/identity/repository";
import type { Git } from "../../src/platform/git";
import { nodeGit } from "../../src/platform/git-node";
import { Prng } from "../../testing/simulator/prng";
import { GuardedAgent, reasonOf, SILENT } from "../support/guard";
import { TestRepo } from "../support/repo";

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  repo.write("a.txt");
  repo.write("b.txt");
  repo.write(".cotenant/config.toml", "# nothing\n");
});

const ada = (env = {}) => new GuardedAgent(repo, { session: "aaaaaaaa-1", env });
const bob = (env = {}) => new GuardedAgent(repo, { session: "bbbbbbbb-2", env, mayFail: true });
const failures = () =>
  fs
    .readFileSync(path.join(repo.control, "guard/failures.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { why: string; answer: string });

/** Damage below what was acknowledged: writers stop, readers answer. */
function damageLog(): void {
  const lines = fs.readFileSync(repo.logFile, "utf8").split("\n");
  lines[1] = lines[1]!.replace("a.txt", "A.txt");
  fs.writeFileSync(repo.logFile, lines.join("\n"));
}

describe("a store that is broken", () => {
  beforeEach(async () => {
    await ada().write("a.txt");
    await ada().write("b.txt");
    damageLog();
  });

  it("closed_if_held: refuses what is known to be held, lets the rest through, and puts it down", async () => {
    expect(reasonOf(await bob().write("b.txt"))).toContain(`b.txt is held by ${ada().agentId}`);
    expect(await bob().write("c.txt")).toEqual(SILENT);
    expect(reasonOf(await bob().shell("echo x > b.txt"))).toContain(`b.txt is held by ${ada().agentId}`);
    expect(await bob().shell("echo x > c.txt")).toEqual(SILENT);
    const answers = ["refused", "allowed", "refused", "allowed"];
    expect(failures().map(({ answer }) => answer)).toEqual(answers);
    expect(failures()[0]!.why).toContain("E_LOG_CORRUPT");
  });

  it("open: lets everything through", async () => {
    expect(await bob({ COTENANT_GUARD_ON_FAILURE: "open" }).write("b.txt")).toEqual(SILENT);
  });

  it("closed: refuses everything", async () => {
    expect(reasonOf(await bob({ COTENANT_GUARD_ON_FAILURE: "closed" }).write("c.txt"))).toContain(
      "cannot decide",
    );
  });

  it("harms no other event", async () => {
    for (const moment of ["after", "prompt", "stop", "done", "end", "failure"] as const)
      expect(await bob().send(moment, { tool_name: "Bash", tool_input: { command: "ls" } })).toEqual(SILENT);
  });
});

describe("a Git that does not say what has changed", () => {
  const real = nodeGit();
  const failing: Git = {
    run: (args, options) =>
      args[0] === "status"
        ? { status: 128, stdout: new Uint8Array(), stderr: "fatal: index file corrupt\n" }
        : real.run(args, options),
  };
  const eve = (git?: Git) =>
    new GuardedAgent(repo, { session: "eeeeeeee-5", ...(git === undefined ? {} : { git }) });
  beforeEach(async () => {
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "first");
    expect((await repo.ask("agent:carol", "lock", "acquire", "--dir", "src")).status).toBe(0);
    await eve().write("a.txt");
    repo.write("a.txt", "two\n");
    repo.git("commit", "--quiet", "--allow-empty", "--message", "another");
  });
  const held = async () => (await repo.ask("human:h", "guard", "status")).data.leases.map(({ key }) => key);

  it("passes nothing for committed: the lease stays", async () => {
    await eve(failing).send("prompt");
    expect(await held()).toEqual(["file:a.txt"]);
    await eve().send("prompt");
    expect(await held(), "a.txt differs from HEAD").toEqual(["file:a.txt"]);
    expect(failures()).toHaveLength(1);
  });

  it("keeps no session from giving back what it holds when it ends", async () => {
    await eve().shell("node build.js");
    await eve(failing).send("end");
    expect(await held()).toEqual([]);
    for (const { why } of failures()) expect(why).toContain("index file corrupt");
  });
});

describe("a store that is busy", () => {
  it("is not waited for beyond the deadline", async () => {
    await ada().write("a.txt");
    const { tryLock } = createRequire(import.meta.url)("fs-native-extensions") as {
      tryLock(fd: number): boolean;
    };
    const fd = fs.openSync(path.join(repo.control, "locks/claims.lock"), "r+");
    expect(tryLock(fd)).toBe(true);
    try {
      const env = { COTENANT_GUARD_DEADLINE_SECS: "1" };
      expect(await bob(env).write("b.txt")).toEqual(SILENT);
      expect(reasonOf(await bob(env).write("a.txt"))).toContain(`a.txt is held by ${ada().agentId}`);
      expect(failures()).toHaveLength(2);
    } finally {
      fs.closeSync(fd);
    }
  });
});

describe("configuration", () => {
  it("that says nothing is not read through the schema, and means the same", async () => {
    const { world } = ada();
    const repository = await findRepository(world.platform, repo.root, {}, world.git);
    for (const text of ["", "# x\n", "[guard]\n# retry_secs = 1\n", configTemplate()]) {
      repo.write(".cotenant/config.toml", text);
      expect(await guardSettings(world, repository), text).toBe(DEFAULT_SETTINGS);
    }
    for (const text of [
      "[guard]\nretry_secs = 180\n",
      "[guard]retry_secs = 1",
      "guard.retry_secs = 180\n",
      " [[x]]\n",
    ]) {
      repo.write(".cotenant/config.toml", text);
      expect(await guardSettings(world, repository), text).not.toBe(DEFAULT_SETTINGS);
    }
    repo.write(".cotenant/config.toml", "");
    const { config } = await inspectConfig({ ...world, worktreeRoot: repo.root });
    const { policy, broken, ...rest } = DEFAULT_SETTINGS;
    expect(broken).toBeNull();
    expect(policy).toEqual(config.policy);
    expect(rest).toEqual({
      pathRules: config.values["policy.paths"],
      busyTimeoutMs: config.values["store.busy_timeout_secs"] * 1000,
      rotateBytes: config.values["store.rotate_bytes"],
      retrySecs: config.values["guard.retry_secs"],
      retry: config.values["guard.retry"],
      acrossWorktrees: config.values["guard.across_worktrees"],
      stayInWorktree: config.values["guard.stay_in_worktree"],
      makesWorktrees: config.values["worktree.mode"] !== "off",
      worktreeDirectory: config.values["worktree.directory"],
      onFailure: config.values["guard.on_failure"],
      deadlineMs: config.values["guard.deadline_secs"] * 1000,
    });
  });

  it("that cannot be read, or has mistakes, keeps nobody from working", async () => {
    for (const text of ["[guard]\nretry_sec = 3\n", "[guard]\nretry_secs = 7\n"]) {
      repo.write(".cotenant/config.toml", text);
      expect(await ada().write("a.txt")).toEqual(SILENT);
    }
    reasonOf(await bob().write("a.txt"));
    expect(repo.logText()).toContain('"retry_interval_secs":7');
  });

  it("that breaks leaves what it last said in force: told once, and on record", async () => {
    const { world } = ada();
    const repository = await findRepository(world.platform, repo.root, {}, world.git);
    expect(await ada().write("a.txt")).toEqual(SILENT);
    repo.write(".cotenant/config.toml", '[guard]\non_failure = "closed"\nacross_worktrees = "enforce"\n');
    expect(await ada().write("b.txt")).toEqual(SILENT);
    for (const [i, text] of ["[guard\n", "[guard]\non_failure = 'closed'\nno_such_key = 1\n"].entries()) {
      repo.write(".cotenant/config.toml", text);
      const { onFailure, acrossWorktrees } = await guardSettings(world, repository);
      expect([onFailure, acrossWorktrees], text).toEqual(["closed", "enforce"]);
      expect(JSON.stringify(await ada().write(`new-${i}.txt`)), text).toContain("what it last said holds");
      expect(await ada().write(`again-${i}.txt`), text).toEqual(SILENT);
    }
    const recorded = repo.log().filter(({ event_type }) => event_type === "policy.unreadable");
    expect(recorded).toHaveLength(2);
    // Emptied by somebody who may: then nothing is left of it.
    repo.write(".cotenant/config.toml", "");
    expect(await guardSettings(world, repository)).toMatchObject({ onFailure: "closed_if_held" });
    expect(await guardSettings(world, repository)).toBe(DEFAULT_SETTINGS);
  });

  it("that is a link to a device that never ends breaks like any other", async () => {
    const { world } = ada();
    await ada().write("first.txt");
    repo.write(".cotenant/config.toml", '[guard]\non_failure = "closed"\n');
    const repository = await findRepository(world.platform, repo.root, {}, world.git);
    expect((await guardSettings(world, repository)).onFailure).toBe("closed");
    fs.rmSync(path.join(repo.root, ".cotenant/config.toml"));
    fs.symlinkSync("/dev/zero", path.join(repo.root, ".cotenant/config.toml"));
    await ada().write("a.txt");
    await ada().write("b.txt");
    expect((await guardSettings(world, repository)).broken?.standIn.problems[0]?.message).toContain("device");
  });
});

describe("input that is none", () => {
  const answered = (harness: (typeof HARNESS_NAMES)[number], input: HookInput, env = {}) => {
    const { name: event } = HARNESSES[harness].events.find(({ moment }) => moment === "before")!;
    const world = { ...ada(env).world };
    return runHook(world, { harness, event, patienceMs: 5_000 }, input);
  };

  it.each(["", "{", '{"hook_event_name":"PreToolUse","tool_in', "nul", "\0\0", "[1,2", "\ufeff{}"])(
    "%j",
    async (text) => {
      for (const harness of HARNESS_NAMES)
        expect(await answered(harness, { text })).toEqual({ ...SILENT, ...nothingToSay(harness) });
    },
  );

  it("is refused where failures are closed, in the harness's own form", async () => {
    const env = { COTENANT_GUARD_ON_FAILURE: "closed" };
    expect(reasonOf(await answered("claude", { text: "{" }, env))).toContain("cannot be read");
    expect((await answered("opencode", { text: "{" }, env)).status).toBe(2);
    expect(reasonOf(await answered("claude", { text: null, why: "too much" }, env))).toContain("too much");
  });

  it("of great size is no trouble", async () => {
    const content = "x".repeat(8 << 20);
    const text = JSON.stringify({
      hook_event_name: "PreToolUse",
      session_id: "s",
      cwd: repo.root,
      tool_name: "Write",
      tool_input: { file_path: path.join(repo.root, "a.txt"), content },
    });
    expect(await answered("claude", { text })).toEqual(SILENT);
    expect(repo.logText()).toContain("file:a.txt");
  });

  it("of great depth, or with ten thousand files, is none either", async () => {
    const deep = `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`;
    const text = `{"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":${deep}}`;
    expect(await answered("claude", { text })).toEqual(SILENT);
    const patch = ["*** Begin Patch", ...Array.from({ length: 1_001 }, (_, i) => `*** Add File: f${i}`)].join(
      "\n",
    );
    const many = { hook_event_name: "PreToolUse", session_id: "s", cwd: repo.root, tool_name: "apply_patch" };
    // More than one operation takes: as any failure.
    expect(
      await answered("codex", { text: JSON.stringify({ ...many, tool_input: { command: patch } }) }),
    ).toEqual(SILENT);
    expect(failures().at(-1)!.why).toContain("E_LIMIT");
  });

  it("made at random never breaks it, nor is it ever answered by something else than silence or a refusal", async () => {
    const seed = Number(process.env["TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
    const chance = new Prng(seed, "hook input");
    const corpus = HARNESS_NAMES.flatMap((harness) =>
      fs
        .readFileSync(
          path.join(import.meta.dirname, `../../testing/corpora/harness-events/${harness}.jsonl`),
          "utf8",
        )
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => ({
          harness,
          text: JSON.stringify((JSON.parse(line) as { payload: unknown }).payload),
        })),
    );
    for (let i = 0; i < 150; i++) {
      const { harness, text } = chance.pick(corpus);
      const whole = text.replaceAll("<root>", repo.root).replaceAll("<session>", "5e551011");
      const mutated = mutate(whole, chance);
      const answer = await answered(harness, { text: mutated });
      // Our own plugins pass words on as they are; everybody else wants JSON.
      const isFine = HARNESSES[harness].answers === "exit-2" ? isPlain(answer.stdout) : isJson(answer.stdout);
      expect(
        answer.status === 2 || answer.stdout === "" || isFine,
        `TEST_SEED=${seed}: ${harness} ${mutated}`,
      ).toBe(true);
    }
  });
});

function isPlain(text: string): boolean {
  return text.split("\n").every((line) => line === "" || line.startsWith("cotenant: "));
}

function isJson(text: string): boolean {
  try {
    return JSON.parse(text) !== null;
  } catch {
    return false;
  }
}

function mutate(text: string, chance: Prng): string {
  const at = chance.below(text.length);
  switch (chance.below(5)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + String.fromCharCode(chance.below(0x250)) + text.slice(at + 1);
    case 2:
      return text.slice(0, at) + text.slice(at + chance.below(20));
    case 3:
      return text.replace(
        /"(file_path|command|path|session_id|cwd)":"[^"]*"/,
        `"$1":${chance.pick(["7", "null", '"\\u0000"', '"../../../etc/x"', "[]"])}`,
      );
    default:
      return text;
  }
}
