import * as fs from "node:fs";
import * as path from "node:path";
import { PROGRAM, type Ran, runHere, start } from "./program";
import { pictureOf, TestRepo } from "./repo";
import { scratch } from "./scratch";

/** Where each harness looks: not committed, committed, and the user's own. */
export const FILES: Readonly<Record<string, readonly [local: string, shared: string, user: string]>> = {
  claude: [".claude/settings.local.json", ".claude/settings.json", ".claude/settings.json"],
  codex: [".codex/hooks.json", ".codex/hooks.json", ".codex/hooks.json"],
  cursor: [".cursor/hooks.json", ".cursor/hooks.json", ".cursor/hooks.json"],
  gemini: [".gemini/settings.json", ".gemini/settings.json", ".gemini/settings.json"],
  copilot: [".github/hooks/cotenant.json", ".github/hooks/cotenant.json", ".copilot/hooks/cotenant.json"],
  opencode: [
    ".opencode/plugins/cotenant.js",
    ".opencode/plugins/cotenant.js",
    ".config/opencode/plugins/cotenant.js",
  ],
  qwen: [".qwen/settings.json", ".qwen/settings.json", ".qwen/settings.json"],
  pi: [".pi/extensions/cotenant.js", ".pi/extensions/cotenant.js", ".pi/agent/extensions/cotenant.js"],
};
export const HARNESSES = Object.keys(FILES);

/** A repository and a home in which harnesses keep their settings. */
export class Furnished {
  readonly repo: TestRepo;
  readonly home: string;

  private constructor(repo: TestRepo, home: string) {
    this.repo = repo;
    this.home = home;
  }

  static async make(room = scratch()): Promise<Furnished> {
    const repo = TestRepo.make(path.join(room, "it's ré po"));
    const home = path.join(room, "home of 'mine'");
    fs.mkdirSync(home);
    repo.write("a.txt");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "first");
    const furnished = new Furnished(repo, home);
    await furnished.ask("init");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "cotenant");
    return furnished;
  }

  /** As a person would, in this worktree. */
  run(...args: string[]): Promise<Ran> {
    return this.#here(args);
  }

  ask(...args: string[]): Promise<Ran> {
    return this.#here([...args, "--json"]);
  }

  askIn(cwd: string, ...args: string[]): Promise<Ran> {
    return this.#here([...args, "--json"], cwd);
  }

  /** In a process of its own, as everybody does. */
  askProgram(...args: string[]): Promise<Ran> {
    // Long, for what starts dozens of processes itself.
    const setting = { cwd: this.repo.root, env: this.#env, mostMs: 100_000 };
    return start([PROGRAM, ...args, "--json"], setting).done;
  }

  #here(args: readonly string[], cwd = this.repo.root): Promise<Ran> {
    return runHere(args, { cwd, env: this.#env, home: this.home });
  }

  get #env(): Record<string, string> {
    return { COTENANT_AGENT_ID: "agent:a", HOME: this.home, USERPROFILE: this.home };
  }

  path(name: string): string {
    return path.join(this.repo.root, name);
  }

  write(name: string, text: string | Buffer, base = this.repo.root): string {
    const file = path.join(base, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
    return file;
  }

  read(name: string, base = this.repo.root): string {
    return fs.readFileSync(path.join(base, name), "utf8");
  }

  /** Everything but Git's and cotenant's own, and what Git passes over. */
  picture(): Record<string, string> {
    const all = pictureOf(path.dirname(this.repo.root));
    const isOwn = (name: string) =>
      /\/\.git\/(?!info)|\.local\/share\/cotenant|^[^/]*\/\.local(?:\/share)?$|\.git$/.test(name);
    return Object.fromEntries(Object.entries(all).filter(([name]) => !isOwn(name)));
  }

  status(): string {
    return this.repo.git("status", "--porcelain", "--untracked-files=all");
  }
}
