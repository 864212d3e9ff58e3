import type { Files } from "../../../platform/platform";
import { hasPattern, ONE, SET_CLOSE, SET_OPEN, STAR } from "./words";

/** How many files one pattern may name. */
export const MOST_MATCHES = 1_000;

/** The files that a pattern names; what matches nothing stands for itself, as a shell takes it. */
export async function expanded(files: Files, path: string): Promise<string[]> {
  if (!hasPattern(path)) return [path];
  let found: string[] = [path.startsWith("/") ? "/" : ""];
  for (const segment of path.split("/").filter((part) => part !== "")) {
    const next: string[] = [];
    for (const start of found) {
      if (!hasPattern(segment)) next.push(join(start, segment));
      else for (const name of await matching(files, start, segment)) next.push(join(start, name));
      if (next.length > MOST_MATCHES) break;
    }
    found = next.slice(0, MOST_MATCHES);
  }
  return found.length > 0 ? found : [plain(path)];
}

async function matching(files: Files, directory: string, pattern: string): Promise<string[]> {
  let names: string[] | null;
  try {
    names = await files.readDirectory(directory === "" ? "." : directory);
  } catch {
    return [];
  }
  const tokens = tokensOf(pattern);
  return (names ?? []).filter(
    (name) => (!name.startsWith(".") || pattern.startsWith(".")) && matches(name, tokens),
  );
}

/** A character is a code point, as it is for a shell: it may take two units of a string. */
type Token = "star" | "one" | { readonly set: readonly string[] } | { readonly char: string };

function tokensOf(pattern: string): Token[] {
  const tokens: Token[] = [];
  const chars = [...pattern];
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i]!;
    if (char === STAR) tokens.push("star");
    else if (char === ONE) tokens.push("one");
    else if (char === SET_OPEN) {
      const end = chars.indexOf(SET_CLOSE, i);
      tokens.push({ set: chars.slice(i + 1, end === -1 ? undefined : end) });
      i = end === -1 ? chars.length : end;
    } else tokens.push({ char });
  }
  return tokens;
}

/** In time that grows with the product of the lengths at worst: back only to the last star. */
function matches(name: string, tokens: readonly Token[]): boolean {
  const chars = [...name];
  let [at, token, starAt, starToken] = [0, 0, -1, -1];
  while (at < chars.length) {
    const current = tokens[token];
    if (current === "star") [starAt, starToken, token] = [at, token, token + 1];
    else if (current !== undefined && matchesOne(chars[at]!, current)) [at, token] = [at + 1, token + 1];
    else if (starToken !== -1) [starAt, at, token] = [starAt + 1, starAt + 1, starToken + 1];
    else return false;
  }
  return tokens.slice(token).every((rest) => rest === "star");
}

function matchesOne(char: string, token: Exclude<Token, "star">): boolean {
  if (token === "one") return true;
  if ("char" in token) return token.char === char;
  const negated = token.set[0] === "!" || token.set[0] === "^";
  const set = negated ? token.set.slice(1) : token.set;
  // Classes such as [:alpha:] may be anything: a file too many does no harm.
  if (set.join("").includes("[:")) return true;
  const code = (one: string) => one.codePointAt(0)!;
  let isIn = false;
  for (let i = 0; i < set.length; i++) {
    if (set[i + 1] === "-" && i + 2 < set.length) {
      if (code(char) >= code(set[i]!) && code(char) <= code(set[i + 2]!)) isIn = true;
      i += 2;
    } else if (set[i] === char) isIn = true;
  }
  return isIn !== negated;
}

function plain(path: string): string {
  return path.replaceAll(STAR, "*").replaceAll(ONE, "?").replaceAll(SET_OPEN, "[").replaceAll(SET_CLOSE, "]");
}

function join(directory: string, name: string): string {
  return directory === "" || directory.endsWith("/") ? directory + name : `${directory}/${name}`;
}
