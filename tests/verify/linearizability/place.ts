import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { childEnvironment } from "../../../testing/workload/environment";

/** A repository with two worktrees for one run, and what the run leaves besides. */
export interface Place {
  readonly folder: string;
  readonly worktrees: readonly string[];
  readonly control: string;
  readonly witness: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Where a sync costs nothing, so that more happens in the same time; the default disk where there is no such place. */
export { memoryFolder as fastDisk } from "../memory";

export function makePlace(parent: string): Place {
  const folder = realpathSync(mkdtempSync(join(parent, "cotenant-run-")));
  const env = childEnvironment(folder);
  const [main, linked, witness] = ["repository", "linked", "witness"].map((name) => join(folder, name));
  for (const directory of [main!, witness!, join(folder, "home")]) mkdirSync(directory);
  const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: main!, env, stdio: "ignore" });
  git("init", "--quiet", "--template=", "--initial-branch=main", ".");
  mkdirSync(join(main!, ".cotenant"));
  writeFileSync(join(main!, ".cotenant/config.toml"), `[store]\nrotate_bytes = ${ROTATE_BYTES}\n`);
  git("add", "--all");
  git(
    "-c",
    "user.name=v",
    "-c",
    "user.email=v@example.invalid",
    "commit",
    "--quiet",
    "--no-gpg-sign",
    "-m",
    "A place",
  );
  git("worktree", "add", "--quiet", "--detach", linked!);
  return {
    folder,
    worktrees: [main!, linked!],
    control: join(main!, ".git/cotenant"),
    witness: witness!,
    env,
  };
}

/** The least that the settings allow. */
export const ROTATE_BYTES = 65_536;

export function clear({ folder }: Place): void {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * As somebody would who has read that the index is only a view: all at once, or file by file. `applied` goes first, by
 * which everybody knows whether there is an index at all.
 */
export function loseIndex({ control, folder }: Place, atOnce: boolean): void {
  const index = join(control, "index");
  if (!existsSync(index)) return;
  if (atOnce) {
    const aside = join(folder, `index-${process.hrtime.bigint()}`);
    renameSync(index, aside);
    rmSync(aside, { recursive: true, force: true });
  } else {
    rmSync(join(index, "applied"), { force: true });
    removeBehindItsBack(index);
  }
}

function removeBehindItsBack(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    // Somebody has put something into it meanwhile. Half of it is gone, which is worse.
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
  }
}
