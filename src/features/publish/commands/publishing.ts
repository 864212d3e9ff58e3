import type { Parsed } from "../../../cli/grammar/command";
import { readStdinBytes } from "../../../cli/terminal/stdin";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, fileFailure } from "../../../errors/cotenant-error";
import { MODES } from "../../../git/tree";
import { below, resolveFrom } from "../../../identity/path-text";
import { printable } from "../../../kernel/ids";
import type { Files } from "../../../platform/platform";
import { parseChanges } from "../change-list";
import { checkedPath, type Input } from "../draft";

const MOST_STDIN = 256 << 20;

/** What the flags of `publish` ask for. */
export async function readInputs(workspace: Workspace, parsed: Parsed): Promise<Input[]> {
  const { files } = workspace.surroundings.platform;
  const inputs: Input[] = [];
  for (const file of parsed.texts("patch")) {
    const patch = file === "-" ? await stdinBytes(parsed) : (await contentOf(workspace, files, file)).bytes;
    inputs.push({ op: "patch", patch, name: file === "-" ? "standard input" : file });
  }
  for (const text of parsed.texts("put")) inputs.push(await put(workspace, files, text));
  for (const text of parsed.texts("delete")) inputs.push({ op: "delete", path: repoPath(workspace, text) });
  for (const text of parsed.texts("rename")) {
    const [from, to] = pair(text, "--rename", "<from>=<to>");
    inputs.push({ op: "rename", from: repoPath(workspace, from), to: repoPath(workspace, to) });
  }
  for (const text of worktreePaths(parsed))
    inputs.push({ op: "from-worktree", path: repoPath(workspace, text, true) });
  const changes = parsed.text("changes");
  if (changes !== undefined) inputs.push(...(await listed(workspace, files, changes, parsed)));
  // The branch as it is can be pushed without anything new.
  const isPushAlone = parsed.has("push") && parsed.texts("message").length === 0;
  if (inputs.length === 0 && !isPushAlone)
    throw new CotenantError("E_USAGE", "nothing was named to publish", {
      hint: "give --patch, --put, --delete, --rename, --from-worktree or --changes",
    });
  return inputs;
}

/** `--from-worktree a b c`: the words that follow are paths as well. */
function worktreePaths(parsed: Parsed): readonly string[] {
  const named = parsed.texts("from-worktree");
  if (named.length === 0 && parsed.words.length > 0)
    throw new CotenantError(
      "E_USAGE",
      `'publish' does not know what to do with "${printable(parsed.words[0]!)}"`,
      {
        hint: `to publish it as it is in the working tree: --from-worktree ${printable(parsed.words[0]!)}`,
      },
    );
  return [...named, ...parsed.words];
}

async function put(workspace: Workspace, files: Files, text: string): Promise<Input> {
  const [path, file] = pair(text, "--put", "<path>=<file>");
  const { bytes, mode } = await contentOf(workspace, files, file);
  const newMode = (mode & 0o100) === 0 ? MODES.file : MODES.executable;
  return { op: "put", path: repoPath(workspace, path), content: bytes, mode: null, newMode };
}

async function listed(workspace: Workspace, files: Files, from: string, parsed: Parsed): Promise<Input[]> {
  const bytes = from === "-" ? await stdinBytes(parsed) : (await contentOf(workspace, files, from)).bytes;
  const text = new TextDecoder().decode(bytes);
  const inputs = parseChanges(text, workspace.repository.config.objectFormat);
  for (const input of inputs) {
    if (input.op === "rename") for (const path of [input.from, input.to]) checkedPath(path);
    else if (input.op !== "patch" && !(input.op === "from-worktree" && input.path === "."))
      checkedPath(input.path);
  }
  return inputs;
}

async function stdinBytes(parsed: Parsed): Promise<Uint8Array> {
  const readers = [...parsed.texts("patch"), parsed.text("changes")].filter((file) => file === "-");
  if (readers.length > 1)
    throw new CotenantError("E_USAGE", "standard input can be read only once", {
      hint: "give a file's name",
    });
  return readStdinBytes(MOST_STDIN);
}

function pair(text: string, flag: string, form: string): [string, string] {
  const at = text.indexOf("=");
  if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)];
  throw new CotenantError("E_USAGE", `${flag} takes ${form}, not "${printable(text)}"`, {
    hint: "names with = in them go on --changes",
  });
}

/** A path as it is typed, from the repository's root. A link is itself, as it is for Git. */
function repoPath(workspace: Workspace, text: string, mayBeRoot = false): string {
  const { cwd } = workspace.surroundings;
  const { worktreeRoot } = workspace.repository;
  if (/[\x00-\x1f\x7f]/.test(text)) checkedPath(text);
  const relative = below(plain(resolveFrom(cwd, text)), worktreeRoot);
  if (relative === null)
    throw new CotenantError("E_PATH_ESCAPE", `"${printable(text)}" is outside the worktree`, {
      hint: `name a file inside ${worktreeRoot}`,
      data: { path: printable(text, 500), worktree: worktreeRoot },
    });
  if (relative === "" && mayBeRoot) return ".";
  return checkedPath(relative === "" ? "." : relative);
}

/** Without `.` and `..`, by the words alone. */
function plain(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

async function contentOf(
  { surroundings }: Workspace,
  files: Files,
  file: string,
): Promise<{ bytes: Uint8Array; mode: number }> {
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
