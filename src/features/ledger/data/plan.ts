import type { Ulid } from "../../../kernel/ids";
import type { AppendOnly } from "../../issues/stamps";
import { COMMENTS } from "../../issues/stamps";
import { type Contradiction, mergeIssueTexts, mergeLines } from "./merge";
import { linesPath, parseDataPath } from "./paths";

/** One file in three places, by blob id; null where it is not there. */
export interface ThreeBlobs {
  readonly path: string;
  readonly base: string | null;
  readonly here: string | null;
  readonly there: string | null;
}

/** What is to be written into this worktree. */
export interface IssueWrite {
  readonly id: Ulid;
  /** The new `issue.json`, and what must still be there for it to be written; null: it stays. */
  readonly text: {
    readonly next: string;
    readonly expected: string | null;
    readonly oid: string | null;
  } | null;
  readonly lines: readonly { readonly file: AppendOnly; readonly lines: readonly string[] }[];
}

export interface Plan {
  /** New contents for the branch. */
  readonly branch: ReadonlyMap<string, string>;
  readonly here: readonly IssueWrite[];
  readonly events: readonly string[];
  readonly contradictions: readonly { readonly id: Ulid; readonly fields: readonly Contradiction[] }[];
  readonly unreadable: readonly { readonly id: Ulid; readonly why: string }[];
}

export interface Contents {
  here(path: string): string | null;
  there(path: string): string | null;
  base(path: string): string | null;
}

/** The files that differ between here and there. */
export function differing(
  here: ReadonlyMap<string, string>,
  there: ReadonlyMap<string, string>,
  baseOf: (path: string) => string | null,
): ThreeBlobs[] {
  const paths = [...new Set([...here.keys(), ...there.keys()])].sort();
  return paths.flatMap((path) => {
    const [mine, yours] = [here.get(path) ?? null, there.get(path) ?? null];
    return mine === yours || parseDataPath(path) === null
      ? []
      : [{ path, base: baseOf(path), here: mine, there: yours }];
  });
}

/** What a merge comes to, without a disk. */
export function planSync(
  files: readonly ThreeBlobs[],
  contents: Contents,
  sha256: (text: string) => string,
): Plan {
  const branch = new Map<string, string>();
  const writes = new Map<
    Ulid,
    { text: IssueWrite["text"]; lines: { file: AppendOnly; lines: readonly string[] }[] }
  >();
  const contradictions: { id: Ulid; fields: readonly Contradiction[] }[] = [];
  const unreadable: { id: Ulid; why: string }[] = [];
  const events: string[] = [];
  const extraComments = new Map<Ulid, string>();
  const writeOf = (id: Ulid) => {
    const known = writes.get(id) ?? { text: null, lines: [] };
    writes.set(id, known);
    return known;
  };

  for (const { path, here: oid } of files) {
    const parsed = parseDataPath(path);
    if (parsed?.kind !== "issue") continue;
    const [mine, yours] = [contents.here(path), contents.there(path)];
    const merged = mergeIssueTexts(contents.base(path), mine, yours, sha256);
    if ("why" in merged) {
      unreadable.push({ id: parsed.id, why: merged.why });
      continue;
    }
    if (merged.text !== yours) branch.set(path, merged.text);
    if (merged.text !== mine) writeOf(parsed.id).text = { next: merged.text, expected: mine, oid };
    if (merged.contradictions.length > 0)
      contradictions.push({ id: parsed.id, fields: merged.contradictions });
    if (merged.comment !== null) extraComments.set(parsed.id, merged.comment);
  }
  const mergeLineFile = (id: Ulid | null, file: AppendOnly, extra: string) => {
    const path = linesPath(id, file);
    const [mine, yours] = [contents.here(path) ?? "", contents.there(path) ?? ""];
    const { text, missingHere } = mergeLines(mine + extra, yours);
    if (text !== yours) branch.set(path, text);
    const missing = extra === "" || mine.includes(extra.trimEnd()) ? missingHere : [...missingHere, extra];
    if (missing.length === 0) return;
    if (id === null) events.push(...missing);
    else writeOf(id).lines.push({ file, lines: missing });
  };
  for (const { path } of files) {
    const parsed = parseDataPath(path);
    if (parsed?.kind !== "lines") continue;
    const isCommented = parsed.id !== null && parsed.file === COMMENTS && extraComments.has(parsed.id);
    mergeLineFile(parsed.id, parsed.file, isCommented ? extraComments.get(parsed.id!)! : "");
    if (isCommented) extraComments.delete(parsed.id!);
  }
  for (const [id, comment] of extraComments) mergeLineFile(id, COMMENTS, comment);
  const here = [...writes].map(([id, write]) => ({ id, ...write }));
  return { branch, here, events, contradictions, unreadable };
}
