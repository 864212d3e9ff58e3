import type { lintSource } from "@secretlint/core";
import data from "./secret-rules.json";

/** An expression as it stands in the file. */
interface Expression {
  readonly regex: string;
  readonly flags: string;
}

/** What is no secret although it looks like one. */
interface Allowed {
  /** Everything that is named must fit, else one of it. */
  readonly all?: boolean;
  /** What the expressions are held against, if not the secret. */
  readonly target?: string;
  readonly paths?: readonly Expression[];
  readonly regexes?: readonly Expression[];
  readonly stopwords?: readonly string[];
}

interface Rule extends Expression {
  readonly id: string;
  /** One of these is in every text that the rule can find something in. */
  readonly keywords: readonly string[];
  /** How random a secret has to look. */
  readonly entropy?: number;
  readonly group?: number;
  readonly path?: Expression;
  readonly allow?: readonly Allowed[];
}

const { rules, allow } = data as { readonly rules: readonly Rule[]; readonly allow: readonly Allowed[] };

/** A rule as secretlint knows it. */
type RuleCreator = Extract<
  Parameters<typeof lintSource>[0]["options"]["config"]["rules"][number]["rule"],
  { readonly messages: unknown }
>;

const messages = {
  FOUND: { en: ({ id }: { id: string }) => id, ja: ({ id }: { id: string }) => id },
};

/**
 * Rules of gitleaks as one of secretlint's, which then honours its comments for them as well. `scripts/secret-rules.mjs` makes
 * the data; its `from` says where they come from.
 */
export const creator: RuleCreator = {
  messages,
  meta: {
    id: "@secretlint/secretlint-rule-gitleaks",
    recommended: true,
    type: "scanner",
    supportedContentTypes: ["text"],
  },
  create: (context) => ({
    file({ filePath = "", content }) {
      const say = context.createTranslator(messages);
      for (const { id, range } of secretsIn(filePath, content))
        context.report({ message: say("FOUND", { id }), range });
    },
  }),
};

interface Found {
  readonly id: string;
  readonly range: readonly [number, number];
}

/** Each secret once, where it stands first. */
function secretsIn(path: string, text: string): Found[] {
  const lowered = text.toLowerCase();
  const candidates = rules.filter(
    (rule) =>
      rule.keywords.some((word) => lowered.includes(word)) &&
      (rule.path === undefined || expression(rule.path).test(path)),
  );
  return candidates.flatMap((rule) => {
    const looked = new Set<string>();
    const found: Found[] = [];
    for (const match of text.matchAll(expression(rule, "g"))) {
      if (looked.has(match[0])) continue;
      looked.add(match[0]);
      found.push(...(foundBy(rule, match, path, text) ?? []));
    }
    return found;
  });
}

function foundBy(rule: Rule, match: RegExpMatchArray, path: string, text: string): [Found] | null {
  const [whole] = match;
  const secret =
    rule.group === undefined ? (match.slice(1).find((part) => part) ?? whole) : match[rule.group]!;
  if (rule.entropy !== undefined && entropyOf(secret) <= rule.entropy) return null;
  const start = match.index! + whole.indexOf(secret);
  const around = { secret, match: whole, line: lineAround(text, start), path };
  if ([...allow, ...(rule.allow ?? [])].some((one) => isAllowed(one, around))) return null;
  return [{ id: rule.id, range: [start, start + secret.length] }];
}

type Around = Readonly<Record<"secret" | "match" | "line" | "path", string>>;

function isAllowed({ all, target, paths, regexes, stopwords }: Allowed, around: Around): boolean {
  const text = around[(target ?? "secret") as keyof Around];
  const secret = around.secret.toLowerCase();
  const fits = [
    paths?.some((one) => expression(one).test(around.path)),
    regexes?.some((one) => expression(one).test(text)),
    stopwords?.some((word) => secret.includes(word)),
  ].filter((fit) => fit !== undefined);
  return all === true ? fits.every(Boolean) : fits.some(Boolean);
}

const compiled = new Map<Expression, RegExp>();

/** Most are never needed. */
function expression(one: Expression, more = ""): RegExp {
  const known = compiled.get(one) ?? new RegExp(one.regex, one.flags + more);
  compiled.set(one, known);
  return known;
}

const LONGEST_LINE = 2_000;

function lineAround(text: string, at: number): string {
  const from = Math.max(0, at - LONGEST_LINE);
  const before = text.slice(from, at);
  const after = text.slice(at, at + LONGEST_LINE);
  return before.slice(before.lastIndexOf("\n") + 1) + after.split("\n", 1)[0]!;
}

/** Bits per character, after Shannon. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1);
  const length = [...text].length;
  return [...counts.values()].reduce((bits, n) => bits - (n / length) * Math.log2(n / length), 0);
}
