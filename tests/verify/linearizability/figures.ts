import type { LogCheck } from "../../../testing/checker/log-check";
import type { Task } from "../layer";
import type { Operation } from "./history";

/** What happened in a history, for the table. */
export function count(task: Task, operations: readonly Operation[], log: LogCheck): void {
  for (const { ask, answer } of operations) {
    if (answer.is === "unknown") {
      task.count("unknown outcomes");
      const took = tookEffect(ask, log);
      if (took !== null) task.count(took ? "unknown, took effect" : "unknown, did not");
    } else if (answer.is === "refused") {
      task.count(ask.do === "write" ? "guarded writes refused" : "refusals");
    } else {
      task.count(NAMES[ask.do]);
      if (ask.do !== "acquire") continue;
      if (answer.leases.length > 1) task.count("grants of several keys");
      if (answer.ended.length > 0) task.count("takeovers");
      if (answer.leases.some(({ process }) => process !== null)) task.count("grants bound to a process");
    }
  }
}

const NAMES: Readonly<Record<Operation["ask"]["do"], string>> = {
  acquire: "grants",
  renew: "renewals",
  release: "releases",
  transfer: "transfers",
  evict: "evictions",
  read: "reads",
  write: "guarded writes",
};

/** Whether the log has it; null where it does not tell. */
function tookEffect(ask: Operation["ask"], log: LogCheck): boolean | null {
  if (ask.do === "acquire") return ask.ids === null ? null : ask.ids.some((id) => log.byId.has(id));
  if (ask.do === "transfer") return log.byId.has(ask.id);
  if (ask.do !== "release") return null;
  return ask.names.every(({ id }) => id !== null && log.byId.get(id)?.how === "released");
}
