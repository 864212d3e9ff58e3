import { joinPath, nameIn } from "../../../identity/path-text";
import type { Platform } from "../../../platform/platform";
import { replaceFile } from "../../../platform/replace-file";
import { type Installed, type Program, readDocument, writeDocument } from "../../installer/files";

/** What was wanted in this clone: whoever looks later can say what is missing. The hooks' own files are the truth. */
export interface HooksRecord {
  readonly installedAt: string;
  /** Every directory that got hooks of ours: where Git looks may change. */
  readonly directories: readonly string[];
  /** What they start; null in records of an older version. */
  readonly program: Program;
}

const SCHEMA_VERSION = 1;
const MOST_DIRECTORIES = 1_000;

export function recordFile(controlDirectory: string): string {
  return `${controlDirectory}/hooks.json`;
}

/** Null where hooks were never wanted. */
export async function readRecord(platform: Platform, controlDirectory: string): Promise<HooksRecord | null> {
  const doing = "reading which hooks were wanted";
  const document = await readDocument(platform, recordFile(controlDirectory), { doing });
  const { schema_version: version, installed_at: at, directories, program } = document ?? {};
  if (version !== SCHEMA_VERSION || typeof at !== "string" || !Array.isArray(directories)) return null;
  const { node, path: script } = (program ?? {}) as Record<string, unknown>;
  return {
    installedAt: at,
    directories: directories.filter((one) => typeof one === "string"),
    program: typeof node === "string" && typeof script === "string" ? { node, program: script } : null,
  };
}

/** The control plane must be there. Writes nothing when it says so already. */
export async function addToRecord(
  platform: Platform,
  controlDirectory: string,
  { directory, program }: { readonly directory: string; readonly program: Installed },
  mode: number,
): Promise<void> {
  const old = await readRecord(platform, controlDirectory);
  const isSame = old?.program?.node === program.node && old.program.program === program.program;
  if (isSame && old.directories.includes(directory)) return;
  const document = {
    schema_version: SCHEMA_VERSION,
    installed_at: old?.installedAt ?? new Date(platform.clock.wallMs()).toISOString(),
    directories: [...new Set([...(old?.directories ?? []), directory])].slice(-MOST_DIRECTORIES),
    program: { node: program.node, path: program.program },
  };
  const doing = "writing which hooks are wanted";
  await writeDocument(platform, recordFile(controlDirectory), document, { doing, mode });
}

/** Together with what was seen of them. */
export async function removeRecord(platform: Platform, controlDirectory: string): Promise<void> {
  const { files } = platform;
  await files.unlink(recordFile(controlDirectory));
  const directory = seenDirectory(controlDirectory);
  for (const name of (await files.readDirectory(directory)) ?? [])
    await files.unlink(joinPath(directory, name));
  await files.removeDirectory(directory);
}

/** A file as it was when it was looked at; nulls where there was none. */
export interface Mark {
  readonly file: string;
  readonly size: number | null;
  readonly mtimeMs: number | null;
}

function seenDirectory(controlDirectory: string): string {
  return `${controlDirectory}/hooks-seen`;
}

/** Of one worktree: each may have hooks of its own. */
export interface HooksWorktree {
  readonly controlDir: string;
  readonly gitDir: string;
  readonly commonDir: string;
}

function seenFile({ controlDir, gitDir, commonDir }: HooksWorktree): string {
  const name = gitDir === commonDir ? "main" : `worktree-${nameIn(gitDir)}`;
  return joinPath(seenDirectory(controlDir), name);
}

/** What the files of hooks looked like when all of ours were in place; null where nobody has looked. Derived. */
export async function readSeen(platform: Platform, worktree: HooksWorktree): Promise<Mark[] | null> {
  const bytes = await platform.files.readFile(seenFile(worktree));
  if (bytes === null) return null;
  try {
    const marks = JSON.parse(new TextDecoder().decode(bytes)) as unknown;
    return Array.isArray(marks) ? (marks as Mark[]) : null;
  } catch {
    return null;
  }
}

export async function writeSeen(
  platform: Platform,
  worktree: HooksWorktree,
  marks: readonly Mark[],
  modes: { readonly directory: number; readonly file: number },
): Promise<void> {
  await platform.files.makeDirectory(seenDirectory(worktree.controlDir), modes.directory);
  await replaceFile(platform, seenFile(worktree), `${JSON.stringify(marks)}\n`, modes.file);
}

export async function markOf(platform: Platform, file: string): Promise<Mark> {
  const stat = await platform.files.stat(file);
  return { file, size: stat?.size ?? null, mtimeMs: stat?.mtimeMs ?? null };
}
