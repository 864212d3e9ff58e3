import { BRANCH, LINE, type Settings } from "../setting";

/** The merge queue. */
export const LAND = {
  "land.target": {
    type: "string",
    pattern: BRANCH,
    default: null,
    example: "main",
    tighten: "trusted",
    meaning:
      "The branch that others land on. Not set: global_operations.main_branch, else the remote's HEAD, else main.",
  },
  "land.method": {
    type: "enum",
    values: ["merge", "squash", "rebase"],
    default: "merge",
    tighten: "free",
    meaning:
      "How a branch is put onto its target. merge: a commit with two parents; squash: one commit; rebase: its commits one by one.",
  },
  "land.checks": {
    type: "strings",
    pattern: LINE,
    entry: "a command",
    default: [],
    tighten: "command",
    meaning: "What has to pass before a branch lands, run in a scratch worktree with the result checked out.",
  },
  "land.check_timeout_secs": {
    type: "int",
    min: 1,
    max: 86_400,
    default: 1_800,
    tighten: "free",
    meaning: "How long each of land.checks may take.",
  },
  "land.parallel": {
    type: "int",
    min: 1,
    max: 8,
    default: 1,
    tighten: "free",
    meaning: "How many entries of the queue are checked at once, each on top of those before it.",
  },
  "land.clean": {
    type: "bool",
    default: false,
    tighten: "off",
    meaning: "Delete landed branches, and remove their worktrees where nothing would be lost.",
  },
} as const satisfies Settings;
