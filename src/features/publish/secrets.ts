import { CotenantError } from "../../errors/cotenant-error";
import type { ObjectDatabase } from "../../git/database";
import { MODES } from "../../git/tree";
import type { Leaf } from "../../git/tree-editor";
import { printable } from "../../kernel/ids";
import { type Allowed, howToAllow, isAllowed } from "./allowances";
import type { Draft } from "./draft";
import { MOST_NAMED, others } from "./hint-words";

export interface SecretFinding {
  readonly path: string;
  readonly line: number;
  /** What it looks like; never the secret itself. */
  readonly kind: string;
}

/** Where there is a NUL in the beginning, Git takes it for binary, and so do we. */
const LOOKED_AT = 8_000;
const LARGEST_TEXT = 8 << 20;

/** Of the contents that are new: what looks like a secret and was not in the file before. */
export async function findSecrets(
  objects: ObjectDatabase,
  draft: Draft,
  before: ReadonlyMap<string, Leaf>,
  { patterns }: Allowed,
): Promise<SecretFinding[]> {
  const found: SecretFinding[] = [];
  for (const [path, wanted] of draft) {
    if (wanted === null || wanted.content === null || wanted.mode === MODES.symlink) continue;
    if (isAllowed(patterns, path)) continue;
    const text = textOf(wanted.content);
    if (text === null) continue;
    const seen = await scan(path, text);
    if (seen.length === 0) continue;
    const old = before.get(path);
    const known = old === undefined || old.mode === MODES.submodule ? "" : await oldText(objects, old.oid);
    found.push(...onePerLine(seen.filter(({ text: secret }) => !known.includes(secret))));
  }
  return found;
}

/** Several rules may see one secret: it is told by the one that knows best what it is. */
function onePerLine(seen: readonly Seen[]): SecretFinding[] {
  const byLine = new Map<number, SecretFinding>();
  const isVague = ({ kind }: SecretFinding) => kind.startsWith("generic-");
  for (const { text: _, ...finding } of seen) {
    const told = byLine.get(finding.line);
    if (told === undefined || (isVague(told) && !isVague(finding))) byLine.set(finding.line, finding);
  }
  return [...byLine.values()].sort((a, b) => a.line - b.line);
}

export function refuseSecrets(found: readonly SecretFinding[], allowed: Allowed): void {
  const [first] = found;
  if (first === undefined) return;
  const more = others(found.slice(1).map(({ path, line, kind }) => `${path}:${line} (${kind})`));
  const way = howToAllow(allowed, [...new Set(found.map(({ path }) => path))]);
  throw new CotenantError(
    "E_SECRET_FOUND",
    `${printable(first.path, 200)}:${first.line} holds what looks like a secret: ${first.kind}${more}`,
    {
      hint: `take it out; if it is none, say so in the file (secretlint-disable-line), or ${way}`,
      data: { findings: found.slice(0, MOST_NAMED), count: found.length },
    },
  );
}

async function oldText(objects: ObjectDatabase, oid: string): Promise<string> {
  try {
    return textOf(await objects.readBlob(oid)) ?? "";
  } catch {
    // Not in a partial clone: then all of it counts as new.
    return "";
  }
}

function textOf(content: Uint8Array): string | null {
  if (content.length > LARGEST_TEXT || content.subarray(0, LOOKED_AT).includes(0)) return null;
  return new TextDecoder().decode(content);
}

type Seen = SecretFinding & { readonly text: string };

/** Loaded only when there is something to look at: it takes as long as starting Node does. */
async function scan(path: string, text: string): Promise<Seen[]> {
  const [{ lintSource }, { creator }, more, { secretLintProfiler }] = await Promise.all([
    import("@secretlint/core"),
    import("@secretlint/secretlint-rule-preset-recommend"),
    import("./secret-rules"),
    import("@secretlint/profiler"),
  ]);
  // It keeps what it measures for ever, and looks through all of it each time.
  secretLintProfiler.mark = () => {};
  const { messages } = await lintSource({
    source: {
      filePath: path,
      content: text,
      ext: path.slice(path.lastIndexOf(".") + 1),
      contentType: "text",
    },
    options: {
      config: {
        rules: [
          { id: "@secretlint/secretlint-rule-preset-recommend", rule: creator },
          { id: more.creator.meta.id, rule: more.creator },
        ],
      },
      noPhysicFilePath: true,
    },
  });
  const seen = messages.map(({ message, messageId, ruleId, loc, range }): Seen => {
    const rule = ruleId.replace(/^@secretlint\/secretlint-rule-/, "");
    return {
      path,
      line: loc.start.line,
      kind: ruleId === more.creator.meta.id ? message : `${rule} (${messageId})`,
      text: text.slice(range[0], range[1]),
    };
  });
  // Who has told the scanner to look away has told us as well.
  if (text.includes("secretlint-disable")) return seen;
  return [...seen, ...privateKeys(path, text)];
}

const BEGIN = "-----BEGIN ";
const KEY_HEAD =
  /^[A-Z0-9 ]{0,60}PRIVATE KEY(?: BLOCK)?-----[ \t]*\r?\n(?:[A-Za-z-]+: [^\n]*\n|\r?\n){0,8}([A-Za-z0-9+/=]{16,})/;

/** Also short ones, such as Ed25519 keys, which the scanner passes over. */
function privateKeys(path: string, text: string): Seen[] {
  const seen: Seen[] = [];
  let [line, counted] = [1, 0];
  for (let at = text.indexOf(BEGIN); at !== -1; at = text.indexOf(BEGIN, at + 1)) {
    const key = KEY_HEAD.exec(text.slice(at + BEGIN.length, at + BEGIN.length + 4_096))?.[1];
    if (key === undefined) continue;
    for (; counted < at; counted++) if (text.charCodeAt(counted) === 10) line++;
    seen.push({ path, line, kind: "a private key", text: key });
  }
  return seen;
}
