import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, errorFrom } from "../../errors/cotenant-error";
import { RefMoved, type RefWriter, RefWriterLost, readRef } from "../../git/refs";
import type { LeaseRef } from "../../kernel/commands";
import type { Fact, FactName, FactRecord } from "../../kernel/facts";
import { printable, type Ulid } from "../../kernel/ids";
import { pathOf } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import type { Refusal } from "../../kernel/refusal";
import type { ProcessIdentity } from "../../platform/platform";
import type { Intention, Standing } from "../../store/guarded-write";
import type { LockHandle } from "../../store/mutex";
import { type IssueEdits, judgeEdits, othersOn } from "./coverage";
import { typedPath } from "./hint-words";
import { eventOf, INTENT, type Intent, intentName, intentToFact } from "./intents";
import { emptyHeadLocks, intentsIn } from "./settlement";

/** One commit that a branch is to point to. */
export interface RefChange
  extends Pick<Intent, "intentId" | "publishId" | "requestId" | "noun" | "ref" | "old" | "new" | "claims"> {
  /** What is written of it, besides what every line of a publish says. */
  readonly payload: Readonly<Record<string, unknown>>;
  /** What a retry with the same request id is told. */
  readonly result: Readonly<Record<string, unknown>>;
  /** Everything that it rests on. */
  readonly leases: readonly Lease[];
  readonly secret: string | null;
  /** Paths that it rests on nobody's holding them. */
  readonly optimistic: readonly string[];
  /** What it does to issues. */
  readonly edits: IssueEdits | null;
  /** What else is so once it is done. */
  readonly facts?: ReadonlyMap<FactName, Fact | null>;
  /** Facts that `mayMove` has to see. */
  readonly reads?: readonly FactName[];
  /** Under the mutex, just before the branch moves: throws where it may not, such as where it is checked out (PROTOCOL 20). */
  readonly mayMove: (facts: ReadonlyMap<FactName, FactRecord>) => Promise<void>;
  /** Told under the mutex, once the branch has moved: whoever waits for it need not wait for the disk as well. */
  readonly onCommitted: () => void;
}

/** Everything that the commit consists of. */
export interface Objects {
  /** Git finds it. Until then the intent is as far as it goes. */
  readonly shown: Promise<void>;
  /** It is on the disk. Until then the branch may be prepared, which refers to nothing yet, and not changed. */
  readonly flushed: Promise<void>;
}

/** What came of one try. */
export type Attempt =
  | { readonly kind: "committed" }
  /** The branch is not where it was, or somebody else is changing it. */
  | { readonly kind: "moved"; readonly isBusy: boolean }
  /** A lease that it rests on does not hold any more, or the branch may not be changed any more. */
  | { readonly kind: "refused"; readonly error: CotenantError }
  /** By an earlier call with the same request id. */
  | { readonly kind: "replayed"; readonly type: string; readonly result: Readonly<Record<string, unknown>> };

const MOST_TOKENS = 100;
const MOST_STARTS = 3;

/**
 * PROTOCOL 18: the intent on the disk, then `prepare`, then, in one critical section of the store, the proof of every
 * lease, Git's `commit`, and the line that says so. Killed anywhere in between, the ref is old or new, and the intent says
 * to whoever comes next where to look.
 */
export class RefCommitter {
  #lock: LockHandle | null = null;
  /** Intents whose end this process could not write: they are settled like those of the dead. */
  readonly left = new Set<Ulid>();

  constructor(
    private readonly workspace: Workspace,
    private readonly session: Session,
    private readonly refs: RefWriter,
  ) {}

  /** So that a lease of the branch is not held while a process starts. */
  async warmUp(): Promise<void> {
    await this.#startGit();
  }

  async attempt(change: RefChange, objects: Objects): Promise<Attempt> {
    // The first failure is reported; the others must not be unhandled rejections.
    objects.shown.catch(() => {});
    objects.flushed.catch(() => {});
    const git = await this.#startGit();
    const begun = await this.#intend(change, git);
    if (begun !== null) return begun;
    try {
      await objects.shown;
    } catch (error) {
      await this.#giveUp(change, "failed");
      throw error;
    }
    try {
      await this.refs.prepare([{ ref: change.ref, next: change.new, previous: change.old }]);
    } catch (error) {
      // A Git that says why it refuses has put everything back. One that says nothing may have left its lock behind,
      // which only an open intent allows anybody to remove.
      if (error instanceof RefWriterLost) return this.#letGo(change);
      if (!(error instanceof RefMoved) && (await this.#isLocked(change))) await this.#letGo(change);
      else await this.#giveUp(change, error instanceof RefMoved ? "moved" : "failed");
      if (error instanceof RefMoved) return { kind: "moved", isBusy: error.isBusy };
      throw error;
    }
    try {
      await objects.flushed;
    } catch (error) {
      await this.#takeBack(change);
      throw error;
    }
    return this.#commit(change);
  }

  /** One Git for many publishes, as long as it holds the lock that we hold. */
  async #startGit(): Promise<ProcessIdentity> {
    const { store } = this.workspace;
    const lock = await store.lockHandle();
    if (this.#lock !== null && lock.opening !== this.#lock.opening) await this.refs.close();
    this.#lock = lock;
    for (let tries = 0; tries < MOST_STARTS; tries++) {
      const identity = await this.refs.start([lock.fd]);
      if (identity !== null) return identity;
      // The one that was kept from the last time has been killed since.
      await this.refs.close();
    }
    throw new CotenantError("E_GIT", "the Git that was to change the branch ended at once");
  }

  /** Null once the intent is on the disk. */
  async #intend(change: RefChange, git: ProcessIdentity): Promise<Attempt | null> {
    const { platform } = this.workspace.surroundings;
    const intent: Intent = {
      intentId: change.intentId,
      publishId: change.publishId,
      requestId: change.requestId,
      noun: change.noun,
      ref: change.ref,
      old: change.old,
      new: change.new,
      agentId: this.session.actor.agentId,
      claims: change.claims,
      branchLease: change.leases.find(({ key }) => key === `ref:${change.ref}`)?.leaseId ?? null,
      facts: change.facts ?? new Map(),
      publisher: platform.processes.self(),
      git,
      atMs: platform.clock.wallMs(),
    };
    let refusal: Refusal | null = null;
    await this.session.write<true>(refsTo(change.leases), {
      about: aboutOf(change),
      facts: [],
      isOnlyLogged: true,
      besides: change.secret,
      body: async (standing) => {
        refusal = standing.refusal;
        if (refusal !== null) return null;
        return {
          type: eventOf(change.noun, "intended"),
          payload: {
            ...line(change),
            for_request: change.requestId,
            git_pid: git.pid,
            git_start_time: git.startTime,
            tokens: tokensOf(standing.leases),
          },
          facts: new Map([[intentName(change.intentId), intentToFact(intent)]]),
          answer: true,
        };
      },
    });
    return refusal === null ? null : { kind: "refused", error: errorFrom(refusal) };
  }

  async #commit(change: RefChange): Promise<Attempt> {
    let attempt: Attempt | null = null;
    const conclude = (one: Attempt) => {
      attempt = one;
    };
    let written: Awaited<ReturnType<Session["write"]>>;
    try {
      written = await this.session.write<true>(refsTo(change.leases), {
        about: aboutOf(change),
        facts: change.reads ?? [],
        factKinds: [INTENT],
        besides: change.secret,
        requestId: change.requestId,
        body: (standing) => this.#decide(change, standing, conclude),
      });
    } catch (error) {
      await this.#letGo(change);
      throw error;
    }
    if (written.replayed) {
      await this.#giveUp(change, "repeated");
      return { kind: "replayed", type: written.record.type, result: written.record.result ?? {} };
    }
    await this.refs.abort().catch(() => {});
    return attempt ?? { kind: "moved", isBusy: false };
  }

  /** Under the mutex: here it is decided, once and for all. */
  async #decide(
    change: RefChange,
    { refusal, facts, leases }: Standing,
    conclude: (attempt: Attempt) => void,
  ): Promise<Intention<true> | null> {
    // Somebody took us for dead, and wrote so: whoever relied on that must not be proved wrong.
    if (!facts.has(intentName(change.intentId))) return null;
    const abandon = (attempt: Attempt, why: string): Intention<true> => {
      conclude(attempt);
      return abandoned(change, why);
    };
    const refuse = (error: CotenantError) => abandon({ kind: "refused", error }, error.code);
    if (refusal !== null) return refuse(errorFrom(refusal));
    const { store } = this.workspace;
    try {
      await change.mayMove(facts);
      if (change.edits !== null) await judgeEdits(this.workspace, change.edits);
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      return refuse(error);
    }
    const other = await othersOn(this.workspace, this.session.actor, change.optimistic);
    if (other !== null) return refuse(taken(this.workspace, other));
    // While another publish to this branch has no end, only the branch itself can tell what became of it: it must not
    // move on before somebody has looked.
    const isBusy = intentsIn(facts).some(
      ({ ref, intentId }) => ref === change.ref && intentId !== change.intentId,
    );
    if (isBusy) return abandon({ kind: "moved", isBusy: true }, "unsettled");
    const moved: Attempt = { kind: "moved", isBusy: false };
    if (this.#lock === null || !store.mutex.isSame(this.#lock)) return abandon(moved, "lock");
    if (
      !(await this.refs.commit()) &&
      (!(await this.#isThere(change)) || (await this.#isHeadLocked(change)))
    ) {
      // Git died of it. A lock of its may still be there, and the intent has to stay open until it is gone.
      this.left.add(change.intentId);
      conclude({ kind: "moved", isBusy: true });
      return null;
    }
    conclude({ kind: "committed" });
    change.onCommitted();
    // While the line is written and synced, so is the branch.
    const synced = this.refs.sync([change.ref]);
    synced.catch(() => {});
    return {
      type: eventOf(change.noun, "committed"),
      payload: { ...line(change), ...change.payload, tokens: tokensOf(leases) },
      facts: new Map([[intentName(change.intentId), null], ...(change.facts ?? [])]),
      settle: () => synced,
      answer: true,
      result: change.result,
    };
  }

  /** If Git gave no reply, the ref read under the mutex decides. */
  async #isThere({ ref, new: next }: RefChange): Promise<boolean> {
    const { surroundings, repository } = this.workspace;
    const value = await readRef(surroundings.platform, surroundings.git, repository, ref);
    return value !== null && "oid" in value && value.oid === next;
  }

  /** Git unlocks the branch before it unlocks the HEAD that is on it. */
  async #isHeadLocked({ ref }: RefChange): Promise<boolean> {
    return (await emptyHeadLocks(this.workspace, ref)).length > 0;
  }

  /** A Git that fails removes its lock as well, if the disk allows it. */
  async #isLocked({ ref }: RefChange): Promise<boolean> {
    const { surroundings, repository } = this.workspace;
    return (await surroundings.platform.files.lstat(`${repository.commonDir}/${ref}.lock`)) !== null;
  }

  /** Prepared, and not to be committed. A Git that does not say that it has let go may have left its lock behind. */
  async #takeBack(change: RefChange): Promise<void> {
    try {
      await this.refs.abort();
    } catch {
      await this.#letGo(change);
      return;
    }
    await this.#giveUp(change, "failed");
  }

  async #giveUp(change: RefChange, why: string): Promise<void> {
    await this.refs.abort().catch(() => {});
    const name = intentName(change.intentId);
    try {
      await this.session.write<true>([], {
        about: aboutOf(change),
        facts: [name],
        isOnlyLogged: true,
        body: async ({ facts }) => (facts.has(name) ? abandoned(change, why) : null),
      });
    } catch (error) {
      this.left.add(change.intentId);
      throw error;
    }
  }

  /** The outcome is not known here: it is settled once our Git has ended. */
  async #letGo({ intentId }: RefChange): Promise<Attempt> {
    this.left.add(intentId);
    await this.refs.close().catch(() => {});
    return { kind: "moved", isBusy: true };
  }
}

function abandoned(change: RefChange, why: string): Intention<true> {
  return {
    type: eventOf(change.noun, "abandoned"),
    payload: { ...line(change), why },
    facts: new Map([[intentName(change.intentId), null]]),
    answer: true,
  };
}

function aboutOf({ noun, ref }: RefChange): string {
  return `${noun} ${ref}`;
}

function line({ publishId, ref, old, new: next }: RefChange): Record<string, unknown> {
  return { publish_id: publishId, ref, old, new: next };
}

function refsTo(leases: readonly Lease[]): LeaseRef[] {
  return leases.map(({ key, leaseId }) => ({ key, leaseId }));
}

function tokensOf(leases: readonly Lease[]): Record<string, unknown>[] {
  return leases
    .slice(0, MOST_TOKENS)
    .map(({ key, leaseId, fencingToken }) => ({ key, lease_id: leaseId, fencing_token: fencingToken }));
}

function taken(workspace: Workspace, { key, agentId, leaseId }: Lease): CotenantError {
  const where = `${key.startsWith("dir:") ? "--dir " : ""}${typedPath(workspace, pathOf(key))}`;
  return new CotenantError("E_LOCK_CONFLICT", `${printable(key)} was taken by ${agentId} meanwhile`, {
    hint: `wait for it: cotenant lock acquire ${where} --wait --timeout 300`,
    data: { key, holder: agentId, lease_id: leaseId },
  });
}
