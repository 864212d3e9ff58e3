import type { Command, Flag } from "../../../cli/grammar/command";
import { installedFrom } from "../../../cli/grammar/installed";
import { readStdin } from "../../../cli/terminal/stdin";
import { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { isAbsolute } from "../../../identity/path-text";
// Not by the index: programs for hooks read no more than they need.
import { hook } from "../operations/hook";

const HARNESS_FLAG: Readonly<Record<string, Flag>> = {
  harness: { value: "<name>", choices: ["claude"], meaning: "whose event is on standard input" },
};

export const worktreeCreate: Command = {
  usage: "hook worktree-create --harness claude < event.json",
  about:
    "Makes the worktree that a harness asks for, as the harness itself would: below .claude/worktrees, on a branch of its own.\nIt gets its identity at once, the files that .worktreeinclude names, and the same settings as this one. Prints its path.",
  flags: HARNESS_FLAG,
  examples: ['echo \'{"name":"login"}\' | cotenant hook worktree-create --harness claude'],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  async run(context) {
    const { name } = await eventFrom();
    const { path, branch, isNew, worktreeId } = await hook.worktreeCreate(await context.workspace(), {
      name,
      program: installedFrom(context),
      onProgress: (line) => context.note(`cotenant: ${line}`),
    });
    return { data: { path, branch, created: isNew, worktree_id: worktreeId }, text: path };
  },
};

export const worktreeRemove: Command = {
  usage: "hook worktree-remove --harness claude < event.json",
  about:
    "Removes the worktree that a harness has done with, if nothing is in it that is nowhere else: changes, and commits that no\nbranch leads to, keep it, and the answer says so (exit 9). Its branch goes with it only where it is merged.",
  flags: HARNESS_FLAG,
  examples: ['echo "{\\"worktree_path\\":\\"$PWD\\"}" | cotenant hook worktree-remove --harness claude'],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  async run(context) {
    const { worktree_path: path } = await eventFrom();
    if (typeof path !== "string" || !isAbsolute(path))
      throw new CotenantError("E_USAGE", "the harness did not say which worktree", {
        hint: 'the event needs "worktree_path", an absolute path',
      });
    await hook.worktreeRemove(await Workspace.open({ ...context.surroundings(), cwd: path }));
    return { data: { path }, text: "" };
  },
};

const LONGEST = 1024 * 1024;

/** The event that a harness writes to standard input. */
async function eventFrom(): Promise<Readonly<Record<string, unknown>>> {
  const text = await readStdin(LONGEST);
  try {
    const event: unknown = JSON.parse(text);
    if (typeof event === "object" && event !== null && !Array.isArray(event))
      return event as Record<string, unknown>;
  } catch {
    // As for whatever else is no object.
  }
  throw new CotenantError("E_USAGE", "standard input has no event: one JSON object is expected", {
    hint: "harnesses call this; 'cotenant agent list' shows what is installed",
  });
}
