import { type Ulid, ulidIn } from "../../../kernel/ids";
import { MOST_CHARACTERS } from "../../issues/merge/whole-file";
import { type AppendOnly, COMMENTS, DEPENDENCIES, EVENTS, LABELS, RESULTS } from "../../issues/stamps";

/**
 * What travels on the data branch: issues and what only ever grows beside them. Settings and the gate registry concern
 * everybody and travel with the code.
 */
export const DATA_PATHS = [".cotenant/issues", ".cotenant/gates/results", ".cotenant/events"] as const;

/** Of `git log`: every version of each of these files, up to this commit, newest first. */
export function versionsUpTo(tip: string): string[] {
  return ["log", "--format=", "--raw", "--no-abbrev", "--no-renames", "-z", tip, "--", ...DATA_PATHS];
}

export type DataPath =
  | { readonly kind: "issue"; readonly id: Ulid }
  /** `id` null: the events of all issues. */
  | { readonly kind: "lines"; readonly id: Ulid | null; readonly file: AppendOnly };

export const LINE_FILES: readonly AppendOnly[] = [LABELS, DEPENDENCIES, COMMENTS];

export function parseDataPath(path: string): DataPath | null {
  const [top, folder, name, file, ...rest] = path.split("/");
  if (top !== ".cotenant" || rest.length > 0) return null;
  if (folder === "events")
    return path === `.cotenant/${EVENTS}` ? { kind: "lines", id: null, file: EVENTS } : null;
  if (folder === "gates" && name === "results" && file !== undefined) {
    const id = file.endsWith(".jsonl") ? ulid(file.slice(0, -".jsonl".length)) : null;
    return id === null ? null : { kind: "lines", id, file: RESULTS };
  }
  const id = folder === "issues" && name !== undefined ? ulid(name) : null;
  if (id === null) return null;
  if (file === "issue.json") return { kind: "issue", id };
  const lines = LINE_FILES.find((known) => known === file);
  return lines === undefined ? null : { kind: "lines", id, file: lines };
}

/** Much more than anybody writes. Whatever is larger stays where it is, here and on the branch. */
export function largestBytes({ kind, id }: DataPath): number {
  if (kind === "issue") return MOST_CHARACTERS;
  return id === null ? 32 << 20 : 16 << 20;
}

export function issuePath(id: Ulid): string {
  return `.cotenant/issues/${id}/issue.json`;
}

export function linesPath(id: Ulid | null, file: AppendOnly): string {
  if (file === EVENTS) return `.cotenant/${EVENTS}`;
  return file === RESULTS ? `.cotenant/${RESULTS}/${id}.jsonl` : `.cotenant/issues/${id}/${file}`;
}

/** Only the canonical spelling: no two names for one issue. */
function ulid(text: string): Ulid | null {
  const id = ulidIn(text);
  return id === text ? id : null;
}
