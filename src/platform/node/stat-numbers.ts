import * as fs from "node:fs";

const QUIETLY = { throwIfNoEntry: false } as const;

/** `lstat` as four numbers in a row of them: inode (-1: nothing is there, NaN: neither file nor directory), size, times. */
export function statNumbers(path: string, into: Float64Array, at: number): void {
  const stat = fs.lstatSync(path, QUIETLY);
  if (stat === undefined) into.fill(0, at, at + 4)[at] = -1;
  else {
    into[at] = stat.isFile() || stat.isDirectory() ? stat.ino : Number.NaN;
    into[at + 1] = stat.size;
    into[at + 2] = stat.mtimeMs;
    into[at + 3] = stat.ctimeMs;
  }
}
