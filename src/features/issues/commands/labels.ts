import type { ChangedIssue } from "../operations/issue-change";
import { label } from "../operations/sets";
import { changeCommand } from "./output";

const ISSUE_AND_LABELS = { words: { min: 2, max: 50 } } as const;

function labelsText({ found: { labels } }: ChangedIssue): string {
  return labels.length === 0 ? "no labels" : `labels: ${labels.join(", ")}`;
}

export const add = changeCommand({
  positional: "<id> <ns:value>…",
  about:
    "Labels an issue that you have claimed. In a namespace of which an issue has one label at most\n(issues.unique_labels), the new one replaces the old one.",
  examples: ["cotenant label add 7x3k type:bug area:login"],
  ...ISSUE_AND_LABELS,
  change: (desk, request, { words }) => label.add(desk, { ...request, labels: words.slice(1) }),
  done: labelsText,
  same: () => "it has them already",
});

export const rm = changeCommand({
  positional: "<id> <ns:value>…",
  about: "Takes labels off an issue that you have claimed.",
  examples: ["cotenant label rm 7x3k area:login"],
  ...ISSUE_AND_LABELS,
  change: (desk, request, { words }) => label.rm(desk, { ...request, labels: words.slice(1) }),
  done: labelsText,
  same: () => "it has none of them",
});
