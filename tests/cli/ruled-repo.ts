import * as path from "node:path";
import { expect } from "vitest";
import { HookedRepo } from "../support/hooks";
import type { Ran } from "../support/program";
import type { TestRepo } from "../support/repo";

export const ADA = "agent:ada";
export const PERSON = "human:me";

/** A clone with the hooks, whose main branch has rules of paths, and a bare repository that has the same. */
export class RuledRepo {
  readonly hooked: HookedRepo;
  readonly repo: TestRepo;
  readonly hub: string;

  private constructor(hooked: HookedRepo, hub: string) {
    this.hooked = hooked;
    this.repo = hooked.repo;
    this.hub = hub;
  }

  static async make(...rules: string[]): Promise<RuledRepo> {
    const hooked = await HookedRepo.make();
    const { repo } = hooked;
    const hub = path.join(path.dirname(repo.root), "hub.git");
    repo.git("init", "--quiet", "--bare", "--initial-branch=main", hub);
    repo.git("remote", "add", "origin", hub);
    const ruled = new RuledRepo(hooked, hub);
    ruled.rules(...rules);
    for (const file of [".github/ci.yml", "docs/a.md"]) repo.write(file);
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "rules");
    repo.git("push", "--quiet", "origin", "main");
    await repo.prepare(PERSON, "hooks", "install");
    return ruled;
  }

  rules(...texts: string[]): void {
    this.config(`paths = ${JSON.stringify(texts)}`);
  }

  /** The committed file, with these lines in its section. */
  config(lines: string): void {
    this.repo.write(".cotenant/config.toml", `[policy]\n${lines}\n`);
  }

  git(agent: string, ...args: string[]): Promise<Ran> {
    return this.hooked.git(agent, args, { GIT_EDITOR: "true" });
  }

  push(agent: string, ...more: string[]): Promise<Ran> {
    return this.git(agent, "push", "--quiet", ...more, "origin", "HEAD:main");
  }

  /** Around every hook of the clone: what a commit says of itself is all that a server has. */
  around(agent: string, message = "x"): string {
    this.repo.git("add", "--all");
    const named = agent === "" ? [] : ["--trailer", `Cotenant-Agent: ${agent}`];
    this.repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", message, ...named);
    return this.head();
  }

  head(): string {
    return this.repo.git("rev-parse", "HEAD").trim();
  }

  back(to: string): void {
    this.repo.git("reset", "--quiet", "--hard", to);
  }

  /** Who went around the hooks, and where, as the log has it. */
  recorded(): { readonly agent: string; readonly paths: readonly string[] }[] {
    const lines = this.repo.log().filter(({ event_type }) => event_type === "policy.violated");
    return lines.map(({ actor, payload }) => ({
      agent: actor.agent_id,
      paths: (payload as unknown as { paths: string[] }).paths,
    }));
  }
}

export function passed(ran: Ran): void {
  expect(ran.status, `${ran}`).toBe(0);
}

export function refused(ran: Ran, ...words: string[]): void {
  expect(ran.status, `${ran}`).not.toBe(0);
  for (const word of words) expect(ran.stderr).toContain(word);
}
