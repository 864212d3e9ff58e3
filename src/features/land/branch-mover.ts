import { CotenantError, protectedError } from "../../errors/cotenant-error";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import type { RefWriter } from "../../git/refs";
import type { WorktreeEntry } from "../../identity/worktree-list";
import type { Fact, FactName, FactRecord } from "../../kernel/facts";
import { newUlid } from "../../platform/new-ulid";
import { branchName, usesOf } from "../publish/branch-rules";
import { type Attempt, type RefChange, RefCommitter } from "../publish/ref-committer";
import type { Yard } from "../worktrees/place";
import { movingAlong } from "./checkout";
import { occupantOf, unfit } from "./checkout-fitness";
import { entriesOf, entryFromFact, entryName, entryToFact, type LandEntry, type LandedAs } from "./entry";
import type { Lead } from "./lead";
import { queuePausedError, queuePauseIn, queuePauseName } from "./queue-pause";
import { shownBranch } from "./target";

/** How many landed entries are remembered for `land list --all`; the log has them all. */
const MOST_LANDED = 50;

export interface Move {
  readonly ref: string;
  /** Null: the branch is new. */
  readonly old: ObjectId | null;
  readonly next: ObjectId;
}

/** Moves branches for the merge queue, by the commit point of a publish, together with what is known of the entry (PROTOCOL 31). */
export class BranchMover {
  readonly committer: RefCommitter;

  constructor(
    private readonly yard: Yard,
    private readonly objects: ObjectDatabase,
    refs: RefWriter,
    private readonly lead: Lead,
  ) {
    this.committer = new RefCommitter(yard.workspace, yard.session, refs);
  }

  /** Also where the branch is checked out, if that worktree can follow; throws where it cannot. */
  async move(entry: LandEntry, move: Move, landed: Omit<LandedAs, "at">): Promise<Attempt> {
    const { workspace } = this.yard;
    const occupant = await occupantOf(workspace, move.ref);
    const facts = await this.landedFacts(entry, landed);
    const attempt = async () => {
      const shown = this.objects.reveal();
      const flushed = shown.then(() => this.objects.flush());
      const change = this.#change(entry, move, facts, occupant);
      return this.committer.attempt(change, { shown, flushed }).finally(() => flushed.catch(() => {}));
    };
    if (occupant === null) return attempt();
    if (move.old === null)
      throw unfit(
        occupant,
        move.ref,
        "has no commit yet",
        "get the remote's there: git pull; or switch to another branch",
      );
    // Git looks at the objects before the commit point shows them.
    await this.objects.reveal();
    return movingAlong(this.yard, occupant, { ref: move.ref, old: move.old, next: move.next }, attempt);
  }

  /** What is known of an entry once it has landed, and which older ones are forgotten for it. */
  async landedFacts(entry: LandEntry, landed: Omit<LandedAs, "at">): Promise<Map<FactName, Fact | null>> {
    const { session, workspace } = this.yard;
    const at = new Date(workspace.surroundings.platform.clock.wallMs()).toISOString();
    const done: LandEntry = {
      ...entry,
      state: "landed",
      underway: null,
      parked: null,
      landed: { ...landed, at },
    };
    const all = await entriesOf(session.coordinator);
    const before = all.filter(({ state, entryId }) => state === "landed" && entryId !== entry.entryId);
    const old = before.slice(0, Math.max(0, before.length - MOST_LANDED + 1));
    return new Map<FactName, Fact | null>([
      ...old.map(({ entryId }): [FactName, null] => [entryName(entryId), null]),
      [entryName(entry.entryId), entryToFact(done)],
    ]);
  }

  #change(
    entry: LandEntry,
    { ref, old, next }: Move,
    facts: ReadonlyMap<FactName, Fact | null>,
    occupant: WorktreeEntry | null,
  ): RefChange {
    const { workspace } = this.yard;
    const name = entryName(entry.entryId);
    const pause = queuePauseName(workspace, entry.target);
    return {
      intentId: newUlid(workspace.surroundings.platform),
      publishId: newUlid(workspace.surroundings.platform),
      requestId: null,
      noun: "land",
      ref,
      old,
      new: next,
      payload: {
        entry_id: entry.entryId,
        target: entry.target,
        branch: entry.branch,
        commit: entry.commit,
        method: entry.method,
        ...(entry.issueId === null ? {} : { issue_id: entry.issueId }),
      },
      result: { ref, commit: next, fate: "committed" },
      claims: this.lead.right === null ? [] : [this.lead.right.leaseId],
      leases: this.lead.leases,
      secret: null,
      optimistic: [],
      edits: null,
      facts,
      reads: [name, pause],
      mayMove: (seen) => this.#mayMove(entry, ref, seen, occupant),
      onCommitted: () => {},
    };
  }

  /** Under the mutex: the entry is still wanted, nobody has paused, and the branch is in use only where files have moved along. */
  async #mayMove(
    entry: LandEntry,
    ref: string,
    seen: ReadonlyMap<FactName, FactRecord>,
    occupant: WorktreeEntry | null,
  ): Promise<void> {
    const { workspace } = this.yard;
    const { platform, git } = workspace.surroundings;
    const name = entryName(entry.entryId);
    const record = seen.get(name);
    const now = record === undefined ? null : entryFromFact(name, record.value);
    if (now?.state !== "queued") throw leftMeanwhile(entry);
    const pause = queuePauseIn(workspace, seen, entry.target);
    if (pause !== null) throw queuePausedError(pause);
    const uses = await usesOf(platform, git, workspace.repository, ref);
    if (uses.every(({ gitDir, why }) => gitDir === occupant?.gitDir && why === "checked out")) return;
    throw protectedError(
      `${shownBranch(ref)} was checked out meanwhile in ${uses[0]!.where}`,
      "run the queue again",
      { ref, branch: branchName(ref) },
    );
  }
}

function leftMeanwhile(entry: LandEntry): CotenantError {
  return new CotenantError("E_NOT_FOUND", `${shownBranch(entry.branch)} has left the merge queue meanwhile`, {
    hint: "see what became of it: cotenant land list --all",
    data: { entry_id: entry.entryId },
  });
}

/** Whether a refusal at the commit point says that. A lease that is gone has the same code. */
export function hasLeft({ code, data }: CotenantError, { entryId }: LandEntry): boolean {
  return code === "E_NOT_FOUND" && data["entry_id"] === entryId;
}
