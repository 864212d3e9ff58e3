import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { Git } from "../../platform/git";
import { gitFailed } from "../../platform/git-answers";
import type { Platform } from "../../platform/platform";
import type { DocumentRef } from "./model";
import type { FoundIssue } from "./resolve";

export const MAX_DOCUMENT_TITLE = 200;
export const MOST_DOCUMENTS = 200;
/** As much of a document as is shown. */
const SHOWN_BYTES = 256 << 10;
export const MOST_COMMITS = 1_000;

export interface DocumentContent {
  /** Null for what is no text. */
  readonly text: string | null;
  readonly bytes: number;
  readonly isCut: boolean;
}

export interface DocumentCommit {
  readonly commit: string;
  readonly at: string;
  readonly author: string;
  readonly subject: string;
  /** As the document was called then. */
  readonly path: string;
}

export function documentOf({ id, issue }: FoundIssue, path: string): DocumentRef {
  const found = issue.documents.find((document) => document.path === path);
  if (found !== undefined) return found;
  const has = issue.documents.map((document) => printable(document.path, 200)).slice(0, 20);
  throw new CotenantError("E_NOT_FOUND", `issue ${id} has no document "${printable(path, 200)}"`, {
    hint: has.length === 0 ? `name it first: cotenant doc add ${id} <path>` : `it has ${has.join(", ")}`,
    data: { id, path: printable(path, 1_000) },
  });
}

/** Of a plain file, no more than is shown. Null where there is none. */
export async function fileContent({ files }: Platform, path: string): Promise<DocumentContent | null> {
  const stat = await files.stat(path);
  if (stat?.kind !== "file") return null;
  const fd = await files.open(path, "read");
  try {
    return contentOf(await files.read(fd, 0, Math.min(stat.size, SHOWN_BYTES)), stat.size);
  } finally {
    await files.close(fd);
  }
}

/** As a commit has it; null where it has none. */
export async function committedContent(
  git: Git,
  cwd: string,
  commit: string,
  path: string,
): Promise<DocumentContent | null> {
  const { status, stdout } = await git.run(["cat-file", "--batch-check"], {
    cwd,
    input: `${commit}:${path}\n`,
  });
  const head = /^([0-9a-f]{40,64}) blob (\d+)\n$/.exec(new TextDecoder().decode(stdout));
  if (status !== 0 || head === null) return null;
  const size = Number(head[2]);
  if (size > 100 << 20) return { text: null, bytes: size, isCut: true };
  const blob = await git.run(["cat-file", "blob", head[1]!], { cwd, timeoutMs: 60_000 });
  return blob.status === 0 ? contentOf(blob.stdout.subarray(0, SHOWN_BYTES), size) : null;
}

function contentOf(bytes: Uint8Array, size: number): DocumentContent {
  const isText = !bytes.subarray(0, 8_000).includes(0);
  const isCut = size > bytes.length;
  // What is cut off in the middle of a character is no sign of anything.
  const text = isText ? new TextDecoder().decode(bytes).replace(/\ufffd+$/, isCut ? "" : "$&") : null;
  return { text, bytes: size, isCut };
}

/** A commit as somebody names it. */
export async function commitNamed(git: Git, cwd: string, text: string): Promise<string> {
  const { status, stdout } = await git.run(
    ["rev-parse", "--verify", "--quiet", "--end-of-options", `${text}^{commit}`],
    { cwd },
  );
  if (status === 0) return new TextDecoder().decode(stdout).trim();
  throw new CotenantError("E_NOT_FOUND", `there is no commit "${printable(text, 120)}"`, {
    hint: "name a commit, branch or tag; 'cotenant doc history' shows a document's own",
    data: { commit: printable(text, 400) },
  });
}

/** The commits that changed it, the newest first, under its former names too. */
export async function documentHistory(
  git: Git,
  cwd: string,
  path: string,
  limit: number,
): Promise<DocumentCommit[]> {
  const head = await git.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], { cwd });
  if (head.status !== 0) return [];
  const format = "%x00%H%x1f%aI%x1f%an%x1f%s%x1f";
  const { status, stdout, stderr } = await git.run(
    [
      "--literal-pathspecs",
      "log",
      "--follow",
      "--name-only",
      `--max-count=${limit}`,
      `--format=${format}`,
      "--end-of-options",
      "HEAD",
      "--",
      path,
    ],
    {
      cwd,
      timeoutMs: 60_000,
      env: { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "core.quotePath", GIT_CONFIG_VALUE_0: "false" },
    },
  );
  if (status !== 0) throw gitFailed("Git cannot tell the history", stderr);
  return new TextDecoder()
    .decode(stdout)
    .split("\0")
    .filter((entry) => entry.trim() !== "")
    .map((entry) => {
      const [commit = "", at = "", author = "", subject = "", names = ""] = entry.split("\x1f");
      return { commit, at, author, subject, path: names.trim() || path };
    });
}
