import * as fs from "node:fs";
import type { Ran } from "./program";
import { TestRepo } from "./repo";

export const LANDER = "human:ada";

/** A repository with a first commit on main, which is checked out. */
export function landingRepo(): TestRepo {
  const repo = TestRepo.make();
  for (const file of ["a.txt", "b.txt", "c.txt"]) repo.write(file, "base\n");
  repo.write(".gitignore", "cache\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

/** A branch from main with one commit per set of files. Main is checked out again afterwards. */
export function branchWith(
  repo: TestRepo,
  name: string,
  ...commits: readonly Readonly<Record<string, string>>[]
): string {
  repo.git("checkout", "--quiet", "-b", name, "main");
  for (const [at, files] of commits.entries()) {
    for (const [file, content] of Object.entries(files)) repo.write(file, content);
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", `${name}: change ${at + 1}`);
  }
  const tip = repo.git("rev-parse", "HEAD").trim();
  repo.git("checkout", "--quiet", "main");
  return tip;
}

/** Checks for this one call. */
export const checks = (...lines: string[]) => ({ COTENANT_LAND_CHECKS: lines.join(",") });

export function land(repo: TestRepo, ...args: string[]): Promise<Ran> {
  return repo.ask(LANDER, "land", "run", ...args);
}

export async function add(repo: TestRepo, ...args: string[]): Promise<Ran["data"]> {
  return repo.prepare("agent:worker", "land", "add", ...args);
}

export const outcomes = (ran: Ran): Record<string, string> =>
  Object.fromEntries(
    (ran.data["entries"] as { branch: string; outcome: string }[]).map(({ branch, outcome }) => [
      branch,
      outcome,
    ]),
  );

/** First parents of a branch, the newest first, by their subjects. */
export const firstParents = (repo: TestRepo, branch = "main"): string[] =>
  repo.git("log", "--first-parent", "--format=%s", branch).trim().split("\n");

export const headOf = (repo: TestRepo, name = "main"): string => repo.git("rev-parse", name).trim();

export const isClean = (repo: TestRepo): boolean => repo.git("status", "--porcelain").trim() === "";

export const exists = (repo: TestRepo, file: string): boolean => fs.existsSync(`${repo.root}/${file}`);
