import type { Board, WholeIssue } from "./board";
import { type Comment, decodeComments } from "./comments";
import type { IssueReader } from "./reader";
import { COMMENTS } from "./stamps";

const SEARCH_FIELDS = ["title", "label", "description", "comment", "document"] as const;
type SearchField = (typeof SEARCH_FIELDS)[number];

/** How much a hit counts by where it is. A whole word counts twice as much as the beginning of one, and no more. */
const WEIGHTS: Readonly<Record<SearchField, number>> = {
  title: 100,
  label: 40,
  description: 18,
  comment: 8,
  document: 3,
};
/** Of a document, so much from its beginning; of all of them together, so much. */
const MOST_OF_DOCUMENT = 256 << 10;
const MOST_OF_DOCUMENTS = 64 << 20;
const SNIPPET = 40;
/** So many issues are looked through at a time. */
const AT_ONCE = 500;

/** A text of an issue that can be found. */
interface Passage {
  readonly field: SearchField;
  readonly text: string;
}

interface Hit {
  readonly field: SearchField;
  /** What stands around it. */
  readonly snippet: string;
}

export interface SearchResult {
  readonly issue: WholeIssue;
  readonly score: number;
  /** The first hit of each field, the weightiest field first. */
  readonly hits: readonly Hit[];
}

/** How well a text fits, and where it does first; null where it does not. */
export type Match = (
  text: string,
) => { readonly at: number; readonly length: number; readonly isWhole: boolean } | null;

/**
 * All that is looked for must be somewhere in an issue. `within` runs the matching itself: it may end it, because a
 * pattern that somebody typed can take for ever.
 */
export async function searchIssues(
  reader: IssueReader,
  board: Board,
  matches: readonly Match[],
  within: (act: () => void) => void,
): Promise<SearchResult[]> {
  const rows = await board.settle(board.shown());
  await board.checkLabels(rows);
  const documents = new Documents(reader);
  const results: SearchResult[] = [];
  let pending: { readonly issue: WholeIssue; readonly passages: readonly Passage[] }[] = [];
  const settle = () => {
    within(() => {
      for (const { issue, passages } of pending) {
        const result = resultOf(issue, passages, matches);
        if (result !== null) results.push(result);
      }
    });
    pending = [];
  };
  for await (const issue of board.issues(rows)) {
    pending.push({ issue, passages: await passagesOf(reader, issue, documents) });
    if (pending.length >= AT_ONCE) settle();
  }
  settle();
  await board.save();
  const newest = (result: SearchResult) => result.issue.updatedAt;
  return results.sort(
    (a, b) =>
      b.score - a.score ||
      (newest(a) < newest(b) ? 1 : newest(a) > newest(b) ? -1 : a.issue.id < b.issue.id ? 1 : -1),
  );
}

function resultOf(
  issue: WholeIssue,
  passages: readonly Passage[],
  matches: readonly Match[],
): SearchResult | null {
  const hits = new Map<SearchField, Hit>();
  let score = 0;
  for (const match of matches) {
    let best = 0;
    for (const { field, text } of passages) {
      const found = match(text);
      if (found === null) continue;
      best = Math.max(best, WEIGHTS[field] * (found.isWhole ? 2 : 1));
      if (!hits.has(field)) hits.set(field, { field, snippet: around(text, found.at, found.length) });
    }
    if (best === 0) return null;
    score += best;
  }
  return { issue, score, hits: SEARCH_FIELDS.flatMap((field) => hits.get(field) ?? []) };
}

async function passagesOf(reader: IssueReader, whole: WholeIssue, documents: Documents): Promise<Passage[]> {
  const { issue, labels, title } = whole;
  const passages: Passage[] = [
    { field: "title", text: title },
    ...labels.map((text) => ({ field: "label", text }) as const),
    { field: "description", text: issue.description },
  ];
  for (const { text } of await commentsOf(reader, whole)) passages.push({ field: "comment", text });
  for (const { path, title: named } of issue.documents) {
    if (named !== null) passages.push({ field: "document", text: named });
    passages.push({ field: "document", text: await documents.read(path) });
  }
  return passages;
}

/** Of this worktree and the main one: whoever wrote one elsewhere has it merged soon. */
async function commentsOf({ here, main }: IssueReader, { id }: WholeIssue): Promise<Comment[]> {
  const comments = decodeComments(await here.lines(id, COMMENTS));
  if (main !== null)
    for (const comment of decodeComments(await main.lines(id, COMMENTS)))
      if (!comments.some((known) => known.id === comment.id)) comments.push(comment);
  return comments;
}

/** Files of the worktree that issues name; each is read once. */
class Documents {
  readonly #reader: IssueReader;
  readonly #texts = new Map<string, string>();
  #left = MOST_OF_DOCUMENTS;

  constructor(reader: IssueReader) {
    this.#reader = reader;
  }

  async read(path: string): Promise<string> {
    const known = this.#texts.get(path);
    if (known !== undefined) return known;
    const text = await this.#read(path).catch(() => "");
    this.#texts.set(path, text);
    return text;
  }

  /** Anybody may have written the path: only plain files of the worktree are read, and not what looks binary. */
  async #read(path: string): Promise<string> {
    const { here, sources } = this.#reader;
    const { files } = sources.platform;
    if (path.startsWith("/") || /[\0\\]/.test(path) || path.split("/").includes("..") || this.#left <= 0)
      return "";
    const real = await files.realPath(`${here.root}/${path}`);
    const root = await files.realPath(here.root);
    if (real === null || root === null || !real.startsWith(`${root}/`)) return "";
    if ((await files.stat(real))?.kind !== "file") return "";
    const fd = await files.open(real, "read");
    try {
      const bytes = await files.read(fd, 0, Math.min(MOST_OF_DOCUMENT, this.#left));
      this.#left -= bytes.length;
      return bytes.includes(0) ? "" : new TextDecoder().decode(bytes);
    } finally {
      await files.close(fd);
    }
  }
}

function around(text: string, at: number, length: number): string {
  const from = Math.max(0, at - SNIPPET);
  const to = Math.min(text.length, at + Math.min(length, 2 * SNIPPET) + SNIPPET);
  const part = text.slice(from, to).replace(/\s+/g, " ").trim();
  return `${from > 0 ? "…" : ""}${part}${to < text.length ? "…" : ""}`;
}

const WORD_CHARACTER = /[\p{L}\p{N}_]/u;

/** A word, or the beginning of one, in whichever case. Looks at each place once. */
export function wordMatch(word: string): Match {
  const wanted = word.toLowerCase();
  return (text) => {
    const lower = text.toLowerCase();
    let beginning: { at: number; length: number; isWhole: boolean } | null = null;
    for (let at = lower.indexOf(wanted); at !== -1; at = lower.indexOf(wanted, at + 1)) {
      if (at > 0 && WORD_CHARACTER.test(lower[at - 1]!)) continue;
      const end = lower[at + wanted.length];
      const found = { at, length: wanted.length, isWhole: end === undefined || !WORD_CHARACTER.test(end) };
      if (found.isWhole) return found;
      beginning ??= found;
    }
    return beginning;
  };
}

/** Whatever it finds counts as whole. */
export function patternMatch(pattern: RegExp): Match {
  return (text) => {
    const found = pattern.exec(text);
    return found === null ? null : { at: found.index, length: found[0].length, isWhole: true };
  };
}
