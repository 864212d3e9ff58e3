import type { Workspace } from "../../../coordinator/workspace";
import type { Repository } from "../../../identity/repository";
import type { Git } from "../../../platform/git";
import type { Platform } from "../../../platform/platform";
import type { InstalledHook } from "./hooks";
import { type HooksWorktree, type Mark, markOf, readSeen, recordFile } from "./record";

/** Hooks that were wanted here and are gone: a manager wrote its own, or Git looks elsewhere. */
export interface HooksWord {
  readonly hooks: readonly InstalledHook[];
  readonly isPutBack: boolean;
  readonly message: string;
  /** What a person can do; null where nothing is left to do. */
  readonly next: string | null;
}

export interface Upkeep {
  readonly platform: Platform;
  readonly git: Git;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly repository: Repository;
  readonly modes: { readonly directory: number; readonly file: number };
}

/**
 * Puts hooks back that are gone, and says so; null where all is well, or none are wanted. Mostly it costs the reading of
 * one small file and a look at each that it names: every command and every event of a harness comes by here.
 */
export async function lookAfterHooks(upkeep: Upkeep): Promise<HooksWord | null> {
  const { platform, repository } = upkeep;
  const seen = await readSeen(platform, repository);
  if (seen === null && (await platform.files.stat(recordFile(repository.controlDir))) === null) return null;
  if (seen !== null && (await areAsTheyWere(platform, seen))) return null;
  const { mendHooks } = await import("./mend");
  return mendHooks(upkeep);
}

const looked = new WeakMap<Workspace, Promise<HooksWord | null>>();

/** Once for each command: what became of the hooks that were wanted here. */
export function hooksWord(workspace: Workspace): Promise<HooksWord | null> {
  const known = looked.get(workspace);
  if (known !== undefined) return known;
  const { surroundings, repository, store } = workspace;
  const word = lookAfterHooks({ ...surroundings, repository, modes: store.options.modes }).catch(
    // Whatever is wrong with them, the command is about something else; 'doctor' looks closely.
    () => null,
  );
  looked.set(workspace, word);
  return word;
}

export function wordText({ message, next }: HooksWord): string {
  return next === null ? message : `${message}; next: ${next}`;
}

/**
 * What the files of hooks look like while all is well, for whoever remembers an answer: it stands only as long. Null where
 * hooks are wanted and nobody has found them in place.
 */
export async function marksOfHooks(
  platform: Platform,
  worktree: HooksWorktree,
): Promise<readonly Mark[] | null> {
  const seen = await readSeen(platform, worktree);
  if (seen !== null) return seen;
  return (await platform.files.stat(recordFile(worktree.controlDir))) === null ? [] : null;
}

async function areAsTheyWere(platform: Platform, marks: readonly Mark[]): Promise<boolean> {
  for (const mark of marks) {
    const { size, mtimeMs } = await markOf(platform, mark.file);
    if (size !== mark.size || mtimeMs !== mark.mtimeMs) return false;
  }
  return true;
}
