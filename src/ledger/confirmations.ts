import type { Coordinator } from "../coordinator/contract";
import { isCount, timeMsOf } from "../kernel/bounds";
import type { Actor } from "../kernel/commands";
import { type Fact, type FactName, factId } from "../kernel/facts";
import { makeUlid, parseUlid, type Ulid } from "../kernel/ids";
import { nameOf } from "../kernel/keys";
import type { Lease } from "../kernel/lease";
import { isRefusal } from "../kernel/refusal";
import type { Platform } from "../platform/platform";

/**
 * What this clone's log knows of its claims at the remote. A claim is a local lease like any other; it counts between
 * machines only while this says so. Without a word here it is provisional: whoever dies between the local grant and the
 * push leaves nothing that anybody could take for more.
 */
export interface Confirmation {
  readonly issueId: Ulid;
  readonly leaseId: Ulid;
  readonly token: number;
  /** The claim's commit at the remote. */
  readonly oid: string;
  readonly pushedAtMs: number;
  /** As others read it. From then on it is provisional again. */
  readonly expiresAtMs: number | null;
  /** Which clone it is: a copy of the whole repository must not think that it holds this. */
  readonly cloneId: Ulid;
  readonly state:
    | "confirmed"
    /** Pushed without an answer (PROTOCOL 27): the next contact adopts it, or takes it back. */
    | "unsettled"
    /** Given back here; the remote has not heard of it. */
    | "withdraw";
}

const LEDGER_KIND = "ledger";
const CLONE = "ledger-clone:id" as FactName;

export function confirmationName(issueId: Ulid): FactName {
  return `${LEDGER_KIND}:${issueId.toLowerCase()}` as FactName;
}

export function confirmationToFact(c: Confirmation): Fact {
  return {
    lease_id: c.leaseId,
    fencing_token: c.token,
    oid: c.oid,
    pushed_at: new Date(c.pushedAtMs).toISOString(),
    expires_at: c.expiresAtMs === null ? null : new Date(c.expiresAtMs).toISOString(),
    clone_id: c.cloneId,
    state: c.state,
  };
}

function confirmationFrom(name: FactName, fact: Fact): Confirmation | null {
  const issueId = parseUlid(factId(name));
  const leaseId = parseUlid(String(fact["lease_id"]));
  const cloneId = parseUlid(String(fact["clone_id"]));
  const { fencing_token: token, oid, pushed_at: pushedAt, expires_at: expiresAt, state } = fact;
  if (isRefusal(issueId) || isRefusal(leaseId) || isRefusal(cloneId)) return null;
  if (!isCount(token) || typeof oid !== "string" || !/^[0-9a-f]{40,64}$/.test(oid)) return null;
  return {
    issueId,
    leaseId,
    cloneId,
    token,
    oid,
    pushedAtMs: timeMsOf(pushedAt) ?? 0,
    // One that cannot be understood has run out.
    expiresAtMs: expiresAt === null ? null : (timeMsOf(expiresAt) ?? 0),
    state: state === "unsettled" || state === "withdraw" ? state : "confirmed",
  };
}

export async function readConfirmations(
  coordinator: Pick<Coordinator, "facts">,
  ids: readonly Ulid[] | "all",
): Promise<Map<Ulid, Confirmation>> {
  const facts = await coordinator.facts(
    ids === "all" ? { kinds: [LEDGER_KIND] } : { names: ids.map(confirmationName) },
  );
  const found = new Map<Ulid, Confirmation>();
  for (const [name, { value }] of facts) {
    const confirmation = confirmationFrom(name, value);
    if (confirmation !== null) found.set(confirmation.issueId, confirmation);
  }
  return found;
}

/** The one question that everything asks that needs a claim to count beyond this clone. */
export function isConfirmed(
  lease: Pick<Lease, "leaseId" | "key">,
  confirmation: Confirmation | undefined,
  cloneId: Ulid | null,
  nowMs: number,
): confirmation is Confirmation {
  return (
    confirmation?.state === "confirmed" &&
    confirmation.leaseId === lease.leaseId &&
    confirmation.cloneId === cloneId &&
    (confirmation.expiresAtMs === null || nowMs < confirmation.expiresAtMs)
  );
}

export function issueOfLease({ key }: Pick<Lease, "key">): Ulid | null {
  if (!key.startsWith("issue:")) return null;
  const id = parseUlid(nameOf(key));
  return isRefusal(id) ? null : id;
}

/** Who this clone is to others. Null until it has dealt with the ledger for the first time. */
export async function readCloneId(
  platform: Platform,
  coordinator: Pick<Coordinator, "facts">,
  controlDir: string,
): Promise<Ulid | null> {
  const fact = (await coordinator.facts({ names: [CLONE] })).get(CLONE)?.value;
  return fact === undefined ? null : idIn(fact, await whereabouts(platform, controlDir));
}

/** The same, given where it has none yet, or was copied from one that has. */
export async function ensureCloneId(
  platform: Platform,
  coordinator: Pick<Coordinator, "facts" | "write">,
  controlDir: string,
  actor: Actor,
): Promise<Ulid> {
  const place = await whereabouts(platform, controlDir);
  const known = (await coordinator.facts({ names: [CLONE] })).get(CLONE)?.value;
  const id = known === undefined ? null : idIn(known, place);
  if (id !== null && isSame(known!, place)) return id;
  const written = await coordinator.write<Ulid>({
    actor,
    leases: [],
    secrets: [],
    secretHash: "",
    requestId: null,
    about: "this clone's name in the ledger",
    facts: [CLONE],
    body: async ({ facts }) => {
      // Somebody else may have been faster.
      const fact = facts.get(CLONE)?.value;
      const given =
        (fact === undefined ? null : idIn(fact, place)) ??
        makeUlid(platform.clock.wallMs(), platform.random.bytes(10));
      return {
        type: "sync.attached",
        payload: { clone_id: given },
        facts: new Map([[CLONE, { clone_id: given, ...place }]]),
        answer: given,
      };
    },
  });
  if (written.replayed || written.answer === null)
    throw new Error("a write without a request id was replayed");
  return written.answer;
}

interface Whereabouts {
  readonly inode: string;
  readonly path: string;
}

/**
 * One that was moved has its inode, one that was put back from a backup its path. A copy has neither: it must not think that
 * it holds what the original holds.
 */
async function whereabouts(platform: Platform, controlDir: string): Promise<Whereabouts> {
  const stat = await platform.files.stat(controlDir);
  const hashed = (what: string) =>
    platform.digest.sha256(`${platform.processes.machineId()} ${what}`).slice(0, 32);
  return { inode: hashed(`inode ${stat?.inode ?? 0}`), path: hashed(`path ${controlDir}`) };
}

function idIn(fact: Fact, { inode, path }: Whereabouts): Ulid | null {
  const id = parseUlid(String(fact["clone_id"]));
  return !isRefusal(id) && (fact["inode"] === inode || fact["path"] === path) ? id : null;
}

function isSame(fact: Fact, { inode, path }: Whereabouts): boolean {
  return fact["inode"] === inode && fact["path"] === path;
}
