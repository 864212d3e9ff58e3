import { type Holder, type Lease, sameProcess } from "../../kernel/lease";
import { identityName } from "../../platform/liveness";
import type { Processes, ProcessIdentity } from "../../platform/platform";
import { pastWrappers } from "./wrappers";

/**
 * On whose behalf a command runs that ends at once: the process that started it, behind shells that only run one line. So a
 * lease says who works under it, and not which command asked for it. Itself, where that cannot be told.
 */
export async function callingProcess(processes: Processes): Promise<ProcessIdentity> {
  const self = processes.self();
  const parentPid = (await processes.ancestry(self.pid))?.parentPid ?? 0;
  const { pid } = await pastWrappers(processes, parentPid);
  // A process that init has adopted has lost its own parent.
  return pid <= 1 ? self : ((await processes.identify(pid)) ?? self);
}

/** Those who use a name side by side: alive, and none of them started by another. */
export async function liveStrangers(
  processes: Processes,
  holders: readonly Holder[],
): Promise<readonly Holder[]> {
  const strangers: Holder[] = [];
  for (const holder of new Map(holders.map((one) => [identityName(one), one])).values()) {
    if (strangers.some((other) => sameProcess(other, holder))) continue;
    if ((await processes.liveness(holder)) !== "alive") continue;
    let isKin = false;
    for (const other of strangers) isKin ||= await areKin(processes, holder, other);
    if (!isKin) strangers.push(holder);
  }
  return strangers;
}

/** Whose process it is that holds a lease under the caller's own name and is not the caller's; null for nobody's. */
export async function twinOf(
  processes: Processes,
  mine: Holder,
  leases: readonly Lease[],
): Promise<Holder | null> {
  for (const { bind, agentId, holder } of leases) {
    // A person may well have two terminals.
    if (bind !== "ttl" || agentId.startsWith("human:") || sameProcess(holder, mine)) continue;
    if ((await liveStrangers(processes, [mine, holder])).length > 1) return holder;
  }
  return null;
}

const MOST_GENERATIONS = 64;

async function areKin(processes: Processes, one: Holder, other: Holder): Promise<boolean> {
  return (await isAbove(processes, one.pid, other.pid)) || (await isAbove(processes, other.pid, one.pid));
}

async function isAbove(processes: Processes, above: number, below: number): Promise<boolean> {
  let pid = below;
  for (let more = MOST_GENERATIONS; more > 0 && pid > 1; more--) {
    if (pid === above) return true;
    pid = (await processes.ancestry(pid))?.parentPid ?? 0;
  }
  return false;
}
