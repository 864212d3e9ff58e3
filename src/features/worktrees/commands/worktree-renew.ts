import type { Command } from "../../../cli/grammar/command";
import { leaseJson } from "../../../cli/terminal/render";
import { byKey } from "../../../kernel/commands";
import { lasting } from "../../locks/commands/acquiring";
import { HOLDER_FLAGS } from "../../locks/commands/holding";
import { RENEW_FLAGS, renewLeases } from "../../locks/commands/renewing";
import { lockRecord, writerKey } from "../writer-lock";
import { workspaceOf } from "./worktree-word";

export const command: Command = {
  usage: "worktree renew [<worktree>] [--ttl <secs>]",
  about:
    "Extends a writer lock that you hold. One that has run out is not renewed: lock it again, and look first.",
  flags: { ...HOLDER_FLAGS, ...RENEW_FLAGS },
  examples: ["cotenant worktree renew", "cotenant worktree renew --ttl 1800"],
  words: { min: 0, max: 1 },
  completes: ["worktree"],
  async run(context, parsed) {
    const workspace = await workspaceOf(context, parsed, "worktree renew");
    const { worktreeId } = (await workspace.worktree("read")).identity;
    const change = await renewLeases(parsed, workspace, [byKey(writerKey(worktreeId))]);
    const lease = change.leases[0]!;
    return {
      data: {
        lock: lockRecord(lease, workspace.surroundings.platform.processes),
        lease: leaseJson(lease),
        changed: change.changed,
        replayed: change.replayed,
      },
      text: context.quiet ? "" : `the writer lock of ${worktreeId} is yours, ${lasting(lease)}`,
    };
  },
};
