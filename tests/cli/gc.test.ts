import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { TestRepo } from "../support/repo";
import { ulid } from "../support/ulid";

const HOURS_AGO = new Date(Date.now() - 2 * 3_600_000);

it("gc clears away what a killed process left half written, and nothing that somebody may be writing", async () => {
  const repo = TestRepo.make();
  const issue = await repo.issue();
  const leave = (file: string, when: Date) => {
    repo.write(`.cotenant/${file}`, "{");
    fs.utimesSync(path.join(repo.root, ".cotenant", file), when, when);
    return file;
  };
  const old = [
    leave("worktree.json.new-0123456789ab", HOURS_AGO),
    leave(`issues/${ulid()}/issue.json.new`, HOURS_AGO),
    leave(`issues/${issue}/issue.json.new`, HOURS_AGO),
  ];
  const cached = (name: string, when: Date) => {
    const file = path.join(repo.control, "cache", name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, "half");
    fs.utimesSync(file, when, when);
    return file;
  };
  const half = path.join(repo.root, ".git/cotenant-worktree.json.new-0123456789ab");
  fs.writeFileSync(half, "{");
  fs.utimesSync(half, HOURS_AGO, HOURS_AGO);
  const oldCache = cached("issues-wt-00000001.v1.new-0123456789ab", HOURS_AGO);
  const newCache = cached("issues-wt-00000001.v1.new-ba9876543210", new Date());
  const kept = [
    leave("worktree.json.new-ba9876543210", new Date()),
    leave(`issues/${ulid()}/issue.json.new`, new Date()),
  ];
  expect((await repo.ask("agent:a", "gc")).status).toBe(0);
  const there = (file: string) => fs.existsSync(path.join(repo.root, ".cotenant", file));
  expect(old.filter(there)).toEqual([]);
  expect(fs.existsSync(half)).toBe(false);
  expect([fs.existsSync(oldCache), fs.existsSync(newCache)]).toEqual([false, true]);
  expect(fs.existsSync(path.join(repo.root, ".cotenant", path.dirname(old[1]!)))).toBe(false);
  expect(kept.filter(there)).toEqual(kept);
  expect((await repo.ask("agent:a", "issue", "show", issue)).data.issue.id).toBe(issue);
});
