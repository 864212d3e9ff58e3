import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { ISSUE_MERGE_DRIVER } from "../../identity/data-plane";
import { SHELL_QUOTED, shellQuoted, shellUnquoted } from "../../kernel/printing";
import type { Git } from "../../platform/git";
import { gitWords } from "../../platform/git-answers";
import type { Timers } from "../../platform/platform";

const KEYS = {
  name: `merge.${ISSUE_MERGE_DRIVER}.name`,
  driver: `merge.${ISSUE_MERGE_DRIVER}.driver`,
} as const;
const NAME = "cotenant: issues, field by field";

/** How often another process is waited for that has Git's configuration locked. */
const TRIES = 20;
const PAUSE_MS = 50;
/** Git's words, which are the C library's; our Git speaks no other language. */
const LOCKED = "File exists";
const REFUSALS = [
  ["Permission denied", "EACCES"],
  ["Read-only file system", "EROFS"],
  ["No space left on device", "ENOSPC"],
] as const;

/** Where cotenant is installed: Node's program, and ours. */
export interface Installation {
  readonly node: string;
  readonly program: string;
}

/**
 * What Git runs in a shell for each file. The installation that `init` ran from comes first, because a program with a
 * window may not have our PATH; one that has moved is looked for there. Without either, or when it breaks, Git's own text
 * merge does: a driver that only fails would leave our side in the file, without a mark.
 */
export function driverCommand({ node, program }: Installation): string {
  const [runner, script] = [driverWord(node), driverWord(program)];
  const cotenant = `cotenant() { if [ -x ${runner} ] && [ -f ${script} ]; then ${runner} ${script} "$@"; else command cotenant "$@"; fi; }`;
  const merge = "cotenant merge-issue --marker-size=%L -- %O %A %B %P %X %Y";
  const asText = "git merge-file -q --marker-size=%L -L ours -L base -L theirs %A %O %B";
  return `${cotenant}; ${merge} || { ! grep -q '^<<<<<<<' %A && ${asText}; } || exit 1`;
}

/** A percent sign is doubled, because Git puts names in for those. */
function driverWord(text: string): string {
  return shellQuoted(text).replaceAll("%", "%%");
}

/** The installation that a registered command names; null for a command that is not ours. */
export function installationIn(command: string): Installation | null {
  const found = new RegExp(`if \\[ -x (${SHELL_QUOTED}) \\] && \\[ -f (${SHELL_QUOTED}) \\]`).exec(command);
  if (found === null) return null;
  const plain = (word: string) => shellUnquoted(word).replaceAll("%%", "%");
  return { node: plain(found[1]!), program: plain(found[2]!) };
}

/** Git's configuration of one clone, which all its worktrees share. */
export class MergeDriver {
  readonly #git: Git;
  readonly #commonDir: string;

  constructor(git: Git, commonDir: string) {
    this.#git = git;
    this.#commonDir = commonDir;
  }

  /** The command, wherever it was set: somebody may have done it for all clones. */
  async command(): Promise<string | null> {
    return this.#get(["config", "--get", KEYS.driver]);
  }

  /** Which of our settings this clone has itself. */
  async registered(): Promise<readonly string[]> {
    const found: string[] = [];
    for (const key of Object.values(KEYS))
      if ((await this.#get(["config", "--local", "--get-all", key])) !== null) found.push(key);
    return found;
  }

  /** False when it was so already. */
  async register(installation: Installation, timers: Timers): Promise<boolean> {
    let hasChanged = false;
    // The command first, and last to go: a driver that has a name and none ends every merge with an error.
    const wanted = [
      [KEYS.driver, driverCommand(installation)],
      [KEYS.name, NAME],
    ] as const;
    for (const [key, value] of wanted) {
      if ((await this.#get(["config", "--local", "--get-all", key])) === value) continue;
      await this.#change(["config", "--local", "--replace-all", key, value], timers);
      hasChanged = true;
    }
    return hasChanged;
  }

  /** Our settings, and the heading above them when nothing else is below it. */
  async unregister(timers: Timers): Promise<void> {
    for (const key of await this.registered())
      await this.#change(["config", "--local", "--unset-all", key], timers);
  }

  async #get(args: readonly string[]): Promise<string | null> {
    const { status, stdout, stderr } = await this.#run(args);
    if (status === 0) return new TextDecoder().decode(stdout).replace(/\n$/, "");
    if (status === 1) return null;
    throw this.#failure("read", stderr, status);
  }

  async #change(args: readonly string[], timers: Timers): Promise<void> {
    for (let tries = 1; ; tries++) {
      const { status, stderr } = await this.#run(args);
      // Another process may have been there first.
      if (status === 0 || (status === 5 && args.includes("--unset-all"))) return;
      if (tries === TRIES || !stderr.includes(LOCKED)) throw this.#failure("change", stderr, status);
      await timers.sleep(PAUSE_MS).done;
    }
  }

  #run(args: readonly string[]) {
    return this.#git.run(["--git-dir", this.#commonDir, ...args], { cwd: this.#commonDir });
  }

  #failure(doing: string, stderr: string, status: number): CotenantError {
    const path = `${this.#commonDir}/config`;
    const [, code] = REFUSALS.find(([words]) => stderr.includes(words)) ?? [];
    if (code !== undefined) return fileFailure({ code }, "telling Git how to merge issues", path);
    const said = gitWords(stderr.trim().split("\n")[0]!);
    return new CotenantError("E_GIT", `Git cannot ${doing} ${path}: ${said}`, {
      hint: stderr.includes(LOCKED)
        ? `if no Git command is running, one was killed: remove ${path}.lock, then run the same command again`
        : "mend what Git says, then run the same command again",
      data: { path, git: said, status },
    });
  }
}
