import { thingsUnder } from "../../testing/checker/things";
import type { Verb } from "../../testing/checker/witness";
import { guardedWrite, type Held } from "../../testing/workload/guarded-write";
import type { Session } from "../coordinator/session";
import { Workspace } from "../coordinator/workspace";
import { CotenantError, orThrow } from "../errors/cotenant-error";
import { byKey, type LeaseRef } from "../kernel/commands";
import { type LeaseId, parseAgentId, parseWorktreeId, trusted } from "../kernel/ids";
import { type LeaseKey, parseKey } from "../kernel/keys";
import type { Lease } from "../kernel/lease";
import { thisMachine } from "../platform/node/this-machine";
import type { Briefing, Wish } from "./messages";
import { tell } from "./stdio";

/** Somebody else has it, or was first. */
const REFUSALS = ["E_LOCK_CONFLICT", "E_QUEUED", "E_WAIT_TIMEOUT"];
/** What a holder is told whose lease ended without it (docs/ERRORS.md: exit 7 or 8). */
const STALE = ["E_LOCK_EXPIRED", "E_FENCING_MISMATCH"];
/** The same where only the key is known: it may be somebody else's now (6), or nobody's (4). */
const LOSSES = [...STALE, "E_NOT_FOUND", "E_LOCK_NOT_HELD"];

/** An agent's operations on the real store, each told to the demo before and after. */
export class AgentAtWork {
  readonly session: Session;
  readonly #workspace: Workspace;
  readonly #briefing: Briefing;
  /** Of the last grant. */
  #secret: string | null = null;

  private constructor(workspace: Workspace, session: Session, briefing: Briefing) {
    this.#workspace = workspace;
    this.session = session;
    this.#briefing = briefing;
  }

  static async open(briefing: Briefing): Promise<AgentAtWork> {
    const { cwd, agentId, sessionId } = briefing;
    const workspace = await Workspace.open(
      { ...thisMachine(), cwd, isTerminal: false },
      { agentId, session: sessionId, doing: "demo", isLongLived: true },
    );
    return new AgentAtWork(workspace, await workspace.session("write"), briefing);
  }

  /** Null when it was refused. */
  async acquire(wish: Wish, orderId: number | null): Promise<Held[] | null> {
    let queued = false;
    const askedAtMs = this.#workspace.surroundings.platform.clock.monotonicMs();
    const onWait = ({ ahead }: { ahead: number }) => {
      queued = true;
      tell({ say: "queued", id: orderId, ahead });
      tell({ say: "now", doing: "waits", keys: wish.keys });
    };
    const wait = wish.waitMs === null ? null : { timeoutMs: wish.waitMs, onWait };
    const keys = wish.keys.map((key) => ({ key: orThrow(parseKey(key)), reach: "repository" as const }));
    tell({ say: "now", doing: "asks", keys: wish.keys });
    tell({ say: "asks" });
    try {
      const grant = await this.session.acquire(keys, { ttlSecs: wish.ttlSecs, bind: wish.bind, wait });
      this.#secret = grant.secret;
      const leases = grant.leases.map(heldOf);
      const ended = grant.ended.map(({ leaseId, how }) => ({ leaseId, how }));
      const adopted = grant.leases.some((lease) => lease.acquiredAt.monotonicMs < askedAtMs);
      tell({ say: "granted", leases, ended, queued, adopted });
      tell({ say: "now", doing: "works", keys: wish.keys });
      return leases;
    } catch (error) {
      tell({ say: "refused", code: codeIn(error, REFUSALS) });
      return null;
    }
  }

  /** False when a lease was no longer ours: fenced off. */
  async write(verb: Verb, leases: readonly Held[]): Promise<boolean> {
    const { ground, witness } = this.#briefing;
    const targets = leases.map((lease) => ({ lease, things: thingsUnder(lease.key, ground) }));
    const stale = await guardedWrite(this.#workspace, this.session, verb, targets, witness);
    if (stale === null) return true;
    // The store must say the same by itself.
    tell({ say: "fenced", key: stale.key, token: stale.token, code: await this.#refusalOf(stale) });
    await this.#tryOnSuccessor(stale);
    return false;
  }

  /** Why it was refused; null where it was done. Until one of both is told, the log may know more than we do. */
  async #ask(expected: readonly string[], act: () => Promise<void>): Promise<string | null> {
    tell({ say: "asks" });
    try {
      await act();
      return null;
    } catch (error) {
      const code = codeIn(error, expected);
      tell({ say: "lost", code });
      return code;
    }
  }

  async #refusalOf(stale: Held): Promise<string> {
    const code = await this.#ask(STALE, async () => {
      await this.#renew([stale]);
      tell({ say: "trouble", message: `${stale.key} #${stale.token} was stale, and yet it was renewed` });
    });
    return code ?? "";
  }

  /** A stale secret opens nothing: not even who knows the successor's lease by its id can end it. */
  async #tryOnSuccessor(stale: Held): Promise<void> {
    const { coordinator } = this.#workspace;
    const { key } = refOf(stale);
    const found = await coordinator.find([{ key, leaseId: null }]);
    const successor = found.find(({ lease }) => lease.agentId !== this.session.actor.agentId)?.lease;
    if (successor === undefined) return;
    await this.#ask(LOSSES, async () => {
      await this.#release([{ key, leaseId: successor.leaseId }], this.#secret);
      tell({ say: "trouble", message: `${key} #${successor.fencingToken} was released with an old secret` });
    });
  }

  async renew(leases: readonly Held[]): Promise<void> {
    await this.#ask(LOSSES, () => this.#renew(leases));
  }

  async #renew(leases: readonly Held[]): Promise<void> {
    const renewed = await this.session.renew(leases.map(refOf), NO_CHANGE);
    tell({ say: "renewed", leaseIds: renewed.leases.map(({ leaseId }) => leaseId) });
  }

  /** By key, as people do it: what is on record decides which lease is meant, never who holds it now. */
  async release(leases: readonly Held[]): Promise<void> {
    const refs = leases.map((held) => byKey(refOf(held).key));
    const refusal = await this.#ask(LOSSES, () => this.#release(refs));
    // All or nothing: one lease lost must not keep the others.
    if (refusal !== null && leases.length > 1) for (const lease of leases) await this.release([lease]);
  }

  async #release(refs: readonly LeaseRef[], secret?: string | null): Promise<void> {
    const released = await this.session.release(refs, secret === undefined ? {} : { secret });
    tell({ say: "released", leaseIds: released.leases.map(({ leaseId }) => leaseId) });
  }

  async transfer(held: Held, toAgent: string, toWorktree: string): Promise<boolean> {
    const refusal = await this.#ask(LOSSES, async () => {
      const { leases } = await this.session.transfer(refOf(held), {
        toAgent: orThrow(parseAgentId(toAgent)),
        toWorktree: orThrow(parseWorktreeId(toWorktree)),
        toBranch: null,
        reason: "it is better at this",
      });
      tell({ say: "transferred", from: held.leaseId, lease: heldOf(leases[0]!) });
    });
    return refusal === null;
  }
}

const NO_CHANGE = { ttlSecs: null, overrideMax: false, reason: null };

function refOf(held: Held): { key: LeaseKey; leaseId: LeaseId } {
  return { key: trusted(held.key), leaseId: trusted(held.leaseId) };
}

function heldOf({ leaseId, key, fencingToken }: Lease): Held {
  return { leaseId, key, token: fencingToken };
}

/** Any other failure is trouble, and ends the worker. */
function codeIn(error: unknown, expected: readonly string[]): string {
  if (error instanceof CotenantError && expected.includes(error.code)) return error.code;
  throw error;
}
