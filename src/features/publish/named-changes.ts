import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, fileFailure, usageError } from "../../errors/cotenant-error";
import { MODES } from "../../git/tree";
import { below, normalPath, resolveFrom } from "../../identity/path-text";
import { printable } from "../../kernel/ids";
import { parseChanges } from "./change-list";
import { checkedPath, type Input } from "./draft";

/** Changes as a person names them: paths and files as they are seen from where the caller stands. */
export interface NamedChanges {
  /** Files with a patch by Git. */
  readonly patches?: readonly string[];
  readonly puts?: readonly { readonly path: string; readonly file: string }[];
  readonly deletes?: readonly string[];
  readonly renames?: readonly { readonly from: string; readonly to: string }[];
  readonly fromWorktree?: readonly string[];
  /** A file with a list of changes as JSON; their paths begin at the repository's root. */
  readonly list?: string | undefined;
  /** What `-` stands for, among files. */
  readonly readStdin?: () => Promise<Uint8Array>;
}

export async function inputsNamed(workspace: Workspace, named: NamedChanges): Promise<Input[]> {
  const { patches = [], puts = [], deletes = [], renames = [], fromWorktree = [], list } = named;
  const inputs: Input[] = [];
  for (const file of patches) {
    const { bytes } = await contentOf(workspace, named, file);
    inputs.push({ op: "patch", patch: bytes, name: file === "-" ? "standard input" : file });
  }
  for (const { path, file } of puts) {
    const { bytes, mode } = await contentOf(workspace, {}, file);
    const newMode = (mode & 0o100) === 0 ? MODES.file : MODES.executable;
    inputs.push({ op: "put", path: repoPath(workspace, path), content: bytes, mode: null, newMode });
  }
  for (const path of deletes) inputs.push({ op: "delete", path: repoPath(workspace, path) });
  for (const { from, to } of renames)
    inputs.push({ op: "rename", from: repoPath(workspace, from), to: repoPath(workspace, to) });
  for (const path of fromWorktree)
    inputs.push({ op: "from-worktree", path: repoPath(workspace, path, true) });
  if (list !== undefined) inputs.push(...(await inputsListed(workspace, named, list)));
  return inputs;
}

async function inputsListed(workspace: Workspace, named: NamedChanges, list: string): Promise<Input[]> {
  const { bytes } = await contentOf(workspace, named, list);
  const inputs = parseChanges(new TextDecoder().decode(bytes), workspace.repository.config.objectFormat);
  for (const input of inputs) {
    if (input.op === "rename") for (const path of [input.from, input.to]) checkedPath(path);
    else if (input.op !== "patch" && !(input.op === "from-worktree" && input.path === "."))
      checkedPath(input.path);
  }
  return inputs;
}

/** A path as it is typed, from the repository's root. A link is itself, as it is for Git. */
function repoPath(workspace: Workspace, text: string, mayBeRoot = false): string {
  const { worktreeRoot } = workspace.repository;
  if (/[\x00-\x1f\x7f]/.test(text)) checkedPath(text);
  const relative = below(normalPath(resolveFrom(workspace.surroundings.cwd, text)), worktreeRoot);
  if (relative === null)
    throw new CotenantError("E_PATH_ESCAPE", `"${printable(text)}" is outside the worktree`, {
      hint: `name a file inside ${worktreeRoot}`,
      data: { path: printable(text, 500), worktree: worktreeRoot },
    });
  if (relative === "" && mayBeRoot) return ".";
  return checkedPath(relative === "" ? "." : relative);
}

async function contentOf(
  { surroundings }: Workspace,
  { readStdin, patches = [], list }: NamedChanges,
  file: string,
): Promise<{ bytes: Uint8Array; mode: number }> {
  if (file === "-" && readStdin !== undefined) {
    if ([...patches, list].filter((one) => one === "-").length > 1)
      throw usageError("standard input can be read only once", "give a file's name");
    return { bytes: await readStdin(), mode: 0o644 };
  }
  const { files } = surroundings.platform;
  const path = resolveFrom(surroundings.cwd, file);
  try {
    const stat = await files.stat(path);
    if (stat === null)
      throw new CotenantError("E_NOT_FOUND", `there is no file ${printable(file, 300)}`, {
        hint: "files are looked for from where you stand",
      });
    if (stat.kind !== "file")
      throw new CotenantError("E_USAGE", `${printable(file, 300)} is no file`, { hint: "name a file" });
    return { bytes: (await files.readFile(path))!, mode: stat.mode };
  } catch (error) {
    throw fileFailure(error, "reading what is to be published", path);
  }
}
