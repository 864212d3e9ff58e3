import type { Plant } from "../plants";

const caughtBy = ["snapshots"];

export const PLANTS: readonly Plant[] = [
  {
    name: "contents: a file that kept its size and time is taken for unchanged",
    file: "src/features/snapshots/picture.ts",
    from: "if (a[i * ROW + column] !== b[j * ROW + column]) return false;",
    to: "if (column < COLUMN.inode && a[i * ROW + column] !== b[j * ROW + column]) return false;",
    caughtBy,
    inTest: true,
  },
  {
    name: "contents: permissions beyond executable are not kept",
    file: "src/features/snapshots/manifest.ts",
    from: "    files: new Map(allFiles.filter(([, mode]) => mode !== usualFor(mode))),",
    to: "    files: new Map(),",
    caughtBy,
  },
  {
    name: "restore: a directory in a file's place is left there",
    file: "src/features/snapshots/replacement.ts",
    from: "      .filter((path) => !contents.directories.has(path) && !keeps(path))",
    to: "      .filter(() => false)",
    caughtBy,
  },
];
