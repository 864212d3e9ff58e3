/**
 * The environment of a shell, from what its `export -p` prints: the one way of telling it that every POSIX shell has and that
 * loses nothing. Null for what cannot be read to the end: nobody guesses at an environment.
 */
export function readExports(text: string): Record<string, string> | null {
  const env: Record<string, string> = Object.create(null);
  for (let at = 0; at < text.length; ) {
    DECLARED.lastIndex = at;
    const declared = DECLARED.exec(text);
    if (declared === null) return null;
    at = DECLARED.lastIndex;
    // Declared and never set: it is in no environment.
    if (declared[2] === undefined) continue;
    const read = readWord(text, at);
    if (read === null) return null;
    env[declared[1]!] = read.word;
    at = read.end;
  }
  return env;
}

/** `export NAME='…'`, in Bash also `declare -x NAME="…"`, in others `typeset -x`. A name alone ends its line. */
const DECLARED = /(?:export|declare -[a-zA-Z]+|typeset -[a-zA-Z]+) ([A-Za-z_][A-Za-z0-9_]*)(?:(=)|\n|$)/y;

const BARE = /[^\s'"\\$`;&|<>()]+/y;
const SINGLE = /'([^']*)'/y;
const DOUBLE = /"((?:[^"\\$`]|\\[\s\S])*)"/y;
const ANSI = /\$'((?:[^'\\]|\\[\s\S])*)'/y;
const ESCAPED = /\\([^\n])/y;

/** One word, as the shell would read it, and where the next line begins. */
function readWord(text: string, from: number): { readonly word: string; readonly end: number } | null {
  let word = "";
  for (let at = from; ; ) {
    if (at >= text.length) return { word, end: at };
    if (text[at] === "\n") return { word, end: at + 1 };
    const part = partAt(text, at);
    if (part === null) return null;
    word += part.text;
    at = part.end;
  }
}

function partAt(text: string, at: number): { readonly text: string; readonly end: number } | null {
  const found = (pattern: RegExp) => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };
  const bare = found(BARE);
  if (bare !== null) return { text: bare[0], end: BARE.lastIndex };
  const single = found(SINGLE);
  if (single !== null) return { text: single[1]!, end: SINGLE.lastIndex };
  const double = found(DOUBLE);
  if (double !== null)
    return { text: double[1]!.replace(/\\([$`"\\\n])/g, unescapedInDouble), end: DOUBLE.lastIndex };
  const ansi = found(ANSI);
  if (ansi !== null) {
    const plain = unescapedAnsi(ansi[1]!);
    return plain === null ? null : { text: plain, end: ANSI.lastIndex };
  }
  const escaped = found(ESCAPED);
  return escaped === null ? null : { text: escaped[1]!, end: ESCAPED.lastIndex };
}

function unescapedInDouble(_: string, what: string): string {
  return what === "\n" ? "" : what;
}

const ANSI_NAMED: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  e: "\x1b",
  E: "\x1b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "?": "?",
};

/** Escapes stand for bytes, of which several may be one character. Null where they are no text together. */
function unescapedAnsi(text: string): string | null {
  const parts: Buffer[] = [];
  let isKnown = true;
  for (const [, escaped, plain] of text.matchAll(/\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|[\s\S])|([^\\]+)/g)) {
    if (plain !== undefined) parts.push(Buffer.from(plain));
    else {
      const bytes = bytesOf(escaped!);
      isKnown &&= bytes !== null;
      if (bytes !== null) parts.push(bytes);
    }
  }
  try {
    return isKnown ? UTF8.decode(Buffer.concat(parts)) : null;
  } catch {
    return null;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function bytesOf(escaped: string): Buffer | null {
  const named = ANSI_NAMED[escaped];
  if (named !== undefined) return Buffer.from(named);
  const isOctal = /^[0-7]/.test(escaped);
  if (!isOctal && !/^x./.test(escaped)) return null;
  const code = isOctal ? Number.parseInt(escaped, 8) : Number.parseInt(escaped.slice(1), 16);
  return code > 0 && code < 256 ? Buffer.of(code) : null;
}
