import { count } from "../../../kernel/printing";
import type { ChangedIssue } from "../operations/issue-change";
import { dep } from "../operations/sets";
import { changeCommand } from "./output";

const ISSUE_AND_NEEDS = { words: { min: 2, max: 50 }, completes: ["issue", "issue"] } as const;

function needsText({ found }: ChangedIssue): string {
  return `needs ${count(found.dependencies.length, "issue")} before it`;
}

export const add = changeCommand({
  positional: "<id> <needs>…",
  about:
    "Says that an issue you have claimed can only be done after others. What would close a circle is refused,\nwith the circle.",
  examples: ["cotenant dep add 7x3k 9k2m"],
  ...ISSUE_AND_NEEDS,
  change: (desk, request, { words }) => dep.add(desk, { ...request, needs: words.slice(1) }),
  done: needsText,
  same: () => "it is said already",
});

export const rm = changeCommand({
  positional: "<id> <needs>…",
  about: "Takes dependencies off an issue that you have claimed.",
  examples: ["cotenant dep rm 7x3k 9k2m"],
  ...ISSUE_AND_NEEDS,
  change: (desk, request, { words }) => dep.rm(desk, { ...request, needs: words.slice(1) }),
  done: needsText,
  same: () => "it does not need them",
});
