import type { Command } from "../../../cli/grammar/command";
import { LOCK_FLAGS, lockWorktree } from "./locking-worktrees";
import { workspaceOf } from "./worktree-word";

export const command: Command = {
  usage: "worktree lock [<worktree>] [--ttl <secs>] [--wait [--timeout <secs>]]",
  about:
    "Takes a worktree's writer lock: until it is given back or runs out, nobody else takes snapshots there, restores\nthem in place or removes it. One that has run out is taken over, and what is there then is kept as a snapshot.",
  flags: LOCK_FLAGS,
  examples: ["cotenant worktree lock", "cotenant worktree lock --ttl 1800 --wait --timeout 60"],
  words: { min: 0, max: 1 },
  completes: ["worktree"],
  async run(context, parsed) {
    return lockWorktree(context, parsed, await workspaceOf(context, parsed, "worktree lock"));
  },
};
