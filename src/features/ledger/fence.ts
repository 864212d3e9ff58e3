import { sharesClaims } from "../../config/shared-claims";
import type { ClaimFence, FencedPush, WrittenUnder } from "../../coordinator/fence";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, policyError } from "../../errors/cotenant-error";
import { alternateObjects } from "../../git/database";
import { printable, type Ulid } from "../../kernel/ids";
import { issueKeyOf } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import { claimsOf, recordAt } from "./claim-attempt";
import { isConfirmed } from "./confirmations";
import type { Claim } from "./ledger";
import { isLedgerOn, notConfigured, type OpenLedger, openLedger } from "./open";
import { type ClaimRecord, idsOf, readClaim, unreadableClaim } from "./record";
import { type ClaimRef, isUnreachable } from "./remote";
import { tombstone } from "./rules";
import { transportOf, withoutPassword } from "./transport";
import { holderOf, lost, whoHasIt, whyLost } from "./words";

/** One claim's new beat, as it will be at the remote when the push is done. */
interface Beat {
  readonly issueId: Ulid;
  /** Null where the claim was given back: then the beat repeats the record of its end. */
  readonly lease: Lease | null;
  readonly record: ClaimRecord;
  readonly expected: string;
  readonly oid: string;
}

/** What a push relies on: a claim that stands, or one of this clone's that was given back and that nobody has had since. */
interface Ground {
  readonly issueId: Ulid;
  readonly lease: Lease | null;
  readonly record: ClaimRecord;
  readonly oid: string;
}

/** The fence of a clone with a ledger; null where there is none. */
export async function claimFence(workspace: Workspace, session: Session): Promise<ClaimFence | null> {
  if (!isLedgerOn(workspace)) return sharesClaims(workspace.config) ? new NamedFence(workspace) : null;
  return new LedgerFence(workspace, session, await openLedger(workspace));
}

class LedgerFence implements ClaimFence {
  constructor(
    private readonly workspace: Workspace,
    private readonly session: Session,
    private readonly open: OpenLedger,
  ) {}

  async requireConfirmed(leases: readonly Lease[]): Promise<void> {
    await this.#confirmed(leases);
  }

  async requireFenced(remote: string): Promise<void> {
    const { values } = this.workspace.config;
    if (!values["publish.unfenced_remote"] && !(await this.#isLedgersOwn(remote)))
      throw this.#unfenced(remote);
  }

  async fence(written: readonly WrittenUnder[], remote: string): Promise<FencedPush | null> {
    const grounds = await this.#groundsFor(written);
    if (grounds.length === 0) return null;
    await this.requireFenced(remote);
    if (!(await this.#isLedgersOwn(remote))) {
      this.workspace.warnings.push(`${nameOf(remote)} does not have the ledger: a push there is not fenced`);
      return null;
    }
    const beats = await this.#beats(grounds);
    const { remote: refs, copy } = this.open;
    return {
      options: [
        "--atomic",
        ...beats.map(({ issueId, expected }) => `--force-with-lease=${refs.refOf(issueId)}:${expected}`),
      ],
      refspecs: beats.map(({ issueId, oid }) => `${oid}:${refs.refOf(issueId)}`),
      env: alternateObjects(`${copy.place.copy}/objects`),
      settle: (outcome) => this.#settle(beats, outcome),
    };
  }

  /**
   * What stands now for what was written under these claims: the same ones; later ones of this clone on an issue that no
   * other clone has had since; or, where none stands, the record by which this clone gave the last one back. The push is
   * fenced by it all the same, so that nobody can be granted the issue meanwhile. Within one clone its own store keeps
   * holders apart.
   */
  async #groundsFor(written: readonly WrittenUnder[]): Promise<Ground[]> {
    const { ledger } = this.open;
    const { actor } = this.session;
    const standing = await ledger.standing([...new Set(idsOf(written))]);
    const others = written.filter(({ issueId, leaseId }) => standing.get(issueId)?.leaseId !== leaseId);
    const given = new Map<Ulid, Ground>();
    if (others.length > 0) {
      const look = await ledger.look(actor, idsOf(others));
      for (const one of others) {
        const { issueId } = one;
        const ref = look.claims.get(issueId);
        const since = await this.#since(one, ref);
        if (since.other !== null) throw endedUnder(one, since.other);
        if (standing.has(issueId)) continue;
        const record = since.isThere ? await this.#givenBack(recordAt(ref)!) : null;
        if (record === null || (await this.#isEndedByOthers(one))) throw endedUnder(one, null);
        given.set(issueId, { issueId, lease: null, record, oid: ref!.oid });
      }
    }
    const confirmed = await this.#confirmed([...standing.values()]);
    const stands = confirmed.map(async ({ claim, oid }): Promise<Ground> => {
      const record = { ...(await ledger.record(claim, actor)), beatAtMs: ledger.nowMs };
      return { ...claim, record, oid };
    });
    return [...(await Promise.all(stands)), ...given.values()];
  }

  /** Which other clone was granted the issue since that claim. One that was never there comes before all others. */
  async #since(
    { issueId, leaseId }: WrittenUnder,
    ref: ClaimRef | undefined,
  ): Promise<{ other: ClaimRecord | null; isThere: boolean }> {
    if (ref === undefined) return { other: null, isThere: false };
    const { ledger, copy } = this.open;
    const cloneId = await ledger.cloneId(this.session.actor);
    const history = await copy.text(["log", "--first-parent", "--format=%B%x00", ref.oid]);
    for (const message of history.split("\0").slice(0, -1)) {
      const reading = readClaim(issueId, message);
      if (!("record" in reading)) throw unreadableClaim(issueId, reading);
      if (reading.record.cloneId !== cloneId) return { other: reading.record, isThere: false };
      if (reading.record.leaseId === leaseId) return { other: null, isThere: true };
    }
    return { other: null, isThere: false };
  }

  /** The record by which this clone's claim is given back, or was: one that ran out is given back with the push. */
  async #givenBack(record: ClaimRecord): Promise<ClaimRecord | null> {
    const how = record.ended?.how ?? null;
    if (how !== null) return how === "released" || how === "withdrawn" ? record : null;
    const { ledger } = this.open;
    const ended = { how: "withdrawn", by: this.session.actor.agentId, atMs: ledger.nowMs } as const;
    const mark = (await ledger.parts.known([record.issueId])).get(record.issueId)?.mark ?? null;
    const written = (await ledger.writtenUnder([record])).get(record.issueId) ?? [];
    return tombstone(record, ended, mark, { written });
  }

  /** Somebody in this clone has taken it away, and the remote may not have heard of it. */
  async #isEndedByOthers({ issueId, leaseId }: WrittenUnder): Promise<boolean> {
    const ends = await this.workspace.coordinator.endings([{ key: issueKeyOf(issueId), leaseId }]);
    return ends.some((end) => end.leaseId === leaseId && end.how === "forced");
  }

  async #confirmed(leases: readonly Lease[]): Promise<{ claim: Claim; oid: string }[]> {
    const { ledger } = this.open;
    const claims = claimsOf({ leases });
    const known = await ledger.confirmations(idsOf(claims));
    const cloneId = claims.length === 0 ? null : await ledger.cloneId(this.session.actor);
    return claims.map((claim) => {
      const confirmation = known.get(claim.issueId);
      if (isConfirmed(claim.lease, confirmation, cloneId, ledger.nowMs))
        return { claim, oid: confirmation.oid };
      throw provisional(claim);
    });
  }

  /** PROTOCOL 24: a new commit on each claim, for a ref that does not change is never sent, and so never checked. */
  async #beats(grounds: readonly Ground[]): Promise<Beat[]> {
    const { ledger, copy } = this.open;
    const { actor } = this.session;
    await copy.ensure();
    const missing = [];
    for (const { issueId, oid } of grounds)
      if ((await copy.run(["cat-file", "-e", `${oid}^{commit}`])).status !== 0) missing.push(issueId);
    if (missing.length > 0) await ledger.look(actor, missing);
    const updates = grounds.map(({ issueId, record, oid: expected }) => {
      const subject = `Publish under ${issueId} by ${record.agentId}, token ${record.token}`;
      return { issueId, expected, record, subject };
    });
    const made = await ledger.prepare(actor, updates);
    return made.map(({ issueId, record, expected, oid }, i) => ({
      issueId,
      lease: grounds[i]!.lease,
      record,
      expected: expected!,
      oid,
    }));
  }

  async #isLedgersOwn(remote: string): Promise<boolean> {
    const { transport } = this.open.copy;
    if (remote === transport.remote) return true;
    const { surroundings, repository } = this.workspace;
    const isName = /^[A-Za-z0-9_][\w.-]*$/.test(remote);
    if (!isName) return withoutPassword(remote) === withoutPassword(transport.url);
    const other = await transportOf(surroundings.git, {
      root: repository.worktreeRoot,
      env: surroundings.env,
      remote,
    });
    return other.url === transport.url;
  }

  #unfenced(remote: string): CotenantError {
    const name = nameOf(remote);
    return policyError(
      `${name} does not have the ledger, so a push there cannot be fenced`,
      `push to ${this.open.copy.transport.remote}, or allow it: publish.unfenced_remote`,
      { remote: name, ledger: this.open.copy.transport.remote, setting: "publish.unfenced_remote" },
    );
  }

  // --- afterwards -----------------------------------------------------------------------------------------

  async #settle(
    beats: readonly Beat[],
    outcome: "done" | "refused" | "unclear",
  ): Promise<"done" | "not done" | "again" | "unclear"> {
    const { ledger, remote } = this.open;
    const { actor } = this.session;
    const pushedAtMs = ledger.nowMs;
    const held = beats.filter((beat): beat is Beat & { lease: Lease } => beat.lease !== null);
    const settled = () =>
      ledger.forget(
        actor,
        beats.filter(({ lease }) => lease === null).map(({ record }) => record),
      );
    if (outcome === "done") {
      await ledger.confirm(
        actor,
        held.map(({ record, oid }) => ({ record, oid, pushedAtMs })),
      );
      await settled();
      return "done";
    }
    try {
      const look = await ledger.look(actor, idsOf(beats));
      const isThere = beats.every(({ issueId, oid }) => look.claims.get(issueId)?.oid === oid);
      for (const { issueId, lease } of held) {
        const record = recordAt(look.claims.get(issueId));
        if (record?.isHeld === true && record.leaseId === lease.leaseId) continue;
        await ledger.forget(actor, [{ issueId, leaseId: lease.leaseId }]);
        await ledger.overrule(actor, [lease], whyLost(record));
        throw lost(issueId, record);
      }
      // Another process of this clone may have moved it: from there the next try goes on.
      await ledger.confirm(
        actor,
        held.map(({ issueId }) => {
          const ref = look.claims.get(issueId)!;
          return { record: recordAt(ref)!, oid: ref.oid, pushedAtMs };
        }),
      );
      if (isThere) {
        await settled();
        return "done";
      }
      const isMoved = beats.some(({ issueId, expected }) => look.claims.get(issueId)?.oid !== expected);
      return outcome === "refused" && isMoved ? "again" : "not done";
    } catch (error) {
      // The claims stand as they did, or with one more beat: what was confirmed of them is still true.
      if (!isUnreachable(error)) throw error;
      return "unclear";
    } finally {
      await remote.settle();
    }
  }
}

/** Where the ledger cannot be asked: what was written under a claim stays here. */
class NamedFence implements ClaimFence {
  constructor(private readonly workspace: Workspace) {}

  async requireConfirmed(leases: readonly Lease[]): Promise<void> {
    const [first] = claimsOf({ leases });
    if (first !== undefined) throw provisional(first);
  }

  async requireFenced(): Promise<void> {
    throw notConfigured(this.workspace);
  }

  async fence(): Promise<never> {
    throw notConfigured(this.workspace);
  }
}

function provisional({ issueId, lease }: Claim): CotenantError {
  return new CotenantError(
    "E_PROVISIONAL",
    `the claim on issue ${issueId} is provisional: the ledger has not confirmed it`,
    { data: { issue_id: issueId, lease_id: lease.leaseId } },
  );
}

function endedUnder({ commit, issueId, leaseId }: WrittenUnder, other: ClaimRecord | null): CotenantError {
  const had = other === null ? "nobody else has had it since" : `${holderOf(other)} has had it since`;
  const who = other?.isHeld === true ? whoHasIt(other) : had;
  return new CotenantError(
    "E_FENCING_MISMATCH",
    `commit ${commit.slice(0, 12)} was written under the claim ${leaseId} on issue ${issueId}, which has ended: ${who}`,
    {
      hint:
        other === null
          ? `claim it again, then publish again: cotenant claim acquire ${issueId}`
          : "others may have worked on it since: claim it when they are done, and make the change anew on top of theirs",
      data: { commit, issue_id: issueId, lease_id: leaseId, claimed_by: other?.agentId ?? null },
    },
  );
}

function nameOf(remote: string): string {
  return printable(withoutPassword(remote), 100);
}
