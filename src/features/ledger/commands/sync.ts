import type { Command } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { type SyncAction, sync } from "../operations";
import { syncOutput } from "./sync-output";

const ACTIONS = [
  "setup-ledger",
  "ledger-only",
  "cleanup-ledger",
  "reconcile",
  "force-resync",
  "status",
] as const satisfies readonly SyncAction[];

export const command: Command = {
  usage: `sync [--${ACTIONS.join(" | --")}] [--yes]`,
  about:
    "Exchanges claims and issues with the other machines, over the ledger branch of the Git remote. Without a flag it is\n--ledger-only: claims are settled, and what changed here and there is merged field by field.",
  flags: {
    "setup-ledger": {
      meaning: "make the ledger, or attach to the one that is there; changes nothing of yours",
    },
    "ledger-only": { meaning: "the same as without a flag" },
    reconcile: {
      meaning: "only confirm the claims that were made offline, and say which are somebody else's",
    },
    status: { meaning: "how things stand; changes nothing" },
    "force-resync": {
      meaning: "take the remote's ledger for what it is, also if it was rewritten; needs --yes",
    },
    "cleanup-ledger": { meaning: "remove this machine's copy; the remote keeps the ledger; needs --yes" },
    yes: { meaning: "yes, do it: a backup is made first, and before a resync a snapshot" },
  },
  examples: ["cotenant sync --setup-ledger", "cotenant sync", "cotenant sync --status --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const asked = ACTIONS.filter((action) => parsed.has(action));
    if (asked.length > 1) throw usage(`--${asked.join(" and --")} are different things: do one at a time`);
    const action: SyncAction = asked[0] ?? "ledger-only";
    const answer = await sync(await context.workspace(), {
      action,
      yes: parsed.has("yes"),
      onProgress: (done, all) => {
        if (!context.quiet && all > 20) context.note(`settling claims: ${done} of ${all}`);
      },
    });
    const output = syncOutput(action, answer);
    return context.quiet && action !== "status" ? { ...output, text: "" } : output;
  },
};
