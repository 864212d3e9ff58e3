import type { HarnessName } from "../../identity/harness";
import { below, parentOf } from "../../identity/path-text";
import type { Environment } from "../../identity/repository";
import { codexHindrances } from "./codex-trust";
import {
  jsonTable,
  type Layer,
  type SettingsSearch,
  settingsLayers,
  type Table,
  tableIn,
} from "./settings-layers";
import { type Grounds, homeOf, type Site, shownPath } from "./sites";

/**
 * Why a harness does not run our hooks of one of its files: a sentence for each reason, to be read after the harness's
 * name, with what to do about it. None where nothing is known that keeps it from running them. What a harness was started
 * with, and what it remembers elsewhere, is not known here.
 */
export async function hindrances(look: SettingsSearch, site: Site): Promise<string[]> {
  const { harness, level, path } = site;
  if (harness === "codex") return codexHindrances(look, site);
  const isKnown = await isTrusted(look, harness);
  const why = isKnown ? null : distrust(harness, level);
  if (why !== null) return [why];
  const layers = await settingsLayers(look, harness);
  const counting = layers.filter(({ of }) => of !== "project" || isKnown);
  const own = (site.format === "flat" ? await jsonTable(look.files, path) : null) ?? {};
  return [
    ...switchedOff(harness, counting, look.grounds),
    ...(isFileOff(site, own)
      ? [
          `runs no hooks of ${shownPath(path, look.grounds)}, because it has "disableAllHooks": true: take that out`,
        ]
      : []),
  ];
}

/** A setting that keeps a harness from running our hooks. */
interface Switch {
  readonly setting: string;
  /** Null where a file says nothing about it. */
  isOff(table: Table): boolean | null;
  /** Only there it counts. */
  readonly of?: Layer["of"];
  /** What one file says no other takes back. */
  readonly isFinal?: true;
}

const ALL: Switch = {
  setting: '"disableAllHooks": true',
  isOff: ({ disableAllHooks }) => (typeof disableAllHooks === "boolean" ? disableAllHooks : null),
};

/** As the programs heeded them on Linux, autumn 2026. */
const SWITCHES: Readonly<Partial<Record<HarnessName, readonly Switch[]>>> = {
  claude: [
    ALL,
    {
      setting: '"allowManagedHooksOnly": true',
      isOff: ({ allowManagedHooksOnly: said }) => (typeof said === "boolean" ? said : null),
      of: "machine",
    },
  ],
  copilot: [ALL],
  qwen: [ALL],
  gemini: [
    {
      setting: '"hooksConfig": {"enabled": false}',
      isOff: (table) => {
        const said = tableIn(table, "hooksConfig")["enabled"];
        return typeof said === "boolean" ? !said : null;
      },
    },
    {
      setting: '"cotenant" in "hooksConfig": {"disabled": […]}',
      isOff: (table) => {
        const names = tableIn(table, "hooksConfig")["disabled"];
        return Array.isArray(names) && names.includes("cotenant") ? true : null;
      },
      isFinal: true,
    },
  ],
};

/** Why a harness runs no hooks, to be read after its name: one sentence for each setting. Layers are those that count. */
function switchedOff(harness: HarnessName, layers: readonly Layer[], grounds: Grounds): string[] {
  return (SWITCHES[harness] ?? []).flatMap(({ setting, isOff, of, isFinal }) => {
    const said = layers
      .filter((layer) => of === undefined || layer.of === of)
      .flatMap((layer) => {
        const word = isOff(layer.table);
        return word === null ? [] : [{ layer, word }];
      });
    const last = isFinal === true ? said.find(({ word }) => word) : said.at(-1);
    return last?.word === true ? [becauseOf(last.layer, setting, grounds)] : [];
  });
}

/** Some switches are about the file that they are in, and nothing else. */
function isFileOff({ harness }: Pick<Site, "harness">, table: Table): boolean {
  return harness === "copilot" && ALL.isOff(table) === true;
}

export function becauseOf(
  { path, of }: Pick<Layer, "path" | "of">,
  setting: string,
  grounds: Grounds,
): string {
  const step = of === "machine" ? "ask whoever administers this machine" : "take that out";
  return `runs no hooks, because ${shownPath(path, grounds)} has ${setting}: ${step}`;
}

interface Rule {
  /** It is about this folder and everything below it. */
  readonly path: string;
  readonly isTrusted: boolean;
  /** Of several that are about a folder the highest counts. */
  readonly rank: number;
}

interface FolderTrust {
  /** Beside the user's own settings: folders, and a word about each. */
  readonly list: string;
  /** Moves the list. */
  readonly listVariable?: string;
  rules(list: Table): Rule[];
  /** `said` is by the rule that counts, null where there is none. Settings are without those of the project. */
  isTrusted(said: boolean | null, settings: readonly Layer[], env: Environment): boolean;
  /** Where it does not trust a folder it runs the user's own hooks there neither. */
  readonly isForAllHooks?: true;
  /** What a person does about it. */
  readonly how: string;
}

/** Harnesses that keep a list of folders from which they take hooks, as they were in autumn 2026. */
const LISTS: Readonly<Partial<Record<HarnessName, FolderTrust>>> = {
  pi: {
    list: "trust.json",
    rules: (list) =>
      Object.entries(list).map(([path, word]) => ({ path, isTrusted: word === true, rank: path.length })),
    isTrusted: (said, layers) =>
      said ?? layers.some(({ table }) => table["defaultProjectTrust"] === "always"),
    how: "say /trust in it, or start it with --approve",
  },
  qwen: {
    list: "trustedFolders.json",
    rules: (list) => geminiRules(list).map((rule) => ({ ...rule, rank: rule.path.length })),
    // It does not ask, unless a person switches that on.
    isTrusted: (said, layers) => said === true || asksForTrust(layers) !== true,
    how: "say /permissions in it",
  },
  gemini: {
    list: "trustedFolders.json",
    listVariable: "GEMINI_CLI_TRUSTED_FOLDERS_PATH",
    rules: geminiRules,
    // It asks, unless a person switches that off.
    isTrusted: (said, layers, env) => byVariables(env) ?? (said === true || asksForTrust(layers) === false),
    isForAllHooks: true,
    how: "say /permissions in it",
  },
  copilot: {
    list: "config.json",
    rules: ({ trustedFolders, trusted_folders }) =>
      [trustedFolders, trusted_folders].flatMap((paths) =>
        (Array.isArray(paths) ? paths : [])
          .filter((path) => typeof path === "string")
          .map((path) => ({ path: path.replace(/(?<=.)\/$/, ""), isTrusted: true, rank: 0 })),
      ),
    isTrusted: (said, _, env) =>
      said === true ||
      env["COPILOT_ALLOW_ALL"] === "true" ||
      env["GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS"] === "true",
    how: "start it there and answer its question with yes, for future sessions too, or start it with --trust-folder",
  },
};

function geminiRules(list: Table): Rule[] {
  return Object.entries(list).map(([path, word]) => ({
    path: word === "TRUST_PARENT" ? (parentOf(path) ?? path) : path,
    isTrusted: word === "TRUST_FOLDER" || word === "TRUST_PARENT",
    rank: path.length,
  }));
}

function byVariables(env: Environment): boolean | null {
  const said = env["GEMINI_CLI_TRUST_WORKSPACE"];
  if (env["GEMINI_RESTRICTED_MODE"] === "true" || said === "false") return false;
  return said === "true" ? true : null;
}

/** What the last of them says that says anything. */
function asksForTrust(layers: readonly Layer[]): boolean | undefined {
  const said = layers.map(({ table }) => tableIn(tableIn(table, "security"), "folderTrust")["enabled"]);
  return said.findLast((one) => typeof one === "boolean");
}

/** Whether a harness takes settings and hooks from this project, as far as that is known. */
async function isTrusted(look: SettingsSearch, harness: HarnessName): Promise<boolean> {
  const { files, grounds } = look;
  const trust = LISTS[harness];
  const [{ root, env }, home] = [grounds, homeOf(harness, grounds)];
  if (trust === undefined || home === null || root === null) return true;
  const moved = trust.listVariable === undefined ? undefined : env[trust.listVariable];
  const list = await jsonTable(files, moved || `${home}/${trust.list}`);
  const [nearest] = trust
    .rules(list ?? {})
    .filter(({ path }) => below(root, path) !== null)
    .sort((a, b) => b.rank - a.rank);
  const settings = (await settingsLayers(look, harness)).filter(({ of }) => of !== "project");
  return trust.isTrusted(nearest?.isTrusted ?? null, settings, env);
}

/** Why a harness that does not trust the project runs no hooks of this level, to be read after its name; else null. */
function distrust(harness: HarnessName, level: "project" | "user"): string | null {
  const trust = LISTS[harness];
  if (trust === undefined || (level === "user" && trust.isForAllHooks === undefined)) return null;
  const which = trust.isForAllHooks === true ? "no hooks in it" : "no hooks of it";
  return `does not trust this folder, and runs ${which}: ${trust.how}`;
}
