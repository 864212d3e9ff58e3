import type { ByteText } from "../../git/byte-text";
import type { Captured } from "./capture";
import type { Contents, KeptFile } from "./contents";
import { byBytes } from "./listing";
import { kindAt, modeAt } from "./picture";

export interface Now {
  readonly files: ReadonlyMap<ByteText, KeptFile>;
  readonly directories: ReadonlyMap<ByteText, number>;
}

/** What an in-place restore would do, file by file. */
export interface Replacement {
  /** New or with another content. */
  readonly write: readonly KeptFile[];
  /** The same content with other permissions. */
  readonly chmod: readonly KeptFile[];
  readonly remove: readonly ByteText[];
  readonly makeDirectories: readonly (readonly [ByteText, number])[];
  /** Those that stay, and must be opened for as long as something in them changes; with the mode that they get. */
  readonly openDirectories: readonly (readonly [ByteText, number])[];
  readonly chmodDirectories: readonly (readonly [ByteText, number])[];
  /** Deepest first. */
  readonly removeDirectories: readonly ByteText[];
  /** Repositories inside, which stay as they are. */
  readonly untouched: readonly ByteText[];
}

/** The data plane has rules of its own: an old issue must not come back over a newer one without its lease. */
function isDataPlane(path: ByteText): boolean {
  return path === ".cotenant" || path.startsWith(".cotenant/");
}

export function nowOf({ picture }: Pick<Captured, "picture">): Now {
  const files = new Map<ByteText, KeptFile>();
  picture.paths.forEach((path, i) => {
    const oid = picture.oids[i]!;
    if (oid === "") return;
    const seen = kindAt(picture.rows, i);
    const kind = seen === "directory" ? "repository" : seen === "symlink" ? "symlink" : "file";
    files.set(path, { path, kind, oid, mode: kind === "file" ? modeAt(picture.rows, i) : 0 });
  });
  const directories = new Map(
    picture.directories.map((path, i) => [path, modeAt(picture.directoryRows, i)] as const),
  );
  return { files, directories };
}

/** Pure: from what is there to what was there. */
export function planReplacement(now: Now, contents: Contents): Replacement {
  const [write, chmod]: [KeptFile[], KeptFile[]] = [[], []];
  const untouched = new Set<ByteText>();
  const wanted = new Map(contents.files.map((file) => [file.path, file] as const));
  for (const file of contents.files) {
    const before = now.files.get(file.path);
    if (isDataPlane(file.path)) continue;
    if (file.kind === "repository" || before?.kind === "repository") untouched.add(file.path);
    else if (before === undefined || before.kind !== file.kind || before.oid !== file.oid) write.push(file);
    else if (before.mode !== file.mode) chmod.push(file);
  }
  const remove: ByteText[] = [];
  for (const [path, { kind }] of now.files) {
    if (wanted.has(path) || isDataPlane(path)) continue;
    if (kind === "repository") untouched.add(path);
    else remove.push(path);
  }
  const ours = [...contents.directories].filter(([path]) => !isDataPlane(path));
  const theirs = [...now.directories].filter(([path]) => !isDataPlane(path));
  const keeps = (directory: ByteText) => [...untouched].some((path) => path.startsWith(`${directory}/`));
  return {
    write,
    chmod,
    remove: remove.sort(byBytes),
    makeDirectories: ours.filter(([path]) => !now.directories.has(path)),
    openDirectories: ours.filter(([path]) => ((now.directories.get(path) ?? 0o700) & 0o700) !== 0o700),
    chmodDirectories: ours.filter(([path, mode]) => (now.directories.get(path) ?? mode) !== mode),
    removeDirectories: theirs
      .map(([path]) => path)
      .filter((path) => !contents.directories.has(path) && !keeps(path))
      .sort((a, b) => byBytes(b, a)),
    untouched: [...untouched].sort(byBytes),
  };
}

export function isNothing(plan: Replacement): boolean {
  return (
    plan.write.length +
      plan.chmod.length +
      plan.remove.length +
      plan.makeDirectories.length +
      plan.chmodDirectories.length +
      plan.removeDirectories.length ===
    0
  );
}
