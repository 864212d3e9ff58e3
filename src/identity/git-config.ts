/**
 * A reader of Git's configuration files for the handful of values every command needs. Whatever it does not
 * understand completely it does not interpret at all: `null` means "ask Git".
 */
export interface GitConfig {
  /** `core.bare`, `extensions.objectformat`: section and key in lower case, without subsections. Last one wins. */
  readonly values: ReadonlyMap<string, string | null>;
  readonly hasIncludes: boolean;
}

const SECTION = /^\[([A-Za-z0-9.-]+)(?:[ \t]+("(?:[^"\\\n]|\\.)*"))?\]/;
const KEY = /^([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?$/s;
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", b: "\b", '"': '"', "\\": "\\" };

export function parseGitConfig(text: string): GitConfig | null {
  const values = new Map<string, string | null>();
  let hasIncludes = false;
  let section: string | null = null;
  let hasSubsection = false;
  for (const line of text.replace(/^\ufeff/, "").split(/\r?\n/)) {
    let rest = line.replace(/^[ \t]+/, "");
    const header = SECTION.exec(rest);
    if (header !== null) {
      section = header[1]!.toLowerCase();
      hasSubsection = header[2] !== undefined || section.includes(".");
      if (section === "include" || section === "includeif") hasIncludes = true;
      rest = rest.slice(header[0].length).replace(/^[ \t]+/, "");
    }
    if (rest === "" || rest.startsWith("#") || rest.startsWith(";")) continue;
    const entry = KEY.exec(rest);
    if (entry === null || section === null) return null;
    const value = entry[2] === undefined ? null : parseValue(entry[2]);
    if (value === undefined) return null;
    if (!hasSubsection) values.set(`${section}.${entry[1]!.toLowerCase()}`, value);
  }
  return { values, hasIncludes };
}

/** `undefined` for a bad line, and for what versions of Git read differently. */
function parseValue(raw: string): string | undefined {
  const text = raw.replace(/^[ \t]+/, "");
  let value = "";
  /** Without the spaces at the end, unless they are quoted. */
  let kept = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (char === "\\") {
      // At the end of a line: it goes on in the next one.
      const escaped = ESCAPES[text[++i] ?? ""];
      if (escaped === undefined) return undefined;
      value += escaped;
      kept = value.length;
    } else if (char === '"') {
      quoted = !quoted;
      kept = value.length;
    } else if (!quoted && (char === "#" || char === ";")) {
      break;
    } else {
      value += char;
      if (quoted || (char !== " " && char !== "\t")) kept = value.length;
    }
  }
  const result = value.slice(0, kept);
  // Before 2.45 Git made spaces of the tabs and line ends inside a value.
  return quoted || /[\t\r]/.test(result) ? undefined : result;
}

/** Git's idea of a truth value; `undefined` for what is none. A key without `=` is true. */
export function gitBoolean(value: string | null): boolean | undefined {
  if (value === null) return true;
  const text = value.toLowerCase();
  if (["true", "yes", "on"].includes(text)) return true;
  if (["false", "no", "off", ""].includes(text)) return false;
  return /^[+-]?\d+$/.test(text) ? Number(text) !== 0 : undefined;
}
