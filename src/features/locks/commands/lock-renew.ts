import type { Command } from "../../../cli/grammar/command";
import { HOLDER_FLAGS } from "./holding";
import { RENEW_FLAGS, renew } from "./renewing";
import { leaseRefs, NO_GLOB, readBareTargetFlags, TARGET_FLAGS } from "./targets";

export const command: Command = {
  usage: "lock renew <file|lease>… [--dir <path>] [--resource <name>] [--ref <refs/…>] [--ttl <secs>]",
  about: "Extends locks you hold: all of them or none.",
  flags: { ...HOLDER_FLAGS, ...RENEW_FLAGS, ...TARGET_FLAGS, ...NO_GLOB },
  examples: ["cotenant lock renew src/app.ts", "cotenant lock renew --dir src/api --ttl 1800"],
  words: { min: 0, max: Number.POSITIVE_INFINITY },
  completes: ["lease"],
  prepare: readBareTargetFlags,
  async run(context, parsed) {
    const workspace = await context.workspace();
    return renew(context, parsed, workspace, await leaseRefs(workspace, parsed));
  },
};
