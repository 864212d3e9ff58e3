import type { Config } from "../../config/load";
import { fitsPattern } from "../../kernel/path-patterns";
import { shellWord } from "../../kernel/printing";

/** Where what looks like a secret is let through: `publish.allow_secrets_in`. */
export interface Allowed {
  readonly patterns: readonly string[];
  /** What the repository's file says, where nobody of this clone trusts it; else null. */
  readonly untrusted: readonly string[] | null;
}

const SETTING = "publish.allow_secrets_in";

export function allowedBy({ values, untrusted }: Pick<Config, "values" | "untrusted">): Allowed {
  const said = untrusted.find(({ key }) => key === SETTING)?.value;
  return { patterns: values[SETTING], untrusted: Array.isArray(said) ? (said as string[]) : null };
}

export function isAllowed(patterns: readonly string[], path: string): boolean {
  return patterns.some((pattern) => fitsPattern(pattern, path));
}

/** What to do where the paths hold no secrets. The whole list: setting it replaces what was there. */
export function howToAllow({ patterns, untrusted }: Allowed, paths: readonly string[]): string {
  const open = paths.filter((path) => !isAllowed(untrusted ?? [], path));
  if (open.length === 0)
    return `have a person trust that ${SETTING} allows it, which the repository's file says: cotenant trust`;
  const list = [...(untrusted ?? patterns), ...open];
  if (list.some((one) => /[,\x00-\x1f\x7f]/.test(one))) return `name it in ${SETTING}`;
  return `allow it, and have a person trust that: cotenant config set ${SETTING} ${shellWord(list.join(","))}`;
}
