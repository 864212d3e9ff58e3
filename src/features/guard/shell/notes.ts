import type { HarnessName } from "../../../identity/harness";
import type { SessionId } from "../../../kernel/ids";
import type { PlacedRule } from "../../../kernel/path-rules";
import { overwriteFile } from "../../../platform/overwrite-file";
import type { Checking } from "../check";
import type { GuardedWorktree } from "../worktree";

/**
 * What a shell command did that nobody could read from it. Before it runs, the files that others hold are looked at; after
 * it has run, again, and if it left something running, at each of the session's events from then on. The looks meet in a
 * small file, by the harness's own name for this use of the tool.
 */
export interface ShellNote {
  /** When the files were last looked at. */
  readonly atMs: number;
  readonly command: string;
  /** The start of the process that looked first: whatever the command has started is no older. */
  readonly since: string;
  /** The harness has said that the command is over; what it left running may not be. */
  readonly isOver: boolean;
  /** Whose command it is, as its environment says: the harness, and its own ids of the session and the subagent. */
  readonly harness?: HarnessName;
  readonly ids?: readonly string[];
  /** Since when something runs of which it cannot be told whether the command has left it. */
  readonly unsureSinceMs?: number;
  /** What others hold, by path from the worktree's root. */
  readonly files: Readonly<Record<string, string>>;
  /** What the session itself holds. */
  readonly own: Readonly<Record<string, string>>;
  readonly ruled?: Ruled;
}

/** The rules as they were before the command, which may have taken them off; and what differed from HEAD against them. */
export interface Ruled {
  readonly rules: readonly PlacedRule[];
  readonly files: Readonly<Record<string, string>>;
}

/** Their folder among the guard's small files. */
export const SHELL = "shell";

/** Harnesses without a name for each use run one command at a time, or the same one: its text must do. */
export function noteFile(place: GuardedWorktree, { report }: Checking, command: string): string {
  const id = hashOf(place, `${place.who.agentId}\n${report.toolUseId ?? command}`);
  return `${folderOf(place)}/${prefixOf(place, place.who.sessionId)}${id}`;
}

/** Those of a session in this worktree. */
export async function notesOf(place: GuardedWorktree, sessionId: SessionId): Promise<string[]> {
  const folder = folderOf(place);
  const prefix = prefixOf(place, sessionId);
  const names = (await place.world.platform.files.readDirectory(folder)) ?? [];
  return names.filter((name) => name.startsWith(prefix)).map((name) => `${folder}/${name}`);
}

export async function readNote({ world }: GuardedWorktree, path: string): Promise<ShellNote | null> {
  const bytes = await world.platform.files.readFile(path);
  if (bytes === null) return null;
  try {
    const note = JSON.parse(new TextDecoder().decode(bytes)) as ShellNote;
    const isWhole = typeof note.atMs === "number" && isRecord(note.files) && isRecord(note.own);
    return isWhole ? note : null;
  } catch {
    return null;
  }
}

export async function writeNote(place: GuardedWorktree, path: string, note: ShellNote): Promise<void> {
  const { files } = place.world.platform;
  const { layout, options } = place.coordinator.store;
  for (const directory of [layout.guard, folderOf(place)])
    await files.makeDirectory(directory, options.modes.directory);
  await overwriteFile(files, path, JSON.stringify(note), options.modes.file);
}

function isRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function folderOf({ coordinator }: GuardedWorktree): string {
  return `${coordinator.store.layout.guard}/${SHELL}`;
}

function prefixOf(place: GuardedWorktree, sessionId: SessionId): string {
  return `${hashOf(place, `${sessionId}\n${place.worktreeId}`)}-`;
}

function hashOf({ world }: GuardedWorktree, text: string): string {
  return world.platform.digest.sha256(text).slice(0, 16);
}
