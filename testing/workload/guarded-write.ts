import type { Session } from "../../src/coordinator/session";
import type { Workspace } from "../../src/coordinator/workspace";
import { type LeaseId, trusted } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import { lastSequence } from "../checker/log-files";
import { testify, type Verb } from "../checker/witness";

export interface Held {
  readonly leaseId: string;
  readonly key: string;
  readonly token: number;
}

/** Where a guarded write goes, and under which lease. */
export interface Target {
  readonly lease: Held;
  readonly things: readonly string[];
}

/**
 * Promise 3: the check and the write are one critical section, so that nobody can take the lease over between
 * them. Answers the lease that stood in the way, or null when everything was written.
 */
export async function guardedWrite(
  workspace: Workspace,
  session: Session,
  verb: Verb,
  targets: readonly Target[],
  witness: string,
): Promise<Held | null> {
  const { store, coordinator, surroundings } = workspace;
  const { clock, processes } = surroundings.platform;
  const { pid } = processes.self();
  return store.hold({ ...session.actor, host: processes.host(), pid }, async () => {
    // Read before the check: what was valid at the check was valid at this instant, too.
    const atMs = clock.monotonicMs();
    const refs = targets.map(({ lease }) => ({
      key: trusted<LeaseKey>(lease.key),
      leaseId: trusted<LeaseId>(lease.leaseId),
    }));
    const found = await coordinator.find(refs);
    for (const { lease } of targets) {
      const now = found.find((status) => status.lease.leaseId === lease.leaseId);
      if (now?.standing !== "valid" || now.lease.fencingToken !== lease.token) return lease;
    }
    const sequence = lastSequence(store.layout.root);
    for (const { lease, things } of targets)
      for (const thing of things) testify(witness, thing, { verb, token: lease.token, pid, sequence, atMs });
    return null;
  });
}
