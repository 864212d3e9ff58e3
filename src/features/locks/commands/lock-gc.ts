import type { Command } from "../../../cli/grammar/command";
import { count, leaseJson } from "../../../cli/terminal/render";

export const command: Command = {
  usage: "lock gc",
  about: "Logs the end of leases that have lapsed. Nothing depends on it: a lapsed lease blocks nobody.",
  flags: {},
  examples: ["cotenant lock gc"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { actor } = await workspace.session("write");
    const { leases } = await workspace.coordinator.gc({ actor });
    const text =
      leases.length === 0 ? "nothing has lapsed" : `logged the end of ${count(leases.length, "lease")}`;
    return { data: { leases: leases.map((lease) => leaseJson(lease)) }, text: context.quiet ? "" : text };
  },
};
