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

/** The rules in a committed file as Git has it. What is wrong elsewhere in it is not looked at. */
export async function pathRulesFrom(
  file: string,
  content: Uint8Array,
): Promise<{ readonly rules: PlacedRule[]; readonly problems: readonly ConfigProblem[] }> {
  const { entries, problems } = documentLayer("worktree", await tomlFrom(file, content));
  const entry = entries.get("policy.paths");
  const place = entry === undefined || entry.line === null ? file : `${file}:${entry.line}`;
  return {
    rules: placedRules((entry?.value ?? []) as readonly string[], { place, source: "committed" }),
    problems: problems.filter(({ key }) => key === null || key === "policy" || key === "policy.paths"),
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
