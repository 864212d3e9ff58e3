import type { Holder } from "../../../kernel/lease";
import { type Check, ok, warning } from "../finding";
import { many, some } from "../words";

/** One id for two processes at work: each would pass for the other. */
export const agentsCheck: Check = {
  name: "agents",
  async look(patient) {
    const holders = new Map<string, Map<string, Holder>>();
    for (const { lease, standing } of await patient.leases()) {
      if (standing !== "valid") continue;
      // A one-shot command's lease outlives it: only a process that is there counts as one at work.
      const isThere =
        lease.bind === "process" || (await patient.platform.processes.liveness(lease.holder)) === "alive";
      if (!isThere) continue;
      const { bootId, pid, startTime } = lease.holder;
      const known = holders.get(lease.agentId) ?? new Map<string, Holder>();
      holders.set(lease.agentId, known.set(`${bootId}/${pid}/${startTime}`, lease.holder));
    }
    const shared = [...holders].filter(([, processes]) => processes.size > 1);
    if (shared.length === 0) return [ok("no agent id is used by two processes at once")];
    return shared.map(([agentId, processes]) => {
      const pids = [...processes.values()].map(({ pid }) => pid);
      return warning(
        `${agentId} is used by ${many(pids.length, "live process", "live processes")} at once (${some(pids.map(String))})`,
        "give each agent a name of its own: export COTENANT_AGENT_ID=agent:<name>",
        { agent_id: agentId, pids },
      );
    });
  },
};
