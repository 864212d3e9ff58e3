import type { Command } from "../../../cli/grammar/command";
import { leaseJson } from "../../../cli/terminal/render";
import { byKey } from "../../../kernel/commands";
import { HOLDER_FLAGS } from "../../locks/commands/holding";
import { releaseLeases } from "../../locks/commands/releasing";
import { lockRecord, writerKey } from "../writer-lock";
import { workspaceOf } from "./worktree-word";

export const command: Command = {
  usage: "worktree unlock [<worktree>]",
  about: "Gives a writer lock back. It is free at once. Only its holder can.",
  flags: { ...HOLDER_FLAGS, reason: { value: "<text>", meaning: "why; logged" } },
  examples: ["cotenant worktree unlock"],
  words: { min: 0, max: 1 },
  completes: ["worktree"],
  async run(context, parsed) {
    const workspace = await workspaceOf(context, parsed, "worktree unlock");
    const { worktreeId } = (await workspace.worktree("read")).identity;
    const change = await releaseLeases(parsed, workspace, [byKey(writerKey(worktreeId))]);
    const lease = change.leases[0]!;
    return {
      data: {
        lock: lockRecord(lease, workspace.surroundings.platform.processes),
        lease: leaseJson(lease),
        changed: change.changed,
        replayed: change.replayed,
      },
      text: context.quiet ? "" : `the writer lock of ${worktreeId} is free`,
    };
  },
};
