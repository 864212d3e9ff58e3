import type { ProcessIdentity } from "./platform";

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
