import { type PlacedRule, parsePathRule, RULES_FILE } from "../kernel/path-rules";
import { COMMITTED_CONFIG } from "./committed";
import { type ConfigLayer, documentLayer } from "./layers";
import type { ConfigProblem } from "./problem";
import { tomlFrom } from "./toml-file";

/** The rules of `policy.paths` of every source, each with the place where it stands. */
export function pathRulesIn(layers: readonly ConfigLayer[]): PlacedRule[] {
  return layers.flatMap(({ source, entries }) => {
    const entry = entries.get("policy.paths");
    if (entry === undefined) return [];
    const isCommitted = source === "worktree";
    // Also where what it last said stands in for it, in a file that nobody should change.
    const file = isCommitted && entry.place !== COMMITTED_CONFIG ? RULES_FILE : entry.place;
    const place = entry.line === null ? file : `${file}:${entry.line}`;
    return placedRules(entry.value as readonly string[], {
      place,
      source: isCommitted ? "committed" : "settings",
    });
  });
}

/** The rules of a commit's own file. */
export interface CommittedRules {
  readonly rules: readonly PlacedRule[];
  /** Why there may be more of them than can be understood. */
  readonly problems: readonly ConfigProblem[];
  /** What else is wrong in the file: a misspelt key may be meant for rules, and clients refuse the file. */
  readonly others: readonly ConfigProblem[];
}

/** The rules in a committed file as Git has it, whatever is wrong elsewhere in it. */
export async function pathRulesFrom(file: string, content: Uint8Array): Promise<CommittedRules> {
  const { entries, problems } = documentLayer("worktree", await tomlFrom(file, content));
  const entry = entries.get("policy.paths");
  const place = entry === undefined || entry.line === null ? file : `${file}:${entry.line}`;
  const isAboutRules = ({ key }: ConfigProblem) => key === null || key === "policy" || key === "policy.paths";
  return {
    rules: placedRules((entry?.value ?? []) as readonly string[], { place, source: "committed" }),
    problems: problems.filter(isAboutRules),
    others: problems.filter((problem) => !isAboutRules(problem)),
  };
}

/** Of texts that have been looked at: others are no rules. */
export function placedRules(
  texts: readonly string[],
  at: Pick<PlacedRule, "place" | "source">,
): PlacedRule[] {
  return texts.flatMap((text) => {
    const rule = parsePathRule(text);
    return "wrong" in rule ? [] : [{ ...rule, ...at }];
  });
}
