import type { Command } from "../../../cli/grammar/command";
import { ACQUIRE_FLAGS, acquire } from "./acquiring";
import { readBareTargetFlags, TARGET_FLAGS, targetKeys } from "./targets";

export const command: Command = {
  usage: "lock steal <file>… [--dir <path>] [--resource <name>] [--ref <refs/…>] --reason <text>",
  about:
    "Ends whatever stands in the way and takes the lock, in one step. A live lock only by those whom\npolicy.evict allows (people and admins by default); what has run out, by anybody.",
  flags: { ...ACQUIRE_FLAGS, ...TARGET_FLAGS },
  examples: ['cotenant lock steal src/app.ts --reason "its agent hangs" --agent-id human:ada'],
  isForPeople: true,
  words: { min: 0, max: Number.POSITIVE_INFINITY },
  completes: ["path"],
  prepare: readBareTargetFlags,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const keys = await targetKeys(workspace, parsed);
    return acquire(context, parsed, workspace, { keys, steal: true, noun: "lock" });
  },
};
