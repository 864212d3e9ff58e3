import type { Command } from "../../../cli/grammar/command";
import { LOCK_FLAGS, lockWorktree } from "./locking-worktrees";
import { workspaceOf } from "./worktree-word";

export const command: Command = {
  usage: "worktree steal [<worktree>] [--ttl <secs>]",
  about:
    "Takes over a writer lock that has run out. A live one cannot be stolen, by nobody. The new lock's token is higher,\nthe log says from whom it was taken, and what is in the worktree is kept as a snapshot first.",
  flags: LOCK_FLAGS,
  examples: ["cotenant worktree steal"],
  words: { min: 0, max: 1 },
  completes: ["worktree"],
  async run(context, parsed) {
    return lockWorktree(context, parsed, await workspaceOf(context, parsed, "worktree steal"));
  },
};
