import type { Command } from "../../../cli/grammar/command";
import { HOLDER_FLAGS } from "./holding";
import { release } from "./releasing";
import { leaseRefs, NO_GLOB, readBareTargetFlags, TARGET_FLAGS } from "./targets";

export const command: Command = {
  usage: "lock release <file|lease>… [--dir <path>] [--resource <name>] [--ref <refs/…>]",
  about: "Gives locks back: all of them or none. They are free at once.",
  flags: {
    ...HOLDER_FLAGS,
    ...TARGET_FLAGS,
    ...NO_GLOB,
    reason: { value: "<text>", meaning: "why; logged" },
  },
  examples: ["cotenant lock release src/app.ts", "cotenant lock release --dir src/api"],
  words: { min: 0, max: Number.POSITIVE_INFINITY },
  completes: ["lease"],
  prepare: readBareTargetFlags,
  async run(context, parsed) {
    const workspace = await context.workspace();
    return release(context, parsed, workspace, await leaseRefs(workspace, parsed));
  },
};
