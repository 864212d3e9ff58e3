import { createContext, runInContext } from "node:vm";
import type { Command, Context, Parsed } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { paint } from "../../../cli/terminal/render";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { claimantOf } from "../effective";
import { loadBoard } from "../query";
import { type Match, patternMatch, type SearchResult, search, wordMatch } from "../search";
import { brokenLines, leftLines, openQuery, rowJson } from "./querying";

/** For the whole of a search by pattern. */
const BUDGET_MS = 3_000;
const MOST_SHOWN = 50;
const LONGEST = 1_000;

export const command: Command = {
  usage: "search <word>… [--regex] [--limit <n>]",
  about:
    "Finds issues by the words in their titles, labels, descriptions, comments and documents: those in which all the\nwords are, or words that begin so, the best first. With --regex, one pattern in the syntax of JavaScript, in\nwhichever case.",
  flags: {
    regex: { meaning: "what is given is a pattern" },
    limit: { value: "<n>", meaning: `at most so many (default ${MOST_SHOWN})` },
  },
  examples: ["cotenant search log in", "cotenant search --regex 'log.?in'"],
  words: { min: 1, max: 20 },
  async run(context, parsed) {
    const limit = parsed.whole("limit") ?? MOST_SHOWN;
    if (limit === 0) throw usage("--limit takes a number above 0");
    const matches = matchesFrom(parsed);
    const { setting } = await openQuery(context);
    const board = await loadBoard(setting, "everywhere");
    const isPattern = parsed.has("regex");
    const all = await search(setting.reader, board, matches, isPattern ? budgeted() : (act) => act());
    const results = all.slice(0, limit);
    const broken = await board.unreadable();
    const rows = results.map(({ issue }) => issue);
    const left = await setting.leftAmong(rows);
    const items = results.map(({ issue, score, hits }) => ({
      ...rowJson(issue, claimantOf(setting, issue.id), left),
      score,
      matches: hits,
    }));
    const mark = marker(context, parsed);
    const text = [
      ...(results.length === 0 ? ["nothing found"] : results.flatMap((result) => lines(result, mark))),
      ...(all.length > results.length ? [`${all.length - results.length} more: --limit shows them`] : []),
      ...leftLines(rows, left, setting.reader.here.root),
      ...brokenLines(broken),
    ].join("\n");
    return { data: { issues: items, found: all.length, broken }, text };
  },
};

function matchesFrom(parsed: Parsed): Match[] {
  const words = parsed.words
    .flatMap((word) => (parsed.has("regex") ? [word] : word.split(/\s+/)))
    .filter(Boolean);
  if (words.length === 0) throw usage("there is nothing to look for", "cotenant search --help");
  if (words.some((word) => word.length > LONGEST))
    throw new CotenantError("E_LIMIT", `what is looked for has at most ${LONGEST} characters`, {
      hint: "look for less",
    });
  return parsed.has("regex") ? [patternMatch(patternOf(parsed))] : words.map(wordMatch);
}

function patternOf({ words }: Parsed): RegExp {
  if (words.length > 1) throw usage("--regex takes one pattern", "cotenant search --help");
  try {
    // Older patterns have escapes that are none with the flag for whole characters.
    return isPattern(words[0]!, "iu") ? new RegExp(words[0]!, "iu") : new RegExp(words[0]!, "i");
  } catch (error) {
    throw new CotenantError(
      "E_USAGE",
      `the pattern is not one: ${printable((error as Error).message, 200)}`,
      {
        hint: "leave out --regex to look for the words as they are",
      },
    );
  }
}

function isPattern(text: string, flags: string): boolean {
  try {
    return new RegExp(text, flags).flags !== "";
  } catch {
    return false;
  }
}

/**
 * Backtracking patterns can take for ever on a short text, and which of them do cannot be told by looking at them. The
 * engine can be stopped: each round gets what is left of the budget, and running out of it is an answer.
 */
function budgeted(): (act: () => void) => void {
  const room: { act: () => void } = { act: () => {} };
  createContext(room);
  let leftMs = BUDGET_MS;
  return (act) => {
    const started = performance.now();
    room.act = act;
    try {
      runInContext("act()", room, { timeout: Math.max(1, Math.ceil(leftMs)) });
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      throw new CotenantError("E_LIMIT", `the pattern takes longer than ${BUDGET_MS / 1000} s`, {
        hint: "write it without a repetition inside a repetition, or look for words",
      });
    }
    leftMs -= performance.now() - started;
  };
}

function lines({ issue, hits }: SearchResult, mark: (text: string) => string): string[] {
  const head = `${issue.shortId}  ${mark(printable(issue.title, 120))}  (${issue.state}, ${issue.priority})`;
  const others = hits.filter(({ field }) => field !== "title");
  return [head, ...others.map(({ field, snippet }) => `  ${field}: ${mark(printable(snippet, 200))}`)];
}

/** What was looked for stands out on a terminal; plain words only, what a pattern found is not looked for again. */
function marker({ terminal }: Context, parsed: Parsed): (text: string) => string {
  if (!terminal.color || parsed.has("regex")) return (text) => text;
  const words = parsed.words.flatMap((word) => word.split(/\s+/)).filter(Boolean);
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  const wanted = new RegExp(`(?<![\\p{L}\\p{N}_])(?:${escaped.join("|")})`, "giu");
  return (text) => text.replace(wanted, (found) => paint(terminal, "bold", found));
}
