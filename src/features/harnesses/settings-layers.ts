import { parse } from "smol-toml";
import type { HarnessName } from "../../identity/harness";
import type { Digest, Files } from "../../platform/platform";
import { nodeValue, readJson } from "./json-text";
import { type Grounds, homeOf } from "./sites";

export type Table = Readonly<Record<string, unknown>>;

/** Where a harness looks for what tells it whether to run hooks. */
export interface SettingsSearch {
  readonly files: Files;
  readonly digest: Digest;
  readonly grounds: Grounds;
  /** Of the repository that `grounds.root` belongs to; null where there is none. */
  readonly mainRoot: string | null;
  /** Before the paths of files that are for everybody on the machine: empty but in tests. */
  readonly machine: string;
}

/** One of the files that a harness merges into its settings. */
export interface Layer {
  readonly path: string;
  /** Who writes it: people in the project, the user, or whoever administers the machine. */
  readonly of: "project" | "user" | "machine";
  readonly table: Table;
}

type Source = Omit<Layer, "table">;

interface MachineFiles {
  /** On Linux and on macOS: there is only one of them. */
  readonly directories: readonly string[];
  readonly settings: string;
  readonly settingsVariable?: string;
  /** Settings that everything else overrides. */
  readonly defaultsVariable?: string;
  /** A directory whose files are merged after it, by name. */
  readonly more?: string;
}

/** As the programs read them on Linux, autumn 2026; macOS's directories are those that they name. */
const MACHINE: Readonly<Partial<Record<HarnessName, MachineFiles>>> = {
  claude: {
    directories: ["/etc/claude-code", "/Library/Application Support/ClaudeCode"],
    settings: "managed-settings.json",
    more: "managed-settings.d",
  },
  gemini: {
    directories: ["/etc/gemini-cli", "/Library/Application Support/GeminiCli"],
    settings: "settings.json",
    settingsVariable: "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
    defaultsVariable: "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
  },
  qwen: {
    directories: ["/etc/qwen-code", "/Library/Application Support/QwenCode"],
    settings: "settings.json",
    settingsVariable: "QWEN_CODE_SYSTEM_SETTINGS_PATH",
    defaultsVariable: "QWEN_CODE_SYSTEM_DEFAULTS_PATH",
  },
};

/** Below the project, the file that counts least first. */
const PROJECT: Readonly<Partial<Record<HarnessName, readonly string[]>>> = {
  claude: [".claude/settings.json", ".claude/settings.local.json"],
  gemini: [".gemini/settings.json"],
  qwen: [".qwen/settings.json"],
  // It runs hooks of Claude Code's settings, and heeds their switch.
  copilot: [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
  ],
};

/** Copilot's own switch counts in projects only. */
const HAS_USER_LAYER: readonly HarnessName[] = ["claude", "gemini", "qwen", "pi"];

/** The settings of a harness that keeps them as JSON, the file that counts least first. Missing files are left out. */
export async function settingsLayers(look: SettingsSearch, harness: HarnessName): Promise<Layer[]> {
  const { root } = look.grounds;
  const home = homeOf(harness, look.grounds);
  const machine = MACHINE[harness];
  const user = home !== null && HAS_USER_LAYER.includes(harness) ? [`${home}/settings.json`] : [];
  const project = root === null ? [] : (PROJECT[harness] ?? []).map((name) => `${root}/${name}`);
  const sources: Source[] = [
    ...(machine === undefined ? [] : defaultsOf(look, machine)),
    ...user.map((path) => ({ path, of: "user" as const })),
    ...project.map((path) => ({ path, of: "project" as const })),
    ...(machine === undefined ? [] : await machineSettings(look, machine)),
  ];
  const layers: Layer[] = [];
  for (const source of sources) {
    const table = await jsonTable(look.files, source.path);
    if (table !== null) layers.push({ ...source, table });
  }
  return layers;
}

function defaultsOf(
  { grounds, machine }: SettingsSearch,
  { directories, defaultsVariable }: MachineFiles,
): Source[] {
  if (defaultsVariable === undefined) return [];
  const moved = grounds.env[defaultsVariable];
  const paths = moved
    ? [moved]
    : directories.map((directory) => `${machine}${directory}/system-defaults.json`);
  return paths.map((path) => ({ path, of: "machine" }));
}

async function machineSettings(
  { files, grounds, machine }: SettingsSearch,
  about: MachineFiles,
): Promise<Source[]> {
  const moved = about.settingsVariable === undefined ? undefined : grounds.env[about.settingsVariable];
  if (moved) return [{ path: moved, of: "machine" }];
  const sources: Source[] = [];
  for (const directory of about.directories.map((one) => machine + one)) {
    sources.push({ path: `${directory}/${about.settings}`, of: "machine" });
    if (about.more === undefined) continue;
    const names = (await files.readDirectory(`${directory}/${about.more}`)) ?? [];
    for (const name of names.filter((one) => one.endsWith(".json")).sort())
      sources.push({ path: `${directory}/${about.more}/${name}`, of: "machine" });
  }
  return sources;
}

/** What is in a file with JSON, with or without comments; null where there is nothing to be read. */
export async function jsonTable(files: Files, path: string): Promise<Table | null> {
  const bytes = await readableBytes(files, path);
  const json = bytes === null ? null : readJson(new TextDecoder().decode(bytes));
  return json === null || typeof json === "string" || json.root === null
    ? null
    : (nodeValue(json.root) as Table);
}

/** Null for what is no TOML. */
export function tomlTable(text: string): Table | null {
  try {
    return parse(text.replace(/^\uFEFF/, ""), { integersAsBigInt: true });
  } catch {
    return null;
  }
}

export function tableIn(table: Table, name: string): Table {
  const value = table[name];
  return typeof value === "object" && value !== null ? (value as Table) : {};
}

/** Null also for what is no file, or may not be read: no harness reads it either. */
export async function readableBytes(files: Files, path: string): Promise<Uint8Array | null> {
  try {
    return await files.readFile(path);
  } catch {
    return null;
  }
}
