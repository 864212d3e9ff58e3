import { CotenantError } from "../../../errors/cotenant-error";
import { filesOf } from "./issue-fields";
import type { Desk } from "./issues";

/** A document's place: from the repository's root, in the file's own spelling. */
export interface DocumentPlace {
  readonly path: string;
  readonly absolutePath: string;
  readonly isFile: boolean;
}

/** A path as the caller typed it, seen from where they stand. */
export async function typedPlace({ workspace, reader }: Desk, text: string): Promise<DocumentPlace> {
  if (workspace === null) return plainPlace(reader.sources.here.root, text);
  const { absolutePath, worktreeRoot, isDirectory } = await workspace.path(text);
  const path = absolutePath.slice(worktreeRoot.length + 1).normalize("NFC");
  return { path, absolutePath, isFile: isDirectory === false };
}

/** The place of a path that an issue names. Whoever wrote the issue may have written anything. */
export async function namedPlace(desk: Desk, path: string): Promise<DocumentPlace> {
  const { workspace, reader } = desk;
  const [checked] = filesOf([path]);
  if (workspace === null) return plainPlace(reader.sources.here.root, checked!);
  return typedPlace(desk, `${workspace.repository.worktreeRoot}/${checked}`);
}

/** What a caller means by a path: what they see from where they stand, or what the issue itself says. */
export async function meantPath(desk: Desk, text: string, known: readonly string[]): Promise<string> {
  if (known.includes(text)) return text;
  try {
    return (await typedPlace(desk, text)).path;
  } catch (error) {
    // One that leads nowhere any more is not known to the issue either; that says more.
    if (error instanceof CotenantError && error.code === "E_PATH_ESCAPE") throw error;
    return text;
  }
}

function plainPlace(root: string, text: string): DocumentPlace {
  const [path] = filesOf([text]);
  return { path: path!, absolutePath: `${root}/${path}`, isFile: true };
}
