import type { Workspace } from "../../../coordinator/workspace";
import { type HooksWord, lookAfterHooks } from "../installation/upkeep";

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
