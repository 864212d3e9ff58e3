import { ACQUIRE_FLAGS, acquire } from "../acquiring";
import type { Command } from "../command";
import { readBareTargetFlags, TARGET_FLAGS, targetKeys } from "../targets";

export const command: Command = {
  usage: "lock acquire <file>… [--dir <path>] [--resource <name>] [--ref <refs/…>] [--ttl <secs>] [--wait]",
  about:
    "Leases files, directories, resources or refs: all of them or none. A directory excludes everything in it\nand every directory around it. Asking again for what you hold returns the same lease.",
  flags: { ...ACQUIRE_FLAGS, ...TARGET_FLAGS },
  examples: [
    "cotenant lock acquire src/app.ts src/app.test.ts",
    "cotenant lock acquire --dir src/api --ttl 1800",
    "cotenant lock acquire --resource staging-database --wait --timeout 120",
  ],
  words: { min: 0, max: Number.POSITIVE_INFINITY },
  completes: ["path"],
  prepare: readBareTargetFlags,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const keys = await targetKeys(workspace, parsed);
    return acquire(context, parsed, workspace, { keys, steal: false, noun: "lock" });
  },
};
