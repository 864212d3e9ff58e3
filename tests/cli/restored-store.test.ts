import * as fs from "node:fs";
import { expect, it } from "vitest";
import { TestRepo } from "../support/repo";

/** An issue written under a high token, in a repository whose control plane is put back from before that. */
async function restored(): Promise<{ repo: TestRepo; id: string; seen: number }> {
  const repo = TestRepo.make();
  const id = await repo.issue();
  const older = `${repo.control}-older`;
  fs.cpSync(repo.control, older, { recursive: true });
  for (const name of ["a.ts", "b.ts", "c.ts"]) await repo.prepare("agent:x", "lock", "acquire", name);
  const { lease } = await repo.prepare("agent:a", "claim", "acquire", id);
  await repo.prepare("agent:a", "issue", "update", id, "--title", "Written under it");
  await repo.prepare("agent:a", "claim", "release", id);
  fs.rmSync(repo.control, { recursive: true });
  fs.renameSync(older, repo.control);
  return { repo, id, seen: lease.fencing_token };
}

it("a claim gets a token above what its issue was written under, also if the store is older than that", async () => {
  const words = [
    ["claim", "acquire"],
    ["claim", "next"],
    ["worktree", "create", "--claim", "--issue"],
  ];
  for (const verb of words) {
    const { repo, id, seen } = await restored();
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    const named = verb[1] === "next" ? verb : [...verb, id];
    const ran = await repo.askHere("agent:b", ...named);
    const token = ran.data.lease.fencing_token;
    expect(token, verb.join(" ")).toBeGreaterThan(seen);
    // The counter follows: nobody else gets one of those either.
    const { lease } = await repo.prepare("agent:c", "lock", "acquire", "d.ts");
    expect(lease.fencing_token, verb.join(" ")).toBeGreaterThan(token);
  }
});

it("recover goes on above what issues were written under, and what commits say they were made under", async () => {
  const { repo, id } = await restored();
  const made = (token: number) =>
    repo.git(
      "commit",
      "--quiet",
      "--allow-empty",
      "--message",
      `x\n\nCotenant-Lease: ${id}\nCotenant-Token: ${token}`,
    );
  made(9_000_000);
  // Nobody gave that one: it hides none of the others.
  made(2 ** 49);
  const file = `${repo.root}/.cotenant/issues/${id}/issue.json`;
  const issue = JSON.parse(fs.readFileSync(file, "utf8"));
  fs.writeFileSync(file, JSON.stringify({ ...issue, stamp: { ...issue.stamp, fencing_token: 7_000_000 } }));
  await repo.prepare("agent:x", "lock", "acquire", "a.ts");
  fs.writeFileSync(repo.logFile, "rubbish\n");
  const { next_token: next } = await repo.prepare("agent:x", "recover");
  expect(next).toBeGreaterThan(10_000_000);
  expect(next).toBeLessThan(2 ** 40);
});
