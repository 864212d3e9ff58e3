import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { SyntaxKind } from "typescript/unstable/ast";
import { createScanner } from "typescript/unstable/ast/scanner";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/[/\\]$/, "");

/** Made by programs, or somebody else's. */
const NOT_OURS = new Set(["node_modules", "dist", ".git", "coverage"]);

export interface SourceFile {
  /** From the project's root, with `/`. */
  readonly path: string;
  readonly text: string;
}

/** Every file of ours below `folder`, as text. */
export function filesBelow(folder: string): SourceFile[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !NOT_OURS.has(name))
    .flatMap((entry) => {
      const path = join(ROOT, folder, entry.name);
      const name = relative(ROOT, path).replaceAll(sep, "/");
      if (entry.isDirectory()) return filesBelow(name);
      return entry.isFile() ? [{ path: name, text: readFileSync(path, "utf8") }] : [];
    });
}

export interface Token {
  readonly kind: SyntaxKind;
  readonly text: string;
  /** A string's content. */
  readonly value: string;
  readonly line: number;
}

/**
 * TypeScript's own scanner, plus the two things that its parser would tell it: whether a `/` starts a regular
 * expression, and whether a `}` goes on with a template. So nothing inside a comment or string is taken for code.
 */
export function tokensOf(text: string): Token[] {
  const scanner = createScanner(true);
  scanner.setText(text);
  const tokens: Token[] = [];
  /** One entry per open brace: true when it is a template's `${`. */
  const braces: boolean[] = [];
  let [line, counted] = [1, 0];
  for (let kind = scanner.scan(); kind !== SyntaxKind.EndOfFile; kind = scanner.scan()) {
    if (kind === SyntaxKind.SlashToken || kind === SyntaxKind.SlashEqualsToken) {
      if (!endsValue(tokens.at(-1))) kind = scanner.reScanSlashToken();
    } else if (kind === SyntaxKind.CloseBraceToken && braces.pop() === true) {
      kind = scanner.reScanTemplateToken(false);
      if (kind === SyntaxKind.TemplateMiddle) braces.push(true);
    } else if (kind === SyntaxKind.OpenBraceToken || kind === SyntaxKind.TemplateHead) {
      braces.push(kind === SyntaxKind.TemplateHead);
    }
    const start = scanner.getTokenStart();
    for (; counted < start; counted++) if (text.charCodeAt(counted) === 10) line++;
    tokens.push({ kind, text: scanner.getTokenText(), value: scanner.getTokenValue(), line });
  }
  return tokens;
}

const VALUE_ENDS = new Set([
  SyntaxKind.Identifier,
  SyntaxKind.PrivateIdentifier,
  SyntaxKind.NumericLiteral,
  SyntaxKind.BigIntLiteral,
  SyntaxKind.StringLiteral,
  SyntaxKind.RegularExpressionLiteral,
  SyntaxKind.NoSubstitutionTemplateLiteral,
  SyntaxKind.TemplateTail,
  SyntaxKind.CloseParenToken,
  SyntaxKind.CloseBracketToken,
  SyntaxKind.CloseBraceToken,
  SyntaxKind.ThisKeyword,
  SyntaxKind.SuperKeyword,
  SyntaxKind.NullKeyword,
  SyntaxKind.TrueKeyword,
  SyntaxKind.FalseKeyword,
]);

function endsValue(token: Token | undefined): boolean {
  return token !== undefined && VALUE_ENDS.has(token.kind);
}

export interface Mention {
  readonly name: string;
  readonly line: number;
}

/** The modules a file names: `import … from`, `export … from`, `import "x"`, `import("x")`, `require("x")`, types too. */
export function modulesOf(tokens: readonly Token[]): Mention[] {
  return tokens.flatMap((token, at) => {
    if (token.kind !== SyntaxKind.StringLiteral && token.kind !== SyntaxKind.NoSubstitutionTemplateLiteral)
      return [];
    const [before, earlier] = [tokens[at - 1], tokens[at - 2]];
    const isStatic = before?.kind === SyntaxKind.FromKeyword || before?.kind === SyntaxKind.ImportKeyword;
    const isCall =
      before?.kind === SyntaxKind.OpenParenToken &&
      (earlier?.kind === SyntaxKind.ImportKeyword || earlier?.text === "require");
    return isStatic || isCall ? [{ name: token.value, line: token.line }] : [];
  });
}

/** Where a file says `… as T` with one of these types anywhere in T. */
export function castsTo(types: ReadonlySet<string>, tokens: readonly Token[]): Mention[] {
  return tokens.flatMap((token, at) => {
    if (token.kind !== SyntaxKind.AsKeyword) return [];
    const named = typeAfter(tokens, at).find(({ text }) => types.has(text));
    return named === undefined ? [] : [{ name: named.text, line: token.line }];
  });
}

/** What follows, as far as it can belong to a type. */
function typeAfter(tokens: readonly Token[], at: number): Token[] {
  const type: Token[] = [];
  let depth = 0;
  for (const token of tokens.slice(at + 1)) {
    if (/^[)\]}>]+$/.test(token.text)) depth -= token.text.length;
    if (depth < 0 || (depth === 0 && /^(?:as|[,;:?=.]|[=!]==?|=>|&&|\|\||\?\?)$/.test(token.text))) break;
    if (/^[([{<]$/.test(token.text)) depth++;
    type.push(token);
  }
  return type;
}

/**
 * Where a file uses one of these names of the surrounding world: `process.env`, `Date.now()`, `setTimeout(…)`. A
 * property of something else (`deps.process`) or a key (`{ process: … }`) is not a use. `isOwn` says that the file
 * has a variable or parameter of that name.
 */
export function ambientUses(
  tokens: readonly Token[],
  isAmbient: (name: string, member: string, isOwn: boolean) => boolean,
): Mention[] {
  const own = ownNames(tokens);
  return tokens.flatMap((token, at) => {
    if (token.kind !== SyntaxKind.Identifier || isMember(tokens[at - 1])) return [];
    const member = isMember(tokens[at + 1]) ? (tokens[at + 2]?.text ?? "") : "";
    const isUse = member !== "" || ["(", "["].includes(tokens[at + 1]?.text ?? "");
    if (!isUse || !isAmbient(token.text, member, own.has(token.text))) return [];
    return [{ name: member === "" ? token.text : `${token.text}.${member}`, line: token.line }];
  });
}

function ownNames(tokens: readonly Token[]): Set<string> {
  const isDeclared = (before = "", after = "") =>
    ["const", "let", "var"].includes(before) || (["(", ","].includes(before) && after === ":");
  const own = tokens.filter((_, at) => isDeclared(tokens[at - 1]?.text, tokens[at + 1]?.text));
  return new Set(own.map(({ text }) => text));
}

function isMember(token: Token | undefined): boolean {
  return token?.kind === SyntaxKind.DotToken || token?.kind === SyntaxKind.QuestionDotToken;
}
