import { type ByteText, byteTextOf } from "../../git/byte-text";

const MOST_NAMES = 100_000;

/**
 * Names that a patch may speak of as they are before it: what is renamed, copied, changed or deleted. Rather too many
 * than too few: a name at which nothing stands does no harm. Git itself says what the patch does.
 */
export function formerNames(patch: Uint8Array): Set<ByteText> {
  const names = new Set<ByteText>();
  for (const line of byteTextOf(patch).split("\n")) {
    const name = formerName(line.endsWith("\r") ? line.slice(0, -1) : line);
    if (name !== null && name !== "" && names.size < MOST_NAMES) names.add(name);
  }
  return names;
}

function formerName(line: ByteText): ByteText | null {
  for (const head of ["rename from ", "copy from "])
    if (line.startsWith(head)) return unquoted(line.slice(head.length));
  if (!line.startsWith("--- ") && !line.startsWith("+++ ")) {
    // A change of mode alone, an empty or a binary file: no `---` line says what it is about.
    return line.startsWith("diff --git ") ? sameOnBothSides(line.slice("diff --git ".length)) : null;
  }
  const rest = line.slice(4);
  const name = rest.startsWith('"') ? unquoted(rest) : rest.split("\t")[0]!;
  return withoutPrefix(name);
}

/** `a/x b/x`: where the names differ, other lines say so. */
function sameOnBothSides(rest: ByteText): ByteText | null {
  if (rest.startsWith('"')) {
    const end = closingQuote(rest);
    return end === -1 ? null : withoutPrefix(unquoted(rest.slice(0, end + 1)));
  }
  const half = (rest.length - 1) / 2;
  const [one, other] = [withoutPrefix(rest.slice(0, half)), withoutPrefix(rest.slice(half + 1))];
  return Number.isInteger(half) && one === other ? one : null;
}

function withoutPrefix(name: ByteText): ByteText {
  return name.slice(name.indexOf("/") + 1);
}

function closingQuote(text: ByteText): number {
  for (let at = 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at;
  }
  return -1;
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  '"': '"',
};

/** Names with unusual bytes stand in C's quotes. */
function unquoted(text: ByteText): ByteText {
  if (!text.startsWith('"')) return text;
  const end = closingQuote(text);
  return text
    .slice(1, end === -1 ? undefined : end)
    .replace(/\\([0-7]{3}|.)/g, (_, code: string) =>
      code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8) & 0xff) : (ESCAPES[code] ?? code),
    );
}
