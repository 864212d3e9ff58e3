import { fileFailure } from "../../errors/cotenant-error";
import type { Platform } from "../../platform/platform";
import { readDocument, writeDocument } from "../installer/files";
import { VIA_NAMES, type ViaName } from "./command-line";
import type { Placement } from "./json-settings";

/**
 * What was put into one file of settings: JSON has no room for marks, so that this is remembered beside. It holds our own
 * words only. What it is good for is the last byte: without it our entries are still found, and taken out.
 */
export interface FileRecord {
  readonly path: string;
  readonly harness: string;
  readonly isShared: boolean;
  readonly isMade: boolean;
  readonly madeDirectories: readonly string[];
  /** The newest first. Two while a change is under way: one of them is what the file has. */
  readonly placements: readonly Placement[];
  /** How its events get to the guard. */
  readonly via: ViaName;
  /** Who could read it before it was made private, because a token is in it. */
  readonly modeBefore?: number;
}

export const PRIVATE_MODE = 0o600;

/** The mode of a file once nothing of ours is in it that others must not see. One that somebody has set since stays. */
export function modeWithout({
  file,
  record,
}: {
  readonly file: { readonly mode: number };
  readonly record: FileRecord | null;
}): number {
  return file.mode === PRIVATE_MODE ? (record?.modeBefore ?? file.mode) : file.mode;
}

/** Where records are kept, and with which modes. */
export interface Shelf {
  readonly directory: string;
  readonly modes: { readonly file: number; readonly directory: number };
}

const SCHEMA_VERSION = 1;

function recordPath({ digest }: Platform, shelf: Shelf, path: string): string {
  return `${shelf.directory}/${digest.sha256(path).slice(0, 16)}.json`;
}

/** Null where nothing was put. What cannot be understood is as good as nothing. */
export async function readRecord(platform: Platform, shelf: Shelf, path: string): Promise<FileRecord | null> {
  const file = recordPath(platform, shelf, path);
  const record = await readOne(platform, file);
  return record?.path === path ? record : null;
}

/** Every file that got something of ours, whatever became of it. */
export async function allRecords(platform: Platform, shelf: Shelf): Promise<FileRecord[]> {
  const names = (await platform.files.readDirectory(shelf.directory)) ?? [];
  const records: FileRecord[] = [];
  for (const name of names.filter((one) => /^[0-9a-f]{16}\.json$/.test(one)).sort()) {
    const record = await readOne(platform, `${shelf.directory}/${name}`);
    if (record !== null) records.push(record);
  }
  return records;
}

async function readOne(platform: Platform, file: string): Promise<FileRecord | null> {
  const doing = "reading what was put into settings";
  // What holds a token is private, and somebody else's is not ours to undo.
  const document = await readDocument(platform, file, { doing, isOthers: true });
  const { schema_version: version, path, harness, shared, made, via } = document ?? {};
  const { made_directories, placements, mode_before: modeBefore } = document ?? {};
  if (version !== SCHEMA_VERSION || typeof path !== "string" || typeof harness !== "string") return null;
  if (!Array.isArray(placements) || !Array.isArray(made_directories)) return null;
  return {
    path,
    harness,
    isShared: shared === true,
    isMade: made === true,
    madeDirectories: made_directories.filter((one) => typeof one === "string"),
    placements: placements.filter(isPlacement),
    via: VIA_NAMES.find((name) => name === via) ?? "program",
    ...(typeof modeBefore === "number" ? { modeBefore: modeBefore & 0o777 } : {}),
  };
}

function isPlacement(value: unknown): value is Placement {
  const { digest, splices } = (value ?? {}) as Partial<Placement>;
  const isSplice = (one: unknown) => {
    const { at, text } = (one ?? {}) as { at?: unknown; text?: unknown };
    return Number.isSafeInteger(at) && (at as number) >= 0 && typeof text === "string";
  };
  return typeof digest === "string" && Array.isArray(splices) && splices.every(isSplice);
}

export async function writeRecord(platform: Platform, shelf: Shelf, record: FileRecord): Promise<void> {
  const file = recordPath(platform, shelf, record.path);
  const document = {
    schema_version: SCHEMA_VERSION,
    path: record.path,
    harness: record.harness,
    shared: record.isShared,
    made: record.isMade,
    made_directories: record.madeDirectories,
    placements: record.placements,
    ...(record.via === "program" ? {} : { via: record.via }),
    ...(record.modeBefore === undefined ? {} : { mode_before: record.modeBefore }),
  };
  const mode = record.via === "http" || record.modeBefore !== undefined ? PRIVATE_MODE : shelf.modes.file;
  await writeDocument(platform, file, document, { doing: "remembering what goes into settings", mode });
}

export async function removeRecord(platform: Platform, shelf: Shelf, path: string): Promise<void> {
  const file = recordPath(platform, shelf, path);
  try {
    await platform.files.unlink(file);
    await platform.files.removeDirectory(shelf.directory);
  } catch (error) {
    throw fileFailure(error, "forgetting what went into settings", file);
  }
}
