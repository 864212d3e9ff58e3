import type { Command, Context } from "../../../cli/grammar/command";
import { paint } from "../../../cli/terminal/render";
import { printable } from "../../../kernel/ids";
import { nodeRunWithin } from "../../../platform/node/run-within";
import { DEFAULT_LIMIT, type SearchRequest, search, searchWords } from "../operations/search";
import type { SearchResult } from "../search";
import { openDesk } from "./desk";
import { linesBelow, listedJson } from "./output";

export const command: Command = {
  positional: "<word>…",
  about:
    "Finds issues by the words in their titles, labels, descriptions, comments and documents: those in which all the\nwords are, or words that begin so, the best first. With --regex, one pattern in the syntax of JavaScript, in\nwhichever case.",
  flags: {
    regex: { meaning: "what is given is a pattern" },
    limit: { value: "<n>", meaning: `at most so many (default ${DEFAULT_LIMIT})` },
  },
  examples: ["cotenant search log in", "cotenant search --regex 'log.?in'"],
  words: { min: 1, max: 20 },
  async run(context, parsed) {
    const request = { words: parsed.words, regex: parsed.has("regex"), limit: parsed.whole("limit") };
    const desk = { ...(await openDesk(context)), runWithin: nodeRunWithin };
    const answer = await search(desk, request);
    const { results, all, broken } = answer;
    const items = results.map(({ issue, score, hits }) => ({
      ...listedJson(issue, answer),
      score,
      matches: hits,
    }));
    const mark = marker(context, request);
    const text = [
      ...(results.length === 0 ? ["nothing found"] : results.flatMap((result) => lines(result, mark))),
      ...(all > results.length ? [`${all - results.length} more: --limit shows them`] : []),
      ...linesBelow(desk, answer.issues, answer),
    ].join("\n");
    return { data: { issues: items, found: all, broken }, text };
  },
};

function lines({ issue, hits }: SearchResult, mark: (text: string) => string): string[] {
  const head = `${issue.shortId}  ${mark(printable(issue.title, 120))}  (${issue.state}, ${issue.priority})`;
  const others = hits.filter(({ field }) => field !== "title");
  return [head, ...others.map(({ field, snippet }) => `  ${field}: ${mark(printable(snippet, 200))}`)];
}

/** What was looked for stands out on a terminal; plain words only, what a pattern found is not looked for again. */
function marker({ terminal }: Context, request: SearchRequest): (text: string) => string {
  if (!terminal.color || request.regex === true) return (text) => text;
  const escaped = searchWords(request).map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  const wanted = new RegExp(`(?<![\\p{L}\\p{N}_])(?:${escaped.join("|")})`, "giu");
  return (text) => text.replace(wanted, (found) => paint(terminal, "bold", found));
}
