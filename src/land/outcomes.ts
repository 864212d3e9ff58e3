import type { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import type { ObjectId } from "../objects/object-name";
import { branchName } from "../publish/branch-rules";
import { others, typed } from "../publish/hint-words";
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

/** Why what was built cannot land; null for what can. */
export function rejectionOf(entry: LandEntry, built: Built): Rejection | null {
  const again = `cotenant land add ${typed(branchName(entry.branch))}`;
  const bare = { paths: [], output: "", outputFile: null };
  if (built.kind === "conflict") {
    const paths = built.paths.map((path) => printable(path, 300));
    const message = `conflicts with ${shownBranch(entry.target)} in ${paths[0] ?? "its files"}${others(paths.slice(1))}`;
    const hint = `bring the target into the branch (git merge ${typed(branchName(entry.target))}), and add it again: ${again}`;
    return { ...bare, why: "conflict", message, hint, paths };
  }
  if (built.kind === "gone")
    return { ...bare, why: "gone", message: built.message, hint: `when the branch is there again: ${again}` };
  if (built.kind === "refused")
    return {
      ...bare,
      why: "refused",
      message: built.message,
      hint: `mend the branch, and add it again: ${again}`,
    };
  return null;
}

export function refusalRejection(entry: LandEntry, error: CotenantError): Rejection {
  const listed = Array.isArray(error.data["paths"]) ? (error.data["paths"] as unknown[]) : [];
  const paths = listed.map((one) =>
    String(typeof one === "object" && one !== null ? ((one as { path?: unknown }).path ?? "") : one),
  );
  const again = `cotenant land add ${typed(branchName(entry.branch))}`;
  const hint = `${error.hint}; then add it again: ${again}`;
  return {
    why: "refused",
    message: `${error.code}: ${error.message}`,
    hint,
    paths,
    output: "",
    outputFile: null,
  };
}
