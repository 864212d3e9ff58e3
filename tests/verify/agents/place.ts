import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { childEnvironment } from "../../../testing/workload/environment";
import { removeTree } from "../../support/remove-tree";

/** A repository with files that everybody wants, in which every harness asks before it writes. */
export interface Place {
  readonly folder: string;
  readonly root: string;
  readonly home: string;
  readonly log: string;
  readonly journal: string;
  readonly files: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const FILES = 50;

export function makePlace(parent: string, program: string): Place {
  const folder = realpathSync(mkdtempSync(join(parent, "cotenant-agents-")));
  const env: Record<string, string> = {
    ...childEnvironment(folder),
    // A denied write is tried again soon: nobody has three minutes for each.
    COTENANT_GUARD_RETRY_SECS: "1",
    // One segment, so that a position in it says what came before what.
    COTENANT_STORE_ROTATE_BYTES: String(1 << 30),
  };
  const root = join(folder, "repository");
  const home = env["HOME"] ?? join(folder, "home");
  for (const directory of [root, home, join(root, "src")]) mkdirSync(directory, { recursive: true });
  const files = [...Array(FILES).keys()].map((at) => `src/file-${at}.txt`);
  for (const file of files) writeFileSync(join(root, file), "first\n");
  const run = (file: string, ...args: string[]) =>
    execFileSync(file, args, { cwd: root, env, stdio: "pipe" });
  const author = ["-c", "user.name=v", "-c", "user.email=v@example.invalid"];
  run("git", "init", "--quiet", "--template=", "--initial-branch=main", ".");
  run("git", "add", "--all");
  run("git", ...author, "commit", "--quiet", "--no-gpg-sign", "--message", "A place");
  run(process.execPath, program, "init", "--quiet", "--agents", "all", "--agent-id", "agent:director");
  const control = join(root, ".git/cotenant");
  return {
    folder,
    root,
    home,
    log: join(control, "claims.jsonl"),
    journal: join(folder, "journal"),
    files,
    env,
  };
}

/** What was killed a moment ago may still have had a write under way. */
export function clear({ folder }: Place): void {
  removeTree(folder);
}
