import type { Workspace } from "../../coordinator/workspace";
import { below } from "../../identity/path-text";
import { printable } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";

/** Of a list in an error's data. */
export const MOST_NAMED = 1_000;
const MOST_OTHERS = 5;

/** The others of a list whose first is told already. */
export function others(rest: readonly string[]): string {
  if (rest.length === 0) return "";
  const more = rest.length - MOST_OTHERS;
  const named = rest.slice(0, MOST_OTHERS).map((one) => printable(one, 200));
  return `; also ${named.join(", ")}${more > 0 ? `, and ${more} more, which --json names` : ""}`;
}

/** A path of the repository as its caller has to type it from where it stands. */
export function typedPath({ surroundings, repository }: Workspace, path: string): string {
  const inside = below(surroundings.cwd, repository.worktreeRoot) ?? "";
  const here = inside === "" ? [] : inside.split("/");
  const there = path.split("/");
  while (here.length > 0 && there.length > 1 && here[0] === there[0]) {
    here.shift();
    there.shift();
  }
  const relative = [...here.map(() => ".."), ...there].join("/");
  return shellWord(relative.startsWith("-") ? `./${relative}` : relative);
}
