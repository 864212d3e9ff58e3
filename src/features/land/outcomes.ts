import type { CotenantError } from "../../errors/cotenant-error";
import type { ObjectId } from "../../git/object-name";
import { printable } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";
import { branchName } from "../publish/branch-rules";
import { others } from "../publish/hint-words";
import type { Built } from "./candidate";
import type { LandEntry } from "./entry";
import type { LandOutcome } from "./report";
import type { Rejection } from "./speculation";
import { shownBranch } from "./target";

const NOTHING = {
  commit: null,
  ref: null,
  isRemoteOnly: false,
  why: null,
  message: null,
  hint: null,
  paths: [],
  output: "",
  outputFile: null,
  cleaned: [],
} as const;

export function waitingOutcome({ entryId, branch }: LandEntry): LandOutcome {
  return { ...NOTHING, entryId, branch, outcome: "waiting" };
}

export function landedOutcome(
  { entryId, branch }: LandEntry,
  at: { readonly commit: ObjectId | null; readonly ref: string; readonly isRemoteOnly?: boolean },
  cleaned: readonly string[] = [],
): LandOutcome {
  const message = at.commit === null ? "nothing to land: the target has it already" : null;
  return { ...NOTHING, isRemoteOnly: false, ...at, entryId, branch, outcome: "landed", message, cleaned };
}

export function parkedOutcome({ entryId, branch }: LandEntry, rejection: Rejection): LandOutcome {
  return { ...NOTHING, entryId, branch, outcome: "parked", ...rejection };
}

/** Where entries of a run go, and where they would go if nobody said. */
export interface Destination {
  /** The remote that they are built on; null where nothing is pushed. */
  readonly remote: string | null;
  readonly usualTarget: string;
}

/** Puts a branch in the place of its entry. How it is to land is as it was, unless somebody says otherwise. */
export function addingAgain(entry: LandEntry, { usualTarget }: Pick<Destination, "usualTarget">): string {
  return `cotenant land add ${named(entry, usualTarget)}`;
}

/** Puts an entry back as it is. */
export function retrying(
  entry: Pick<LandEntry, "branch" | "target">,
  { usualTarget }: Pick<Destination, "usualTarget">,
): string {
  return `cotenant land retry ${named(entry, usualTarget)}`;
}

function named({ branch, target }: Pick<LandEntry, "branch" | "target">, usualTarget: string): string {
  const where = target === usualTarget ? "" : ` --target ${shellWord(branchName(target))}`;
  return `${shellWord(branchName(branch))}${where}`;
}

/** What makes the branch fit for its target. By rebase its own commits have to change: a merge would be left out again. */
function bringingIn({ branch, target, method }: LandEntry, { remote }: Destination): string {
  const [own, onto] = [shellWord(branchName(branch)), shellWord(branchName(target))];
  const there = remote === null ? onto : shellWord(`${remote}/${branchName(target)}`);
  const fetched = remote === null ? "" : `git fetch ${shellWord(remote)} && `;
  return method === "rebase"
    ? `rebase the branch (${fetched}git rebase ${there} ${own})`
    : `bring the target into the branch (there: ${fetched}git merge ${there})`;
}

/** Why what was built cannot land; null for what can. */
export function rejectionOf(entry: LandEntry, built: Built, destination: Destination): Rejection | null {
  const again = addingAgain(entry, destination);
  const bare = { paths: [], output: "", outputFile: null };
  if (built.kind === "conflict") {
    const paths = built.paths.map((path) => printable(path, 300));
    const message = `conflicts with ${shownBranch(entry.target)} in ${paths[0] ?? "its files"}${others(paths.slice(1))}`;
    const hint = `${bringingIn(entry, destination)}, and add it again: ${again}`;
    return { ...bare, why: "conflict", message, hint, paths };
  }
  if (built.kind === "gone")
    return { ...bare, why: "gone", message: built.message, hint: `when the branch is there again: ${again}` };
  if (built.kind === "refused")
    return {
      ...bare,
      why: "refused",
      message: built.message,
      hint:
        built.hint === undefined
          ? `mend the branch, and add it again: ${again}`
          : `${built.hint}; then: ${retrying(entry, destination)}`,
    };
  return null;
}

export function refusalRejection(
  entry: LandEntry,
  error: CotenantError,
  destination: Destination,
): Rejection {
  const hint = `${error.hint}; then add it again: ${addingAgain(entry, destination)}`;
  return {
    why: "refused",
    message: `${error.code}: ${error.message}`,
    hint,
    paths: error.paths,
    output: "",
    outputFile: null,
  };
}
