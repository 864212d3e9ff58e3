import type { Later, Liveness, Processes, ProcessIdentity } from "./platform";

/** The same for the same process as far as it was recorded. */
export function identityName(holder: ProcessIdentity): string {
  return Object.values(holder).join("\0");
}

/** For a look at many leases: each of the processes that hold them is asked for once. */
export function livenessOnce(
  processes: Pick<Processes, "liveness">,
): (holder: ProcessIdentity) => Later<Liveness> {
  const asked = new Map<string, Later<Liveness>>();
  return (holder) => {
    const name = identityName(holder);
    const answer = asked.get(name) ?? processes.liveness(holder);
    asked.set(name, answer);
    return answer;
  };
}

/**
 * PROTOCOL 12, the part that needs no look at the process: whether a pid recorded elsewhere can be looked up
 * here at all. Other namespaces answer "no such process" for living ones, so only the very same space counts.
 */
export function sameProcessSpace(
  holder: ProcessIdentity,
  self: ProcessIdentity,
): "same" | "dead" | "unknown" {
  if (holder.bootId !== self.bootId) {
    const sameMachine = holder.machineId !== "" && holder.machineId === self.machineId;
    return sameMachine ? "dead" : "unknown";
  }
  const readable = (name: string) => name !== "unreadable";
  const samePids = holder.pidNamespace === self.pidNamespace && readable(holder.pidNamespace);
  const sameTimes = holder.timeNamespace === self.timeNamespace && readable(holder.timeNamespace);
  return samePids && sameTimes ? "same" : "unknown";
}
