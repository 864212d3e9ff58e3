import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { setTimeout as nap } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { CommandRequest } from "../../src/platform/commands";
import { nodeCommands } from "../../src/platform/node/commands";
import { membersOf } from "../../src/platform/node/processes";
import { isAlive } from "../support/alive";
import { scratch } from "../support/scratch";
import { bundleText } from "../verify/bundle";

const run = (line: string, given: Partial<CommandRequest> = {}) =>
  nodeCommands().run({ line, cwd: scratch(), env: {}, timeoutMs: 20_000, keepBytes: 1_000, ...given });

const pidIn = (directory: string) => Number(fs.readFileSync(path.join(directory, "pid"), "utf8"));

async function begun(directory: string): Promise<void> {
  while (!fs.existsSync(path.join(directory, "pid")) || !(pidIn(directory) > 0)) await nap(10);
}

describe("a person's command", () => {
  it("ends with its status and both streams, with nothing on standard input", async () => {
    const end = await run("cat; echo out; echo err >&2; exit 3");
    expect(end).toMatchObject({ exitStatus: 3, signal: null, timedOut: false, outputBytes: 8 });
    expect(end.output).toContain("out\n");
    expect(end.output).toContain("err\n");
  });

  it("sees what it is given, and not where a Git command that started us was", async () => {
    const env = { GIVEN: "yes", TAKEN: undefined };
    const commands = nodeCommands({ PATH: process.env["PATH"], TAKEN: "no", GIT_DIR: "/nowhere" });
    const end = await commands.run({
      line: 'echo "$GIVEN/$TAKEN/$GIT_DIR"',
      cwd: scratch(),
      env,
      timeoutMs: 20_000,
      keepBytes: 100,
    });
    expect(end.output).toBe("yes//\n");
  });

  it("has the end of a long output kept, from a whole character on", async () => {
    const end = await run('i=0; while [ $i -lt 2000 ]; do printf "äöü%s\\n" $i; i=$((i+1)); done');
    expect(end.outputBytes).toBeGreaterThan(18_000);
    expect(end.output).toMatch(/äöü1999\n$/);
    expect(Buffer.byteLength(end.output)).toBeLessThanOrEqual(1_000);
    expect(end.output).not.toContain("\u{fffd}");
  });

  it("is ended at its timeout with everything that it started", async () => {
    const cwd = scratch();
    const hasBegun = () => fs.existsSync(path.join(cwd, "pid")) && pidIn(cwd) > 0;
    // The second is for a machine that is too busy to start anything within the first.
    for (const timeoutMs of [300, 6_000]) {
      if (hasBegun()) break;
      const end = await run("sleep 300 & echo $! > pid; trap '' TERM; sleep 300; sleep 300", {
        cwd,
        timeoutMs,
      });
      expect(end.timedOut).toBe(true);
      expect(end.exitStatus).not.toBe(0);
    }
    expect(isAlive(pidIn(cwd))).toBe(false);
  });

  it("leaves nothing in the background, also where that holds its output", async () => {
    const cwd = scratch();
    const end = await run("sleep 300 & echo $! > pid; echo done", { cwd });
    expect(end).toMatchObject({ exitStatus: 0, timedOut: false, output: "done\n" });
    expect(isAlive(pidIn(cwd))).toBe(false);
  });

  it("ends when it is no longer wanted", async () => {
    const unwanted = new AbortController();
    const running = run("sleep 300", { signal: unwanted.signal });
    unwanted.abort();
    expect(await running).toMatchObject({ signal: "SIGTERM", timedOut: false });
  });

  it("is heard as it speaks", async () => {
    const heard: string[] = [];
    const end = await run("echo one; echo two >&2", {
      onOutput: (chunk) => void heard.push(new TextDecoder().decode(chunk)),
    });
    expect(heard.join("").split("\n").sort()).toEqual(["", "one", "two"]);
    expect(end.outputBytes).toBe(8);
  });

  it("that is bound to us ends as any other, without its leash, and leaves nobody at it", async () => {
    const cwd = scratch();
    const line = "echo $$ > pid; (: <&3) 2>/dev/null && echo leash; exit 5";
    const end = await run(line, { cwd, isBound: true });
    expect(end).toMatchObject({ exitStatus: 5, signal: null, timedOut: false, output: "" });
    const group = pidIn(cwd);
    // The system may keep what has ended for a while, until somebody asks how.
    expect(membersOf(group)).toEqual([]);
  });

  it("that is bound to us is ended with its group when it is no longer wanted", async () => {
    const unwanted = new AbortController();
    const cwd = scratch();
    const running = run("sleep 300 & echo $! > pid; wait", {
      cwd,
      isBound: true,
      leavesSignals: true,
      signal: unwanted.signal,
    });
    while (!fs.existsSync(path.join(cwd, "pid")) || !(pidIn(cwd) > 0))
      await new Promise((r) => setTimeout(r, 10));
    unwanted.abort();
    expect((await running).signal).toBe("SIGTERM");
    expect(isAlive(pidIn(cwd))).toBe(false);
  });

  it("that is bound to us is ended with what has gone into a session of its own, as shells of agents do", async () => {
    const unwanted = new AbortController();
    const cwd = scratch();
    const line = "setsid sh -c 'echo $$ > pid; exec sleep 300'";
    const running = run(line, { cwd, isBound: true, leavesSignals: true, signal: unwanted.signal });
    await begun(cwd);
    unwanted.abort();
    await running;
    expect(isAlive(pidIn(cwd))).toBe(false);
  });

  it("that is bound to us leaves nothing behind in a session of its own, whose parent has ended", async () => {
    const cwd = scratch();
    const line = "(setsid sh -c 'echo $$ > pid; exec sleep 300' &) ; while [ ! -s pid ]; do sleep 0.02; done";
    await run(line, { cwd, isBound: true });
    expect(isAlive(pidIn(cwd))).toBe(false);
  });

  it("that is bound to us ends with us, killed as we are, and so does what it has started", async () => {
    const { path: program } = await bundleText(
      `import { nodeCommands } from "../../src/platform/node/commands";
       const [line = "", cwd = ""] = process.argv.slice(2);
       nodeCommands().run({ line, cwd, env: {}, timeoutMs: 60_000, keepBytes: 10, isBound: true });`,
      "tests/platform/bound.ts",
      scratch(),
      null,
    );
    for (const line of [
      "echo $$ > pid; exec sleep 300",
      "setsid sh -c 'echo $$ > pid; exec sleep 300'",
      "trap '' TERM; echo $$ > pid; while :; do sleep 1; done",
    ]) {
      const cwd = scratch();
      const us = spawn(process.execPath, [program, line, cwd], { stdio: "ignore" });
      await begun(cwd);
      us.kill("SIGKILL");
      for (let looks = 0; looks < 300 && isAlive(pidIn(cwd)); looks++) await nap(50);
      expect(isAlive(pidIn(cwd)), line).toBe(false);
    }
  });

  it("ends at once when it was unwanted before it began", async () => {
    const unwanted = AbortSignal.abort();
    expect((await run("sleep 300", { signal: unwanted })).exitStatus).not.toBe(0);
  });

  it("says so when it cannot be started", async () => {
    await expect(run("true", { cwd: "/nowhere/at/all" })).rejects.toMatchObject({ code: "E_DISK" });
  });
});
