import type { Command, LeaseRef } from "../kernel/commands";
import { type Extent, keysConflict } from "../kernel/conflicts";
import { type FactName, type FactRecord, factKind } from "../kernel/facts";
import type { LeaseId, WorktreeId } from "../kernel/ids";
import type { KeyKind } from "../kernel/keys";
import { type Ended, effectiveReach, type Lease, type Slot, sameParty, slotOf } from "../kernel/lease";
import { PAUSE_FACT } from "../kernel/pause";
import { proposalName } from "../kernel/proposals";
import { type Ticket, wantsSame } from "../kernel/tickets";
import type { Now } from "../kernel/time";
import { type Liveness, standing, type ValidityRules } from "../kernel/validity";
import { livenessOnce } from "../platform/liveness";
import type { Platform } from "../platform/platform";
import type { IndexTree } from "./index-tree";
import type { Overlay } from "./overlay";

/** Which part of the view a command's decision can depend on. */
export interface Needs {
  readonly extents: readonly Extent[];
  /** What those want who wait for the same: whose turn it is depends on every lease in their way. */
  readonly rivals: readonly Extent[];
  readonly refs: readonly LeaseRef[];
  /** Where the named leases are to go: whatever conflicts with them there counts as well. */
  readonly movingTo: WorktreeId | null;
  readonly indefinite: boolean;
  readonly everything: boolean;
  /** All leases on keys of these kinds, none of which is a path. */
  readonly kinds: readonly KeyKind[];
  readonly facts: readonly FactName[];
  /** All facts of these kinds. */
  readonly factKinds: readonly string[];
  /** A lease that settles the matter alone, so that a walk below a large directory may stop. */
  readonly enough: (lease: Lease) => boolean;
}

export const NOTHING: Needs = {
  extents: [],
  rivals: [],
  refs: [],
  movingTo: null,
  indefinite: false,
  everything: false,
  kinds: [],
  facts: [],
  factKinds: [],
  enough: () => false,
};
export const EVERYTHING: Needs = { ...NOTHING, everything: true };

export function needsOf(command: Command, tickets: readonly Ticket[], now: Now, rules: ValidityRules): Needs {
  switch (command.kind) {
    case "acquire": {
      const { actor } = command;
      const wanted = command.keys.map(({ key, reach }) => ({ key, reach: effectiveReach(key, reach) }));
      const rivals = tickets.filter((ticket) =>
        wantsSame(ticket, { keys: wanted, worktreeId: actor.worktreeId }),
      );
      return {
        ...NOTHING,
        extents: wanted.map((extent) => ({ ...extent, worktreeId: actor.worktreeId })),
        rivals: rivals.flatMap((t) => t.keys.map((k) => ({ ...k, worktreeId: t.worktreeId }))),
        indefinite: command.bind === "ttl" && command.ttlSecs === 0,
        facts: [PAUSE_FACT],
        enough: (lease) =>
          !command.steal &&
          lease.bind === "ttl" &&
          lease.secretHash !== null &&
          !sameParty(lease, actor) &&
          wanted.some(({ key }) => keysConflict(key, lease.key)) &&
          standing(lease, now, "unknown", rules) === "valid",
      };
    }
    case "transfer":
      return { ...NOTHING, refs: [command.lease], movingTo: command.toWorktree, indefinite: true };
    case "gc":
      return EVERYTHING;
    case "evict": {
      const { proposalId } = command;
      const facts = proposalId === undefined ? [] : [proposalName(proposalId)];
      return { ...NOTHING, refs: command.leases, facts };
    }
    default:
      return { ...NOTHING, refs: command.leases };
  }
}

/** The leases a decision needs, as the index and what lies over it say. */
export async function gather(index: IndexTree, needs: Needs, overlay: Overlay): Promise<Map<Slot, Lease>> {
  const found = new Map<Slot, Lease>();
  const add = (leases: Iterable<Lease>) => {
    for (const lease of leases) found.set(slotOf(lease), lease);
  };
  // What the index says of a slot that lies under something newer settles nothing.
  const enough = (lease: Lease) => !overlay.slots.has(slotOf(lease)) && needs.enough(lease);
  if (needs.everything) for await (const lease of index.all()) found.set(slotOf(lease), lease);
  for (const kind of needs.kinds)
    for await (const lease of index.ofKind(kind)) found.set(slotOf(lease), lease);
  for (const extent of eachOnce(needs.extents)) add(await index.conflicting(extent, enough));
  for (const extent of eachOnce(needs.rivals)) add(await index.conflicting(extent));
  for (const ref of needs.refs) add(await named(index, ref));
  if (needs.indefinite) add(await index.indefinite());
  overlay.layOver(found);
  if (needs.movingTo === null) return found;
  for (const { key, reach } of [...found.values()])
    add(await index.conflicting({ key, reach, worktreeId: needs.movingTo }));
  overlay.layOver(found);
  return found;
}

/** Where many wait for one key, it is looked up once. */
function eachOnce(extents: readonly Extent[]): Iterable<Extent> {
  if (extents.length < 2) return extents;
  return new Map(extents.map((extent) => [slotOf(extent), extent])).values();
}

async function named(index: IndexTree, ref: LeaseRef): Promise<Lease[]> {
  if (ref.key !== null) return index.onKey(ref.key);
  // Only an id: somebody else's lease, named by a person. Rare enough to look at all of them.
  for await (const lease of index.all()) if (lease.leaseId === ref.leaseId) return [lease];
  return [];
}

export async function gatherEndings(
  index: IndexTree,
  needs: Needs,
  overlay: Overlay,
): Promise<Map<LeaseId, Ended>> {
  const found = new Map<LeaseId, Ended>();
  for (const { leaseId } of needs.refs) {
    if (leaseId === null) continue;
    const record = overlay.endings.get(leaseId) ?? (await index.ending(leaseId));
    if (record !== null && record !== undefined) found.set(leaseId, record.ended);
  }
  return found;
}

export async function gatherFacts(
  index: IndexTree,
  { facts, factKinds }: Pick<Needs, "facts" | "factKinds">,
  overlay: Overlay,
): Promise<Map<FactName, FactRecord>> {
  const found = new Map<FactName, FactRecord>();
  for (const name of facts) {
    const fact = await index.facts.named(name);
    if (fact !== null) found.set(name, fact);
  }
  for (const kind of factKinds)
    for (const [name, fact] of await index.facts.ofKind(kind)) found.set(name, fact);
  overlay.layFactsOver(found, (name) => isWanted(name, { facts, factKinds }));
  return found;
}

export function isWanted(name: FactName, { facts, factKinds }: Pick<Needs, "facts" | "factKinds">): boolean {
  return facts.includes(name) || factKinds.includes(factKind(name));
}

/** Asked only where it matters, for leases bound to a process, and once of each. */
export async function livenessOf(
  platform: Platform,
  leases: Iterable<Lease>,
): Promise<Map<LeaseId, Liveness>> {
  const found = new Map<LeaseId, Liveness>();
  const liveness = livenessOnce(platform.processes);
  for (const { bind, holder, leaseId } of leases)
    if (bind === "process") found.set(leaseId, await liveness(holder));
  return found;
}
