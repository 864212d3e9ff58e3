import * as v from "valibot";
import type { Decoded } from "../../codec/codec";
import { anyText, isTrue, orNull, textOrNull, those } from "../../codec/fields";
import { codecOf } from "../../codec/record";
import type { Coordinator } from "../../coordinator/contract";
import { type Fact, type FactName, type FactRecord, factId, factName } from "../../kernel/facts";
import { printable, type Ulid, ulidIn } from "../../kernel/ids";
import { branchName } from "../publish/branch-rules";

export const METHODS = ["merge", "squash", "rebase"] as const;
export type Method = (typeof METHODS)[number];

/** Why an entry was put aside. */
const PARKED_WHY = ["conflict", "checks", "gone", "refused"] as const;
export type ParkedWhy = (typeof PARKED_WHY)[number];

/** What is told of an entry that was put aside. */
const PARKED = v.object({
  why: v.picklist(PARKED_WHY),
  message: anyText,
  /** What to do next. */
  hint: anyText,
  /** Of a conflict, or of what a rule refuses; the first of them. */
  paths: those(anyText),
  /** The end of what the failed check printed. */
  output: anyText,
  /** Where more of it is. */
  outputFile: textOrNull,
  at: anyText,
});

/** What is known of an entry that has landed. */
const LANDED = v.object({
  /** Null where the target had all of it already. */
  commit: textOrNull,
  ref: anyText,
  /** The remote that has it; null where nothing was pushed. */
  remote: textOrNull,
  /** The local target could not follow. */
  isRemoteOnly: isTrue,
  at: anyText,
});

/** A push that was begun: whoever finds it asks the remote what became of it. */
const UNDERWAY = v.object({ remote: v.string(), ref: v.string(), commit: v.string() });

const ENTRY = codecOf(
  {
    target: v.string(),
    branch: v.string(),
    /** The branch's tip when it was added: this is what lands. */
    commit: v.string(),
    method: v.picklist(METHODS),
    message: textOrNull,
    issueId: textOrNull,
    addedBy: v.string(),
    addedAt: v.string(),
    state: v.picklist(["queued", "parked", "landed"]),
    parked: orNull(PARKED),
    landed: orNull(LANDED),
    underway: orNull(UNDERWAY),
  },
  { names: { isRemoteOnly: "remote_only" }, leavesNullsOut: true },
);

/** One branch that is to land on a target. */
export type LandEntry = Decoded<typeof ENTRY> & { readonly entryId: Ulid };
export type LandedAs = NonNullable<LandEntry["landed"]>;
export type Underway = NonNullable<LandEntry["underway"]>;

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
  return factName(LANDING, entryId.toLowerCase());
}

export function entryToFact(entry: LandEntry): Fact {
  return ENTRY.encode(entry);
}

/** Null for what another version wrote: it is left alone. */
export function entryFromFact(name: FactName, fact: Fact): LandEntry | null {
  const [entryId, entry] = [ulidIn(factId(name)), ENTRY.decode(fact)];
  return entryId === null || entry === null ? null : { entryId, ...entry };
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
