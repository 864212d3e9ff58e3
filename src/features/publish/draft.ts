import { CotenantError, errorFrom, usageError } from "../../errors/cotenant-error";
import type { ErrorCode } from "../../errors/registry";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { MODES } from "../../git/tree";
import type { Leaf } from "../../git/tree-editor";
import { printable } from "../../kernel/ids";
import { parseRepoPath } from "../../kernel/keys";
import { isRefusal } from "../../kernel/refusal";

/** What is to stand at a path: a content that may be new, or something that is in the repository already. */
export type Wanted =
  | { readonly mode: string; readonly content: Uint8Array; readonly oid: ObjectId }
  | { readonly mode: string; readonly content: null; readonly oid: ObjectId };

/** The paths that a publish changes, in the spelling of the tree, against one tree; null deletes. */
export type Draft = ReadonlyMap<string, Wanted | null>;

/** One thing that a caller wants, by paths from the repository's root. */
export type Input =
  | {
      readonly op: "put";
      readonly path: string;
      readonly content: Uint8Array;
      /** Null: as it is now; for a new file as `newMode` says. */
      readonly mode: string | null;
      readonly newMode: string;
      /** What the caller saw there: an object's id, null for nothing; undefined where it does not say. */
      readonly baseBlob?: ObjectId | null;
    }
  | { readonly op: "delete"; readonly path: string; readonly baseBlob?: ObjectId | null }
  | { readonly op: "rename"; readonly from: string; readonly to: string }
  | { readonly op: "patch"; readonly patch: Uint8Array; readonly name: string }
  | { readonly op: "from-worktree"; readonly path: string };

export function contentLeaf(objects: ObjectDatabase, mode: string, content: Uint8Array): Wanted {
  return { mode, content, oid: objects.nameOf("blob", content) };
}

export function sameLeaf(one: Leaf | null | undefined, other: Leaf | null | undefined): boolean {
  if (one == null || other == null) return one == null && other == null;
  return one.mode === other.mode && one.oid === other.oid;
}

/** A refusal that is about one path, in words that follow its name. */
export function pathError(
  code: ErrorCode,
  path: string,
  words: string,
  { hint, ...data }: { readonly hint?: string; readonly [name: string]: unknown },
): CotenantError {
  return new CotenantError(code, `${printable(path, 200)} ${words}`, {
    hint,
    data: { path: printable(path, 500), ...data },
  });
}

/** A path as Git will have it, or the refusal that says what is wrong with it. */
export function checkedPath(path: string): string {
  const parsed = parseRepoPath(path);
  if (isRefusal(parsed)) throw errorFrom(parsed);
  if (parsed === ".") throw usageError("the repository's root is no file", "name files in it");
  return path;
}

/** Collects what several inputs want; the same path must not be wanted twice. */
export class DraftBook {
  readonly #wanted = new Map<string, Wanted | null>();

  set(path: string, wanted: Wanted | null): void {
    if (this.#wanted.has(path))
      throw pathError("E_USAGE", path, "is named twice", {
        hint: "name each path once: what should stand there in the end",
      });
    this.#wanted.set(path, wanted);
  }

  /** For a name that something else gives up in the same publish. */
  replace(path: string, wanted: Wanted): void {
    this.#wanted.set(path, wanted);
  }

  has(path: string): boolean {
    return this.#wanted.has(path);
  }

  setAll(changes: ReadonlyMap<string, Wanted | null>): void {
    for (const [path, wanted] of changes) this.set(path, wanted);
  }

  get draft(): Draft {
    return this.#wanted;
  }
}

export const FILE_MODES: readonly string[] = [MODES.file, MODES.executable, MODES.symlink];
