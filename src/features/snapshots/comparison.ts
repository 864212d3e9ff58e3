import type { ByteText } from "../../git/byte-text";
import type { Contents, KeptFile } from "./contents";
import { byBytes } from "./listing";

type Difference = "added" | "removed" | "changed" | "mode";

export interface Compared {
  readonly path: ByteText;
  readonly difference: Difference;
  readonly before: KeptFile | null;
  readonly after: KeptFile | null;
}

export type Files = ReadonlyMap<ByteText, KeptFile>;

export function filesOf({ files }: Contents): Files {
  return new Map(files.map((file) => [file.path, file] as const));
}

/** What is different, by path. Pure. */
export function compareFiles(before: Files, after: Files): Compared[] {
  const found: Compared[] = [];
  for (const [path, one] of before) {
    const other = after.get(path) ?? null;
    if (other === null) found.push({ path, difference: "removed", before: one, after: null });
    else if (one.kind !== other.kind || one.oid !== other.oid)
      found.push({ path, difference: "changed", before: one, after: other });
    else if (one.mode !== other.mode) found.push({ path, difference: "mode", before: one, after: other });
  }
  for (const [path, one] of after)
    if (!before.has(path)) found.push({ path, difference: "added", before: null, after: one });
  return found.sort((a, b) => byBytes(a.path, b.path));
}
