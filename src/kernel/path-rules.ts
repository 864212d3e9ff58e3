import { foldPath } from "./fold";
import { printable } from "./ids";
import { fitsAllIn, fitsPattern, mayFitIn } from "./path-patterns";

/**
 * `agent:docs-* only docs/** /README.md`: whom it binds, and which files they may not write, or which alone. A rule only ever
 * forbids, and every rule that binds must allow: another rule can take rights away and give none.
 */
export interface PathRule {
  readonly text: string;
  /** An agent id, or the beginning of one and `*`. */
  readonly who: string;
  readonly verb: "never" | "only";
  readonly globs: readonly string[];
}

/** A rule, and where people find it. */
export interface PlacedRule extends PathRule {
  readonly place: string;
  /** `committed`: in the repository's own file. `server`: in the Git configuration of the repository that people push to. */
  readonly source: "committed" | "settings" | "server";
}

export interface PathRuleSet {
  readonly rules: readonly PlacedRule[];
  /** Whether names that differ in case are one file. */
  readonly ignoreCase: boolean;
}

export const RULES_FILE = ".cotenant/config.toml";
export const MOST_RULES = 100;
/** How people write them, for hints and the reference page. */
export const RULE_FORMS = '"agent:* never .github/**" or "agent:docs-* only docs/** /README.md"';
const LONGEST_RULE = 500;
/** An agent id, or what can begin one: a rule for anybody else would bind nobody. */
const WHO = /^(?:\*|(?:agent|human|ci|admin):(?:\*|[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}\*?))$/;

/** Nothing is guessed: what would fit otherwise than it looks is wrong. */
export function parsePathRule(text: string): PathRule | { readonly wrong: string } {
  if (text.length > LONGEST_RULE) return { wrong: `is longer than ${LONGEST_RULE} characters` };
  const [who = "", verb = "", ...globs] = text.split(" ").filter((word) => word !== "");
  if (!WHO.test(who))
    return { wrong: `begins with "${printable(who, 60)}", which is no agent id or beginning of one with *` };
  if (verb !== "never" && verb !== "only")
    return { wrong: `has "${printable(verb, 60)}" where never or only belongs` };
  if (globs.length === 0) return { wrong: `names no files after ${verb}` };
  for (const glob of globs) {
    const wrong = wrongGlob(glob);
    if (wrong !== null) return { wrong: `has "${printable(glob, 60)}", ${wrong}` };
  }
  return { text: [who, verb, ...globs].join(" "), who, verb, globs };
}

function wrongGlob(glob: string): string | null {
  if (/[[\]{}\\!]/.test(glob)) return "and only *, ** and ? have a meaning (? stands for any character)";
  if (/[\x00-\x1f\x7f]/.test(glob)) return "which has a control character in it";
  const names = glob.replace(/^\//, "").replace(/\/$/, "").split("/");
  if (names.some((name) => name === "" || name === "." || name === ".."))
    return "which is no path from the repository's root";
  return null;
}

/** What cotenant itself writes for whoever holds the claim: claims rule it, not these. */
const RECORD =
  "^\\.cotenant/(?:issues/[0-9A-HJKMNP-TV-Z]{26}/(?:issue\\.json|(?:deps|labels)\\.or-set\\.jsonl|comments\\.jsonl)|gates/results/[0-9A-HJKMNP-TV-Z]{26}\\.jsonl|events/local\\.jsonl)$";

export interface PathJudge {
  /** The rule that forbids writing, making or deleting the file; null where all allow it. */
  writing(path: string): PlacedRule | null;
  /** The rule by which nothing in the directory may be written; null where something may. */
  anythingIn(directory: string): PlacedRule | null;
}

/**
 * What the rules say to all of these together: each of them must be allowed. Null where no rule binds any of them. Of
 * somebody without a name only rules for everybody are known to hold.
 */
export function pathJudge({ rules, ignoreCase }: PathRuleSet, agents: readonly string[]): PathJudge | null {
  const bound = rules
    .filter(({ who }) => (agents.length === 0 ? who === "*" : agents.some((agent) => binds(who, agent))))
    .map((rule) => ({ rule, globs: rule.globs.map((glob) => foldPath(glob, ignoreCase)) }));
  if (bound.length === 0) return null;
  const record = new RegExp(RECORD, ignoreCase ? "i" : "");
  // Whoever is bound by a rule could otherwise lift it. People may.
  const keeper = bound.find(
    ({ rule }) =>
      rule.source === "committed" &&
      agents.some((agent) => /^(?:agent|ci):/.test(agent) && binds(rule.who, agent)),
  );
  return {
    writing(path) {
      const folded = foldPath(path, ignoreCase);
      if (record.test(folded)) return null;
      if (keeper !== undefined && folded === RULES_FILE) return keeper.rule;
      // A rule that stands in this very file leaves it to people, whatever it says: nobody else could lift it.
      const ruling = folded === RULES_FILE ? bound.filter(({ rule }) => rule.source !== "committed") : bound;
      const isFit = (glob: string) => fitsPattern(glob, folded);
      return ruling.find(({ rule, globs }) => globs.some(isFit) === (rule.verb === "never"))?.rule ?? null;
    },
    anythingIn(directory) {
      if (isAround(RULES_FILE, directory) && this.writing(RULES_FILE) === null) return null;
      const folded = foldPath(directory, ignoreCase);
      const found = bound.find(({ rule, globs }) =>
        rule.verb === "never"
          ? globs.some((glob) => fitsAllIn(glob, folded))
          : !globs.some((glob) => mayFitIn(glob, folded)),
      );
      return found?.rule ?? null;
    },
  };
}

function isAround(path: string, directory: string): boolean {
  return directory === "." || path.startsWith(`${directory}/`);
}

/** A rule for an agent is one for its subagents, which are called `<agent>.<id>`. */
function binds(who: string, agent: string): boolean {
  if (who.endsWith("*")) return agent.startsWith(who.slice(0, -1));
  return agent === who || agent.startsWith(`${who}.`);
}

/** Why a file may not be written, to be read after its name. */
export function ruledOut({ text, place }: PlacedRule, path: string, agents: readonly string[]): string {
  const who = agents.length === 0 ? "somebody without a name" : agents.join(", ");
  const rule = `"${printable(text, 200)}" (${printable(place, 300)})`;
  return path.toLowerCase() === RULES_FILE
    ? `${who} may not change the file with the rules that bind them: ${rule}`
    : `${who} may not write it: ${rule}`;
}

export function whatInstead(rule: PlacedRule): string {
  const place = printable(rule.place, 300);
  const lifting = {
    committed: `have a person commit a change of policy.paths in ${place}`,
    settings: `have a person change policy.paths in ${place}`,
    server: `only a change of ${place} lifts it`,
  }[rule.source];
  if (bindsEverybody(rule)) return lifting;
  const others = "leave it to somebody whom the rule does not bind";
  return rule.source === "server" ? `${others}; else ${lifting}` : `${others}, or ${lifting}`;
}

/** Then there is nobody to leave it to. */
export function bindsEverybody({ who }: PathRule): boolean {
  return who === "*";
}
