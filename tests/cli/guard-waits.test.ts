import { spawn } from "node:child_process";
import { expect } from "vitest";
import { oneIn } from "../support/one-in";
import { PROGRAM } from "../support/program";
import { Furnished } from "../support/settings";

const it = oneIn(8);

/** What a guard prints for a write that has to wait, in the words of our plugins. */
async function printed(here: Furnished, more: object) {
  const child = spawn(PROGRAM, ["guard", "check", "--harness", "pi", "--pid", String(process.pid)], {
    cwd: here.repo.root,
    env: { ...process.env, HOME: here.home, COTENANT_GUARD_RETRY_SECS: "3" },
  });
  const at: number[] = [];
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk) => (out += chunk));
  child.stderr.on("data", (chunk) => {
    at.push(performance.now());
    err += chunk;
  });
  const input = { event: "tool_call", sessionID: "s", directory: here.repo.root, tool: "write", callID: "c" };
  child.stdin.end(JSON.stringify({ ...input, args: { path: here.path("a.txt") }, ...more }));
  const status = await new Promise((resolve) => child.on("close", resolve));
  const [first = "", ...rest] = err.split("\n");
  return { status, out, first, rest: rest.join("\n"), betweenMs: at.at(-1)! - at[0]! };
}

it("a plugin that shows waits hears of one as it begins, and the others only how it ends", async () => {
  const here = await Furnished.make();
  await here.ask("lock", "acquire", "a.txt");
  const told = await printed(here, { showsWaits: true });
  expect([told.status, told.out]).toEqual([2, ""]);
  expect(JSON.parse(told.first)).toEqual({
    waits: {
      message: "cotenant: a.txt is held by agent:a; the agent waits",
      until: expect.stringMatching(/Z$/),
      waitMs: expect.any(Number),
    },
  });
  expect(told.betweenMs).toBeGreaterThan(1_500);
  expect(told.rest).toMatch(/^cotenant: a\.txt is still held by agent:a at the retry/);
  const old = await printed(here, { sessionID: "t" });
  expect(old.first).toMatch(/^cotenant: a\.txt is still held by agent:a at the retry/);
});
