import type { Platform } from "../platform/platform";
import { replaceFile } from "../platform/replace-file";
import type { ConfigEntry, ConfigLayer } from "./layers";
import type { ConfigMemory } from "./memory-place";
import { type ConfigKey, type ConfigValue, isConfigKey, settingOf } from "./schema";
import { asToml, canonicalValue, isWrong, valueFromToml } from "./values";

interface Remembered {
  /** Null: the file could not be read since this clone knows of it. */
  readonly entries: ReadonlyMap<ConfigKey, ConfigEntry> | null;
  /** What was wrong when it was put on record, so that it is recorded once. */
  readonly recorded: string | null;
}

const SCHEMA_VERSION = 1;
const NOTHING: Remembered = { entries: null, recorded: null };

function mainOf({ file }: ConfigMemory): string {
  return `${file.slice(0, file.lastIndexOf("/"))}/main.json`;
}

/** What stands in for a layer that cannot be read; null where nothing is remembered. */
export async function rememberedLayer(
  platform: Platform,
  memory: ConfigMemory,
  broken: ConfigLayer,
): Promise<ConfigLayer | null> {
  const own = await read(platform, memory);
  // A worktree that was made with the broken file goes by the main one's.
  const { entries } = own.entries === null ? await read(platform, { ...memory, file: mainOf(memory) }) : own;
  return entries === null ? null : { ...broken, entries: withAdded(entries, broken.entries) };
}

/** To a list that sources add to, what can be understood of the broken file adds as well. */
function withAdded(
  known: ReadonlyMap<ConfigKey, ConfigEntry>,
  broken: ReadonlyMap<ConfigKey, ConfigEntry>,
): ReadonlyMap<ConfigKey, ConfigEntry> {
  const all = new Map(known);
  for (const [key, entry] of broken) {
    if (settingOf(key).tighten !== "adding") continue;
    const before = (known.get(key)?.value ?? []) as readonly string[];
    const value = [...new Set([...before, ...(entry.value as readonly string[])])];
    all.set(key, { ...entry, line: null, value });
  }
  return all;
}

/** Keeps what a layer without problems says. A clone that cannot be written to goes without. */
export async function remember(
  platform: Platform,
  memory: ConfigMemory,
  layer: ConfigLayer | undefined,
): Promise<void> {
  if (layer === undefined || layer.problems.length > 0) return;
  if (layer.entries.size === 0) {
    if ((await platform.files.lstat(memory.file)) !== null)
      await quietly(() => platform.files.unlink(memory.file));
    return;
  }
  const known = await read(platform, memory);
  if (known.recorded === null && known.entries !== null && text(known.entries) === text(layer.entries))
    return;
  await write(platform, memory, { entries: layer.entries, recorded: null });
}

/** Whether this damage is already on record. */
export async function isRecorded(platform: Platform, memory: ConfigMemory, damage: string): Promise<boolean> {
  return (await read(platform, memory)).recorded === damage;
}

export async function markRecorded(platform: Platform, memory: ConfigMemory, damage: string): Promise<void> {
  await write(platform, memory, { ...(await read(platform, memory)), recorded: damage });
}

function text(entries: ReadonlyMap<ConfigKey, ConfigEntry>): string {
  return JSON.stringify([...entries].map(([key, { value }]) => [key, canonicalValue(value)]).sort());
}

/** What cannot be understood is not remembered. */
async function read(platform: Platform, { file }: ConfigMemory): Promise<Remembered> {
  try {
    const bytes = await platform.files.readFile(file);
    if (bytes === null) return NOTHING;
    const document = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
    if (document["schema_version"] !== SCHEMA_VERSION) return NOTHING;
    const { entries, recorded } = document;
    return {
      entries: entries === null ? null : entriesFrom(entries as object, file),
      recorded: typeof recorded === "string" ? recorded : null,
    };
  } catch {
    return NOTHING;
  }
}

function entriesFrom(raw: object, place: string): ReadonlyMap<ConfigKey, ConfigEntry> {
  const entries = new Map<ConfigKey, ConfigEntry>();
  for (const [key, json] of Object.entries(raw)) {
    if (!isConfigKey(key)) continue;
    const value = valueFromToml(settingOf(key), asToml(json));
    if (!isWrong(value)) entries.set(key, { value, place, line: null });
  }
  return entries;
}

async function write(platform: Platform, memory: ConfigMemory, what: Remembered): Promise<void> {
  const { file, modes } = memory;
  const values: Record<string, ConfigValue> = {};
  for (const [key, { value }] of what.entries ?? []) values[key] = value;
  const entries = what.entries === null ? null : values;
  const document = { schema_version: SCHEMA_VERSION, entries, recorded: what.recorded };
  await quietly(async () => {
    await platform.files.makeDirectory(file.slice(0, file.lastIndexOf("/")), modes.directory);
    await replaceFile(platform, file, `${JSON.stringify(document, null, 2)}\n`, modes.file);
  });
}

async function quietly(act: () => unknown): Promise<void> {
  try {
    await act();
  } catch {
    // Nothing depends on it but what holds after the next broken file.
  }
}
