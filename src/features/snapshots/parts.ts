import type { ByteText } from "../../git/byte-text";
import type { ObjectId } from "../../git/object-name";
import { encodeTree, MODES, type TreeEntry } from "../../git/tree";
import type { Platform } from "../../platform/platform";
import { COLUMN, ROW } from "../../platform/trees";
import type { Hasher } from "./hasher";
import { byBytes } from "./listing";
import { encodeManifest, makeManifest } from "./manifest";
import { kindAt, modeAt, type Picture } from "./picture";
import type { ByCommit, SnapshotMachine } from "./snapshot-context";
import type { StagedParts } from "./staged";
import type { Put } from "./tree-builder";

/** All that a snapshot holds besides the files themselves. */
export interface Parts extends StagedParts {
  readonly manifest: ObjectId;
  readonly head: ObjectId | null;
  readonly branch: string | null;
  /** What the index's file and the root were like, to see whether anything happened to them. */
  readonly indexMark: string;
  readonly rootMark: string;
  readonly byCommit: readonly ByCommit[];
  readonly leftOut: readonly { readonly path: ByteText; readonly why: string }[];
  readonly files: number;
  readonly bytes: number;
  readonly digest: string;
}

export async function partsOf(
  { platform }: SnapshotMachine,
  put: Put,
  developed: {
    readonly picture: Picture;
    readonly unlisted: readonly ByteText[];
    readonly hasher: Hasher;
    readonly byCommit: readonly ByCommit[];
  },
  staged: StagedParts,
  rest: Pick<Parts, "head" | "branch" | "indexMark" | "rootMark">,
): Promise<Parts> {
  const { picture, hasher, byCommit } = developed;
  const { paths, rows, oids, directories, directoryRows } = picture;
  const unlisted = new Set(developed.unlisted);
  const files: [ByteText, number][] = [];
  const lines: string[] = [];
  let [count, bytes] = [0, 0];
  for (let i = 0; i < paths.length; i++) {
    if (oids[i] === "") continue;
    const kind = kindAt(rows, i)!;
    const mode = kind === "file" ? modeAt(rows, i) : 0;
    lines.push(digestLine(kind, mode, oids[i]!, paths[i]!));
    if (kind === "directory") continue;
    count++;
    bytes += rows[i * ROW + COLUMN.size]!;
    if (kind === "file") files.push([paths[i]!, mode]);
  }
  const modes = directories.map((path, i) => [path, modeAt(directoryRows, i)] as const);
  for (const [path, mode] of modes) lines.push(digestLine("directory", mode, "", path));
  const manifest = makeManifest({
    files,
    directories: modes.filter(([path]) => !unlisted.has(path)),
    unlisted: modes.filter(([path]) => unlisted.has(path)),
  });
  const { index, stages, skipped } = staged;
  return {
    ...{ index, stages, skipped },
    ...rest,
    manifest: await put("blob", encodeManifest(manifest)),
    byCommit,
    leftOut: [...hasher.leftOut].map(([path, why]) => ({ path, why })),
    files: count,
    bytes,
    digest: digestOf(platform, lines),
  };
}

/** The tree of a snapshot's second commit. */
export function encodeRest(parts: Pick<Parts, "manifest" | "index" | "stages" | "skipped">): Uint8Array {
  const entries: TreeEntry[] = [{ mode: MODES.file, name: "manifest", oid: parts.manifest }];
  if (parts.index !== null) entries.push({ mode: MODES.tree, name: "index", oid: parts.index });
  if (parts.stages !== null) entries.push({ mode: MODES.tree, name: "stages", oid: parts.stages });
  if (parts.skipped !== null) entries.push({ mode: MODES.file, name: "skip-worktree", oid: parts.skipped });
  return encodeTree(entries);
}

/** What a snapshot and a tree that was restored from it must have in common. */
export function digestLine(kind: string, mode: number, oid: ObjectId, path: ByteText): string {
  return `${path}\0${kind} ${mode.toString(8)} ${oid}\n`;
}

export function digestOf({ digest }: Pick<Platform, "digest">, lines: string[]): string {
  return digest.sha256(lines.sort(byBytes).join(""));
}
