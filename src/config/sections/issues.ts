import { AGENTS, type Settings } from "../setting";

const WORD = /^[a-z0-9][a-z0-9-]{0,39}$/;

/** How issues are sorted and grouped, and who decides about their gates. */
export const ISSUES = {
  "issues.unique_labels": {
    type: "strings",
    pattern: WORD,
    entry: "a label's namespace",
    default: ["type"],
    tighten: "free",
    meaning: "Namespaces of which an issue has one label at most: a new one replaces the old one.",
  },
  "gates.pass_by": {
    type: "strings",
    pattern: AGENTS,
    entry: "an agent id, or the beginning of one and *",
    default: ["human:*", "ci:*", "admin:*"],
    tighten: "subset",
    meaning:
      "Whose word passes a manual gate, or takes one off an issue before it is passed. They need no claim. An automated gate is passed by its run only.",
  },
  "types.hierarchy": {
    type: "strings",
    pattern: /^[a-z0-9][a-z0-9-]{0,39}( [a-z0-9][a-z0-9-]{0,39})*$/,
    entry: "names of types, separated by spaces",
    default: ["milestone", "epic", "story", "task bug chore"],
    tighten: "free",
    meaning: "Types of issues (type: labels), the broadest first; those on one line are on one level.",
  },
  "types.strategic": {
    type: "strings",
    pattern: WORD,
    entry: "a type",
    default: ["milestone", "epic"],
    tighten: "free",
    meaning: "Types that 'query strategic' shows.",
  },
} as const satisfies Settings;
