import { CotenantError, limitError, usageError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import type { RunWithin } from "../../../platform/run-within";
import type { Desk } from "../desk";
import { loadBoard } from "../query";
import { type Match, patternMatch, searchIssues, wordMatch } from "../search";
import { listed, settingAt } from "./query";

export interface SearchDesk extends Desk {
  readonly runWithin: RunWithin;
}

export interface SearchRequest {
  readonly words: readonly string[];
  /** The one word is a pattern in the syntax of JavaScript. */
  readonly regex?: boolean;
  /** Default 50. */
  readonly limit?: number | undefined;
}

/** For the whole of a search by pattern. */
const BUDGET_MS = 3_000;
export const DEFAULT_LIMIT = 50;
const LONGEST = 1_000;
const HELP = { hint: "see 'cotenant search --help'" };

/** Issues in which all the words are, or words that begin so, or a pattern; the best first. `all`: how many without the limit. */
export async function search(desk: SearchDesk, request: SearchRequest) {
  const { limit = DEFAULT_LIMIT, regex = false } = request;
  if (limit === 0) throw new CotenantError("E_USAGE", "--limit takes a number above 0");
  const matches = matchesOf(request);
  const setting = await settingAt(desk);
  const board = await loadBoard(setting, "everywhere");
  const within = regex ? budgeted(desk) : (act: () => void) => act();
  const all = await searchIssues(setting.reader, board, matches, within);
  const results = all.slice(0, limit);
  const issues = results.map(({ issue }) => issue);
  return listed(setting, { board, issues, broken: await board.unreadable(), results, all: all.length });
}

/** Words as they are looked for: those of one argument count as several. */
export function searchWords({ words, regex = false }: SearchRequest): string[] {
  return words.flatMap((word) => (regex ? [word] : word.split(/\s+/))).filter(Boolean);
}

function matchesOf(request: SearchRequest): Match[] {
  const words = searchWords(request);
  if (words.length === 0) throw new CotenantError("E_USAGE", "there is nothing to look for", HELP);
  if (words.some((word) => word.length > LONGEST))
    throw limitError(`what is looked for has at most ${LONGEST} characters`, "look for less");
  return request.regex === true ? [patternMatch(patternOf(request.words))] : words.map(wordMatch);
}

function patternOf([text = "", ...others]: readonly string[]): RegExp {
  if (others.length > 0) throw new CotenantError("E_USAGE", "--regex takes one pattern", HELP);
  try {
    // Older patterns have escapes that are none with the flag for whole characters.
    return isPattern(text, "iu") ? new RegExp(text, "iu") : new RegExp(text, "i");
  } catch (error) {
    const why = printable((error as Error).message, 200);
    throw usageError(`the pattern is not one: ${why}`, "leave out --regex to look for the words as they are");
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
 * Backtracking patterns can take for ever on a short text, and which of them do cannot be told by looking at them. Each
 * round gets what is left of the budget, and running out of it is an answer.
 */
function budgeted({ reader, runWithin }: SearchDesk): (act: () => void) => void {
  const { clock } = reader.sources.platform;
  let leftMs = BUDGET_MS;
  return (act) => {
    const startedMs = clock.monotonicMs();
    if (!runWithin(Math.max(1, Math.ceil(leftMs)), act))
      throw new CotenantError("E_LIMIT", `the pattern takes longer than ${BUDGET_MS / 1000} s`, {
        hint: "write it without a repetition inside a repetition, or look for words",
      });
    leftMs -= clock.monotonicMs() - startedMs;
  };
}
