import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { harnessProcess, reasonOf } from "../support/guard";
import { oneIn } from "../support/one-in";
import { PROGRAM } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(async () => {
  repo = TestRepo.make();
  repo.write("a.txt", "one\n");
  expect((await repo.ask("human:me", "init")).status).toBe(0);
});

/** Far above any deadline of the guard's, and below a test's. */
const HUNG_MS = 120_000;

/** Through a pipe that nobody closes. */
function check(said: string, env: Record<string, string> = {}): Promise<{ stdout: string; status: number }> {
  const pipe = path.join(repo.control, `../pipe-${++pipes}`);
  execFileSync("mkfifo", [pipe]);
  const fd = fs.openSync(pipe, "r+");
  fs.writeSync(fd, said);
  const args = ["check", "--harness", "claude", "--event", "PreToolUse", "--pid", `${harnessProcess().pid}`];
  const child = spawn(PROGRAM, ["guard", ...args], {
    cwd: repo.root,
    env: { ...process.env, ...env },
    stdio: [fd, "pipe", "inherit"],
    timeout: HUNG_MS,
    killSignal: "SIGKILL",
  });
  let stdout = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  return new Promise((resolve) => {
    child.on("close", (status) => {
      fs.closeSync(fd);
      resolve({ stdout, status: status ?? -1 });
    });
  });
}

let pipes = 0;

function write(session: string): string {
  const tool = { tool_name: "Write", tool_input: { file_path: path.join(repo.root, "a.txt") } };
  return JSON.stringify({ session_id: session, cwd: repo.root, hook_event_name: "PreToolUse", ...tool });
}

const failures = () => fs.readFileSync(path.join(repo.control, "guard/failures.jsonl"), "utf8");

describe("a hook does not hang", () => {
  const CLOSED = { COTENANT_GUARD_ON_FAILURE: "closed" };

  it("on a harness that says nothing, or half of it, and keeps the pipe open", async () => {
    const [nothing, half] = await Promise.all([
      check(""),
      check('{"hook_event_name":"PreToolUse","tool_in', CLOSED),
    ]);
    expect(nothing).toEqual({ stdout: "", status: 0 });
    expect(reasonOf({ ...half, stderr: "" })).toContain("nothing came for 5 s");
    expect(failures().match(/nothing came for 5 s/g)).toHaveLength(2);
  });

  it("on a whole document without an end", async () => {
    expect(await check(write("aaaaaaaa"))).toEqual({ stdout: "", status: 0 });
    expect(repo.logText()).toContain("file:a.txt");
  });

  // Of a lock nothing is read.
  it.each([
    ["claims.jsonl", "the log is damaged"],
    ["index/applied", "cannot decide"],
    ["locks/claims.lock", "held by agent:claude-aaaaaaaa"],
  ])("on a pipe in the place of %s", async (name, why) => {
    await check(write("aaaaaaaa"));
    const file = path.join(repo.control, name);
    fs.renameSync(file, `${file}.kept`);
    execFileSync("mkfifo", [file]);
    const refused = await check(write("bbbbbbbb"), { ...CLOSED, COTENANT_GUARD_RETRY_SECS: "600" });
    fs.rmSync(file, { recursive: true });
    fs.renameSync(`${file}.kept`, file);
    expect(reasonOf({ ...refused, stderr: "" })).toContain(why);
  });
});
