import { type ChildProcess, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PROGRAM, until } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const LOUD = "ANOTHER LIVE PROCESS HOLDS THIS UNDER THE SAME NAME";
let repo: TestRepo;
const agents: ChildProcess[] = [];
beforeEach(() => {
  repo = TestRepo.make();
});
afterEach(() => {
  for (const agent of agents.splice(0)) agent.kill("SIGKILL");
});

/** An agent that lives on between its commands: it runs what it is told, and says how each has ended. */
class Agent {
  readonly #process: ChildProcess;
  #said = "";
  #asked = 0;

  constructor(env: Record<string, string> = {}) {
    const script = path.join(repo.root, "agent.sh");
    fs.writeFileSync(script, 'while read -r line; do $line 2>&1; echo "status $?"; done\n');
    this.#process = spawn("sh", [script], {
      cwd: repo.root,
      env: { ...process.env, COTENANT_AGENT_ID: "agent:same", ...env },
    });
    this.#process.stdout!.on("data", (text) => {
      this.#said += text;
    });
    agents.push(this.#process);
  }

  /** What it said, and its status. */
  async run(...words: string[]): Promise<string> {
    const from = this.#said.length;
    this.#asked++;
    this.#process.stdin!.write(`${process.execPath} ${PROGRAM} ${words.join(" ")}\n`);
    await until("it has ended", () => this.#said.split("status ").length > this.#asked);
    return this.#said.slice(from);
  }
}

describe("agents with one name and no session", () => {
  it("hear of each other when the second is given what the first holds", async () => {
    const id = await repo.issue();
    const [one, two] = [new Agent(), new Agent()];
    expect(await one.run("claim", "acquire", id)).not.toContain(LOUD);
    expect(await one.run("claim", "acquire", id), "again, by the same").not.toContain(LOUD);
    const said = await two.run("claim", "acquire", id);
    expect(said).toContain(LOUD);
    expect(said).toContain("agent:same");
    expect(said).toContain("status 0");
    // With sessions of their own they are two, and kept apart.
    const own = new Agent({ COTENANT_SESSION_ID: "own" });
    expect(await own.run("claim", "acquire", id)).toContain("status 1");
    expect(await new Agent({ COTENANT_AGENT_ID: "human:ada" }).run("claim", "status")).not.toContain(LOUD);
  });

  it("hear of each other as well when the second takes the next issue, or the first one's into a new worktree", async () => {
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    await repo.issue("Another");
    await repo.issue();
    const [one, two] = [new Agent(), new Agent()];
    expect(await one.run("claim", "next")).not.toContain("SAME NAME");
    const next = await two.run("claim", "next");
    expect(next).toContain("ANOTHER LIVE PROCESS HOLDS LEASES UNDER THE SAME NAME");
    expect(next).toContain("status 0");
    const { leases } = await repo.prepare("agent:looks", "claim", "list");
    const first = leases.find((lease) => lease.fencing_token === 1)!;
    expect(await two.run("worktree", "create", "--issue", first.issue_id!)).toContain(LOUD);
  });

  it("are named by status once both hold something, and not when one of them has gone", async () => {
    const [one, two] = [new Agent(), new Agent()];
    await one.run("lock", "acquire", "a.ts");
    await two.run("lock", "acquire", "b.ts");
    const findings = async () =>
      ((await repo.prepare("agent:looks", "status"))["needs_a_person"] as { code: string }[]).map(
        ({ code }) => code,
      );
    expect(await findings()).toEqual(["agent_id_used_twice"]);
    agents[0]!.kill("SIGKILL");
    await until("it is gone", async () => (await findings()).length === 0);
  });
});

it("two sessions of one name are told apart, in words, in JSON, and in what to do about it", async () => {
  const as = (session: string, ...args: string[]) =>
    repo.askHere("agent:a", ...args, "f.txt", "--session", session);
  await repo.prepare("agent:a", "lock", "acquire", "f.txt", "--session", "s1");
  const refused = await as("s2", "lock", "acquire");
  expectJsonRefused(refused, 1, "E_LOCK_CONFLICT");
  expect(refused.error.message).toContain("is held by another session of agent:a, s1 (wt:");
  expect(refused.error.data).toMatchObject({ holders: [{ agent_id: "agent:a", session_id: "s1" }] });
  const kept = await as("s2", "lock", "release");
  expectJsonRefused(kept, 6, "E_LOCK_NOT_HELD");
  expect(kept.error.message).toContain("another session of agent:a, s1");
  expect(kept.error.hint).toContain("--session s1");
  expect((await as("s1", "lock", "release")).status).toBe(0);
});
