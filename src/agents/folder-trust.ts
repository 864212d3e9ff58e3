import type { HarnessName } from "../identity/harness";
import { below, parentOf } from "../identity/path-text";
import type { Files } from "../platform/platform";
import { nodeValue, readJson } from "./json-text";
import { type Grounds, homeOf } from "./sites";

type Table = Readonly<Record<string, unknown>>;

interface Rule {
  /** It is about this folder and everything below it. */
  readonly path: string;
  readonly isTrusted: boolean;
}

interface FolderTrust {
  /** Beside the user's own settings: folders, and a word about each. */
  readonly list: string;
  rule(path: string, word: unknown): Rule;
  /** `said` is by the nearest rule, null where there is none. */
  isTrusted(said: boolean | null, settings: Table): boolean;
  /** What a person does about it. */
  readonly how: string;
}

/** Harnesses that keep a list of folders from which they take hooks, as they were in autumn 2026. */
const LISTS: Readonly<Partial<Record<HarnessName, FolderTrust>>> = {
  pi: {
    list: "trust.json",
    rule: (path, word) => ({ path, isTrusted: word === true }),
    isTrusted: (said, { defaultProjectTrust }) => said ?? defaultProjectTrust === "always",
    how: "say /trust in it, or start it with --approve",
  },
  qwen: {
    list: "trustedFolders.json",
    rule: (path, word) =>
      word === "TRUST_PARENT"
        ? { path: parentOf(path) ?? path, isTrusted: true }
        : { path, isTrusted: word === "TRUST_FOLDER" },
    isTrusted: (said, settings) => said === true || !asksForTrust(settings),
    how: "say /permissions in it",
  },
};

/** Off, unless a person switches it on. */
function asksForTrust(settings: Table): boolean {
  return tableIn(tableIn(settings, "security"), "folderTrust")["enabled"] === true;
}

/** Why a harness runs nothing of this project, for people; null where nothing is known to keep it. */
export async function distrust(files: Files, harness: HarnessName, grounds: Grounds): Promise<string | null> {
  const trust = LISTS[harness];
  const [{ root }, home] = [grounds, homeOf(harness, grounds)];
  if (trust === undefined || home === null || root === null) return null;
  const settings = await tableOf(files, `${home}/settings.json`);
  const rules = Object.entries(await tableOf(files, `${home}/${trust.list}`))
    .map(([path, word]) => trust.rule(path, word))
    .filter(({ path }) => below(root, path) !== null)
    .sort((a, b) => b.path.length - a.path.length);
  return trust.isTrusted(rules[0]?.isTrusted ?? null, settings)
    ? null
    : `does not trust this folder, and runs no hooks of it: ${trust.how}`;
}

async function tableOf(files: Files, path: string): Promise<Table> {
  const bytes = await files.readFile(path);
  const json = bytes === null ? null : readJson(new TextDecoder().decode(bytes));
  return json === null || typeof json === "string" || json.root === null
    ? {}
    : (nodeValue(json.root) as Table);
}

function tableIn(table: Table, name: string): Table {
  const value = table[name];
  return typeof value === "object" && value !== null ? (value as Table) : {};
}
