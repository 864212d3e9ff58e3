import { expect } from "vitest";
import { COMMANDS } from "../../src/cli/commands";
import { oneIn } from "../support/one-in";
import { runHere } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

const ID = "01M7F87SKQ7X3KZ979XRC4S87G";

/** Words for those that make something when they succeed: each of these is refused. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  init: ["--enforce", "nonsense"],
  "lock acquire": ["../outside"],
  "lock steal": ["../outside", "--reason", "r"],
  "worktree init": ["word"],
  "worktree create": ["bad..name"],
  "worktree lock": ["nowhere"],
  "worktree steal": ["nowhere", "--reason", "r"],
  "worktree access": ["nonsense"],
  snapshot: ["--consistency", "nonsense"],
  "issue create": ["--title", ""],
  "claim create": ["--title", ""],
  "gate define": ["bad key"],
  "config set": ["no.such.key", "1"],
  "hooks install": ["--server"],
  "agent install": ["nobody"],
  exec: [],
  "guard check": [],
  gc: ["word"],
  "daemon start": ["word"],
  "daemon run": ["word"],
  recover: ["word"],
};
/** Refused for what they name, and reading where they may. */
const OTHERS: readonly (readonly string[])[] = [[], ["nothing"], [ID, "--reason", "r"]];
/** It makes a repository of its own, and runs for long. */
const LEFT_OUT = ["demo"];

function fresh(): TestRepo {
  const repo = TestRepo.make();
  repo.write("a.txt");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

it("every command that is refused or only reads leaves nothing behind where nobody ran init", async () => {
  let repo = fresh();
  let before = repo.picture();
  const offenders: string[] = [];
  const names = Object.keys(COMMANDS).filter(
    (name) => COMMANDS[name]!.isHidden !== true && !LEFT_OUT.includes(name),
  );
  expect(names.length).toBeGreaterThan(90);
  for (const name of names) {
    const own = REFUSED[name];
    for (const words of own === undefined ? OTHERS : [own]) {
      const { status } = await repo.runHere("agent:a", ...name.split(" "), ...words);
      if (own !== undefined && status === 0) offenders.push(`${name} ${words.join(" ")} was not refused`);
      const now = repo.picture();
      const made = Object.keys(now).filter((file) => now[file] !== before[file]);
      if (made.length === 0) continue;
      offenders.push(`${name} ${words.join(" ")} (exit ${status}): ${made.join(", ")}`);
      repo = fresh();
      before = repo.picture();
    }
  }
  expect(offenders).toEqual([]);
});

it("a worktree that is refused its removal leaves nothing behind, and its first lease its identity", async () => {
  const repo = TestRepo.make();
  repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
  const before = repo.picture();
  expect((await repo.askHere("agent:a", "worktree", "remove", "nowhere")).status).toBe(4);
  expect(repo.picture()).toEqual(before);
  const computed = (await repo.askHere("agent:a", "worktree", "info")).data.worktree.worktree_id;
  const { lease } = await repo.askHere("agent:a", "lock", "acquire", "a.txt");
  expect(lease.worktree_id).toBe(computed);
  expect((await repo.askHere("agent:a", "worktree", "info")).data.worktree.worktree_id).toBe(computed);
});

it("issue create suggests a claim only where there are claims", async () => {
  const outside = await runHere(["issue", "create", "--title", "t"], {
    cwd: scratch(),
    home: process.env["HOME"]!,
    env: { COTENANT_AGENT_ID: "agent:a" },
  });
  expect([outside.status, outside.stdout]).toEqual([0, expect.stringMatching(/^created \w+: t\n$/)]);
  const inside = await TestRepo.make().runHere("agent:a", "issue", "create", "--title", "t");
  expect(inside.stdout).toMatch(/claim it: cotenant claim acquire \w+\n$/);
});
