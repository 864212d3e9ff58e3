import type { DirectoryInode, Inode } from "./inode";
import { PosixError } from "./posix-error";

const MAX_SYMLINKS = 40;
const MAX_NAME_BYTES = 255;
const MAX_PATH_BYTES = 4095;
const encoder = new TextEncoder();

/** Where a path leads: the directory that holds, or would hold, its last name. */
export interface Place {
  readonly directory: DirectoryInode;
  /** Empty for the root, which no directory holds. */
  readonly name: string;
  readonly inode: Inode | null;
  /** Without symbolic links, "." and "..". */
  readonly canonical: string;
}

export const MAY_READ = 4;
export const MAY_WRITE = 2;
export const MAY_SEARCH = 1;

/** Owner and others; groups are not simulated. */
export function demand(inode: Inode, uid: number, bits: number, path: string): void {
  if (uid === 0) return;
  const granted = inode.uid === uid ? inode.mode.current >> 6 : inode.mode.current;
  if ((granted & bits) !== bits) throw new PosixError("EACCES", path);
}

/** "Not there" is an answer and not thrown: a store asks for many files that do not exist. */
export function walk(
  root: DirectoryInode,
  path: string,
  uid: number,
  followLast: boolean,
): Place | "ENOENT" | "ENOTDIR" {
  if (!path.startsWith("/") || path.includes("\0"))
    throw new PosixError("EINVAL", path, "simulated paths are absolute");
  if (isLonger(path, MAX_PATH_BYTES)) throw new PosixError("ENAMETOOLONG", path);
  const trail: { directory: DirectoryInode; name: string }[] = [{ directory: root, name: "" }];
  const todo = components(path).reverse();
  let symlinks = 0;

  for (;;) {
    const { directory } = trail.at(-1)!;
    const name = todo.pop();
    if (name === undefined) return placeOfTrail(trail);
    demand(directory, uid, MAY_SEARCH, path);
    if (name === ".") continue;
    if (name === "..") {
      if (trail.length > 1) trail.pop();
      continue;
    }
    if (isLonger(name, MAX_NAME_BYTES)) throw new PosixError("ENAMETOOLONG", path);
    const inode = directory.get(name);
    const isLast = todo.length === 0;
    if (inode?.kind === "symlink" && (!isLast || followLast)) {
      if (++symlinks > MAX_SYMLINKS) throw new PosixError("ELOOP", path);
      if (inode.target.startsWith("/")) trail.length = 1;
      todo.push(...components(inode.target).reverse());
      continue;
    }
    if (isLast && inode?.kind !== "directory") {
      return { directory, name, inode, canonical: pathOf(trail, name) };
    }
    if (inode === null) return "ENOENT";
    if (inode.kind !== "directory") return "ENOTDIR";
    trail.push({ directory: inode, name });
  }
}

function isLonger(text: string, bytes: number): boolean {
  return text.length * 3 > bytes && encoder.encode(text).length > bytes;
}

function components(path: string): string[] {
  return path.split("/").filter((name) => name !== "");
}

function placeOfTrail(trail: readonly { directory: DirectoryInode; name: string }[]): Place {
  const last = trail.at(-1)!;
  const above = trail.at(-2) ?? last;
  return {
    directory: above.directory,
    name: last.name,
    inode: last.directory,
    canonical: pathOf(trail.slice(0, -1), last.name),
  };
}

function pathOf(trail: readonly { name: string }[], last: string): string {
  const names = [...trail.map((step) => step.name), last].filter((name) => name !== "");
  return `/${names.join("/")}`;
}
