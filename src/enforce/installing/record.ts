import { fileFailure } from "../../errors/cotenant-error";
import type { Platform } from "../../platform/platform";
import { replaceFile } from "../../platform/replace-file";

/** What was wanted in this clone: whoever looks later can say what is missing. The hooks' own files are the truth. */
export interface HooksRecord {
  readonly installedAt: string;
  /** Every directory that got hooks of ours: where Git looks may change. */
  readonly directories: readonly string[];
}

const SCHEMA_VERSION = 1;
const MOST_DIRECTORIES = 1_000;

export function recordFile(controlDirectory: string): string {
  return `${controlDirectory}/hooks.json`;
}

/** Null where hooks were never wanted. What cannot be understood is as good as none: nothing is decided by it. */
export async function readRecord(platform: Platform, controlDirectory: string): Promise<HooksRecord | null> {
  const path = recordFile(controlDirectory);
  try {
    const bytes = await platform.files.readFile(path);
    if (bytes === null) return null;
    const {
      schema_version: version,
      installed_at: at,
      directories,
    } = JSON.parse(new TextDecoder().decode(bytes));
    if (version !== SCHEMA_VERSION || typeof at !== "string" || !Array.isArray(directories)) return null;
    return { installedAt: at, directories: directories.filter((one) => typeof one === "string") };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw fileFailure(error, "reading which hooks were wanted", path);
  }
}

/** The control plane must be there. Writes nothing when it says so already. */
export async function addToRecord(
  platform: Platform,
  controlDirectory: string,
  directory: string,
  mode: number,
): Promise<void> {
  const old = await readRecord(platform, controlDirectory);
  if (old?.directories.includes(directory)) return;
  const installedAt = old?.installedAt ?? new Date(platform.clock.wallMs()).toISOString();
  const directories = [...(old?.directories ?? []), directory].slice(-MOST_DIRECTORIES);
  const document = { schema_version: SCHEMA_VERSION, installed_at: installedAt, directories };
  const path = recordFile(controlDirectory);
  try {
    await replaceFile(platform, path, `${JSON.stringify(document, null, 2)}\n`, mode);
  } catch (error) {
    throw fileFailure(error, "writing which hooks are wanted", path);
  }
}

export async function removeRecord(platform: Platform, controlDirectory: string): Promise<void> {
  await platform.files.unlink(recordFile(controlDirectory));
}
