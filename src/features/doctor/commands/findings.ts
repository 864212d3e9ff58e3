import type { Context, Output } from "../../../cli/grammar/command";
import { paint, type Style } from "../../../cli/terminal/render";
import type { Terminal } from "../../../cli/terminal/terminal";
import { count } from "../../../kernel/printing";
import { type Finding, type Level, summaryOf } from "../operations";

const STYLES: Readonly<Record<Level, Style>> = { error: "red", warning: "yellow", note: "cyan", ok: "green" };
/** With less room than this beside the names, words go below them. */
const ROOM = 30;

/** Findings for people and for programs. */
export function findingsOutput(
  context: Context,
  findings: readonly Finding[],
  verdict: {
    readonly exit: number;
    /** What is said at the end where there is neither an error nor a warning. */
    readonly fine: string;
    /** What is said after that, in any case. */
    readonly besides?: string;
    readonly data?: Readonly<Record<string, unknown>>;
  },
): Output {
  const summary = summaryOf(findings);
  const shown = context.quiet
    ? findings.filter(({ level }) => level === "error" || level === "warning")
    : findings;
  const isFine = summary.error === 0 && summary.warning === 0;
  const closing = isFine
    ? verdict.fine
    : `${count(summary.error, "error")}, ${count(summary.warning, "warning")}`;
  const lines = [
    ...shown.flatMap((finding) => linesOf(context.terminal, finding, findings)),
    `${closing}${verdict.besides ?? ""}`,
  ];
  return {
    data: { ...verdict.data, findings, summary },
    text: context.quiet && isFine ? "" : lines.join("\n"),
    exit: verdict.exit,
  };
}

function linesOf(terminal: Terminal, finding: Finding, all: readonly Finding[]): string[] {
  const { level, check, message, next } = finding;
  const words = [message, ...(next === null ? [] : [`next: ${next}`])];
  const width = Math.max(...all.map((other) => other.check.length));
  const indent = "warning".length + 2 + width + 2;
  const columns = terminal.isTerminal ? terminal.columns : Number.POSITIVE_INFINITY;
  const painted = paint(terminal, STYLES[level], level.padEnd("warning".length));
  if (columns - indent < ROOM) {
    const below = words.flatMap((text) => wrapped(text, columns - 2)).map((line) => `  ${line}`);
    return [`${paint(terminal, STYLES[level], level)} ${check}`, ...below];
  }
  const [first = "", ...others] = words.flatMap((text) => wrapped(text, columns - indent));
  return [`${painted}  ${check.padEnd(width)}  ${first}`, ...others.map((line) => " ".repeat(indent) + line)];
}

/** Broken between words only: a path or a command can still be copied whole. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
