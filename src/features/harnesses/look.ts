import { fileFailure } from "../../errors/cotenant-error";
import { below, joinPath, nameIn, parentOf } from "../../identity/path-text";
import type { Files } from "../../platform/platform";
import { LONGEST } from "../installer/files";
import type { Site } from "./sites";

/** A file of settings as it is. */
export interface FoundFile {
  /** Where it really is, behind whatever links lead there; where it would be, if it is not there. */
  readonly path: string;
  /** Null when it is not there, or cannot be read. */
  readonly text: string | null;
  readonly isThere: boolean;
  readonly mode: number;
  /** What keeps us from changing it, to be read after its name; null where nothing does. */
  readonly why: string | null;
  /** Directories that have to be made for it, outermost first. */
  readonly missing: readonly string[];
}

const NEW_FILE = 0o644;

export async function lookAt(files: Files, { path, level }: Site, root: string | null): Promise<FoundFile> {
  try {
    const { real, missing, why } = await whereabouts(files, path);
    const nothing = { path: real, text: null, isThere: false, mode: NEW_FILE, missing };
    if (why !== null) return { ...nothing, isThere: true, why };
    // A repository could commit a link there and have us write wherever it likes.
    if (level === "project" && root !== null && below(real, root) === null)
      return { ...nothing, isThere: true, why: `it is a link that leads out of the project, to ${real}` };
    const stat = await files.stat(real);
    if (stat === null) return { ...nothing, why: null };
    const found = { ...nothing, isThere: true, mode: stat.mode & 0o777, missing: [] };
    if (stat.kind !== "file") return { ...found, why: "it is no file" };
    if (stat.size > LONGEST) return { ...found, why: `it is longer than ${LONGEST >> 20} MiB` };
    const text = decoded((await files.readFile(real)) ?? new Uint8Array());
    return { ...found, text, why: text === null ? "it is not in UTF-8" : null };
  } catch (error) {
    throw fileFailure(error, "reading settings", path);
  }
}

async function whereabouts(files: Files, path: string) {
  const missing: string[] = [];
  let rest = "";
  for (let at = path; ; ) {
    const real = await files.realPath(at);
    if (real !== null) {
      if (rest === "") return { real, missing, why: null };
      const isDirectory = (await files.stat(real))?.kind === "directory";
      const why = isDirectory ? null : `${real} is in the way: it is no directory`;
      return { real: joinPath(real, rest), missing, why };
    }
    const there = await files.lstat(at);
    if (there?.kind === "symlink") return { real: at, missing, why: "it is a link that leads nowhere" };
    // Somebody made it just now.
    if (there !== null) continue;
    const above = parentOf(at);
    if (above === null) return { real: path, missing, why: null };
    if (at !== path) missing.unshift(at);
    rest = rest === "" ? nameIn(at) : joinPath(nameIn(at), rest);
    at = above;
  }
}

/** Null for what is not UTF-8: it could not be written back as it was. A byte order mark stays. */
function decoded(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
