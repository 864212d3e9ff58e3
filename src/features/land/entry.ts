import type { Coordinator } from "../../coordinator/contract";
import { orThrow } from "../../errors/cotenant-error";
import type { ObjectId } from "../../git/object-name";
import { type Fact, type FactName, type FactRecord, factId, parseFactName } from "../../kernel/facts";
import { parseUlid, printable, type Ulid } from "../../kernel/ids";
import { isRefusal } from "../../kernel/refusal";
import { branchName } from "../publish/branch-rules";

export const METHODS = ["merge", "squash", "rebase"] as const;
export type Method = (typeof METHODS)[number];

/** Why an entry was put aside. */
export const PARKED_WHY = ["conflict", "checks", "gone", "refused"] as const;
export type ParkedWhy = (typeof PARKED_WHY)[number];

/** What is told of an entry that was put aside. */
export interface Parked {
  readonly why: ParkedWhy;
  readonly message: string;
  /** What to do next. */
  readonly hint: string;
  /** Of a conflict, or of what a rule refuses; the first of them. */
  readonly paths: readonly string[];
  /** The end of what the failed check printed. */
  readonly output: string;
  /** Where more of it is. */
  readonly outputFile: string | null;
  readonly at: string;
}

/** What is known of an entry that has landed. */
export interface LandedAs {
  /** Null where the target had all of it already. */
  readonly commit: ObjectId | null;
  readonly ref: string;
  /** The remote that has it; null where nothing was pushed. */
  readonly remote: string | null;
  /** The local target could not follow. */
  readonly isRemoteOnly: boolean;
  readonly at: string;
}

/** A push that was begun: whoever finds it asks the remote what became of it. */
export interface Underway {
  readonly remote: string;
  readonly ref: string;
  readonly commit: ObjectId;
}

/** One branch that is to land on a target. */
export interface LandEntry {
  readonly entryId: Ulid;
  readonly target: string;
  readonly branch: string;
  /** The branch's tip when it was added: this is what lands. */
  readonly commit: ObjectId;
  readonly method: Method;
  readonly message: string | null;
  readonly issueId: string | null;
  readonly addedBy: string;
  readonly addedAt: string;
  readonly state: "queued" | "parked" | "landed";
  readonly parked: Parked | null;
  readonly landed: LandedAs | null;
  readonly underway: Underway | null;
}

/** What nothing that happens here calls back, in words. */
export function pushesUnderWay(entries: readonly LandEntry[]): string[] {
  return entries.flatMap(({ branch, underway }) => {
    if (underway === null) return [];
    const [name, target] = [branch, underway.ref].map((ref) => printable(branchName(ref), 200));
    const remote = printable(underway.remote, 100);
    return [`${name} was being pushed to ${target} of ${remote}, and may have landed there, or land still`];
  });
}

export const LANDING = "landing";

export function entryName(entryId: Ulid): FactName {
  return orThrow(parseFactName(`${LANDING}:${entryId.toLowerCase()}`));
}

export function entryToFact(entry: LandEntry): Fact {
  const { parked, landed, underway } = entry;
  return {
    target: entry.target,
    branch: entry.branch,
    commit: entry.commit,
    method: entry.method,
    ...(entry.message === null ? {} : { message: entry.message }),
    ...(entry.issueId === null ? {} : { issue_id: entry.issueId }),
    added_by: entry.addedBy,
    added_at: entry.addedAt,
    state: entry.state,
    ...(parked === null
      ? {}
      : { parked: { ...parked, outputFile: undefined, output_file: parked.outputFile } }),
    ...(landed === null
      ? {}
      : { landed: { ...landed, isRemoteOnly: undefined, remote_only: landed.isRemoteOnly } }),
    ...(underway === null ? {} : { underway }),
  };
}

/** Null for what another version wrote: it is left alone. */
export function entryFromFact(name: FactName, fact: Fact): LandEntry | null {
  const entryId = parseUlid(factId(name));
  const text = (field: string) => (typeof fact[field] === "string" ? (fact[field] as string) : null);
  const [target, branch, commit, addedBy, addedAt] = [
    ...[text("target"), text("branch"), text("commit")],
    ...[text("added_by"), text("added_at")],
  ];
  const method = METHODS.find((one) => one === fact["method"]);
  const state = (["queued", "parked", "landed"] as const).find((one) => one === fact["state"]);
  const isWhole = target != null && branch != null && commit != null && addedBy != null && addedAt != null;
  if (isRefusal(entryId) || !isWhole || method === undefined || state === undefined) return null;
  return {
    ...{ entryId, target, branch, commit, method, state, addedBy, addedAt },
    message: text("message"),
    issueId: text("issue_id"),
    parked: parkedFrom(fact["parked"]),
    landed: landedFrom(fact["landed"]),
    underway: underwayFrom(fact["underway"]),
  };
}

function parkedFrom(value: unknown): Parked | null {
  const wire = recordOf(value);
  const why = PARKED_WHY.find((one) => one === wire?.["why"]);
  if (wire === null || why === undefined) return null;
  return {
    why,
    message: String(wire["message"] ?? ""),
    hint: String(wire["hint"] ?? ""),
    paths: Array.isArray(wire["paths"]) ? wire["paths"].map(String) : [],
    output: String(wire["output"] ?? ""),
    outputFile: typeof wire["output_file"] === "string" ? wire["output_file"] : null,
    at: String(wire["at"] ?? ""),
  };
}

function landedFrom(value: unknown): LandedAs | null {
  const wire = recordOf(value);
  if (wire === null) return null;
  return {
    commit: typeof wire["commit"] === "string" ? wire["commit"] : null,
    ref: String(wire["ref"] ?? ""),
    remote: typeof wire["remote"] === "string" ? wire["remote"] : null,
    isRemoteOnly: wire["remote_only"] === true,
    at: String(wire["at"] ?? ""),
  };
}

function underwayFrom(value: unknown): Underway | null {
  const wire = recordOf(value);
  const { remote, ref, commit } = wire ?? {};
  return typeof remote === "string" && typeof ref === "string" && typeof commit === "string"
    ? { remote, ref, commit }
    : null;
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : null;
}

/** First come, first served: ids rise with the time at which entries were added. */
export function entriesIn(facts: ReadonlyMap<FactName, FactRecord>): LandEntry[] {
  return [...facts]
    .flatMap(([name, { value }]) =>
      name.startsWith(`${LANDING}:`) ? (entryFromFact(name, value) ?? []) : [],
    )
    .sort((a, b) => (a.entryId < b.entryId ? -1 : 1));
}

export async function entriesOf(coordinator: Pick<Coordinator, "facts">): Promise<LandEntry[]> {
  return entriesIn(await coordinator.facts({ kinds: [LANDING] }));
}
