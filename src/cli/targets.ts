import type { Workspace } from "../coordinator/workspace";
import { CotenantError, errorFrom, orThrow } from "../errors/cotenant-error";
import { type CanonicalPath, gitPath } from "../identity/paths";
import { type Cover, coverOf, refusePattern } from "../identity/patterns";
import type { LeaseRef } from "../kernel/commands";
import { parseUlid, printable } from "../kernel/ids";
import {
  dirKey,
  fileKey,
  KEY_KINDS,
  kindOf,
  type LeaseKey,
  nameOf,
  parseKey,
  refKey,
  resourceKey,
} from "../kernel/keys";
import { type Reach, sameParty } from "../kernel/lease";
import { isRefusal } from "../kernel/refusal";
import type { Flag, Parsed } from "./command";
import { endOfFlags } from "./parse";

/** How things to lock are named on the command line. */
export const TARGET_FLAGS: Readonly<Record<string, Flag>> = {
  dir: { value: "<path>", many: true, completes: "directory", meaning: "a directory and everything in it" },
  resource: { value: "<name>", many: true, completes: "resource", meaning: "a named resource" },
  ref: { value: "<refs/…>", many: true, completes: "ref", meaning: "a Git ref, by its full name" },
  "all-dirs": { meaning: "every path given is a directory (a bare --dir means this)" },
  "all-resources": { meaning: "every word given is a resource (a bare --resource means this)" },
  "all-refs": { meaning: "every word given is a ref (a bare --ref means this)" },
};

const BARE: Readonly<Record<string, string>> = {
  "--dir": "--all-dirs",
  "--resource": "--all-resources",
  "--ref": "--all-refs",
};

/** `--dir src` names one directory; a bare `--dir` (`lock acquire src lib --dir`) speaks of all the words. */
export function readBareTargetFlags(args: readonly string[]): string[] {
  const end = endOfFlags(args);
  return args.map((arg, i) => {
    const next = args[i + 1];
    const isBare = i < end && Object.hasOwn(BARE, arg) && (next === undefined || next.startsWith("--"));
    return isBare ? BARE[arg]! : arg;
  });
}

/** With `--glob` every word is a pattern. */
export async function covers(workspace: Workspace, patterns: readonly string[]): Promise<Cover[]> {
  const { repository, surroundings } = workspace;
  const { git, cwd } = surroundings;
  const found: Cover[] = [];
  for (const pattern of patterns) found.push(orThrow(await coverOf(git, repository, cwd, pattern)));
  return found;
}

export async function targetKeys(
  workspace: Workspace,
  parsed: Parsed,
  covering: readonly Cover[] | null = null,
): Promise<{ key: LeaseKey; reach: Reach }[]> {
  const keys: LeaseKey[] = [];
  if (covering === null) for (const word of parsed.words) keys.push(await wordKey(workspace, parsed, word));
  else keys.push(...covering.map(({ directory }) => orThrow(dirKey(directory))));
  for (const path of parsed.texts("dir")) keys.push(await directoryKey(workspace, path));
  for (const name of parsed.texts("resource")) keys.push(orThrow(resourceKey(name)));
  keys.push(...hotPaths(workspace, keys));
  for (const name of parsed.texts("ref")) keys.push(orThrow(refKey(name)));
  if (keys.length === 0) {
    throw new CotenantError("E_USAGE", "nothing was named to lock", {
      hint: "name at least one file, --dir <path>, --resource <name> or --ref <refs/…>",
    });
  }
  return [...new Set(keys)].map((key) => ({ key, reach: "repository" as const }));
}

/**
 * SPEC §11: a name for paths that many want at once. Who takes it takes their keys in the same operation, so that neither
 * can be had without the other.
 */
function hotPaths(workspace: Workspace, keys: readonly LeaseKey[]): LeaseKey[] {
  const hot = workspace.config.values["publish.hot_resources"];
  return keys.flatMap((key) => {
    const name = kindOf(key) === "resource" ? nameOf(key) : "";
    const paths = Object.hasOwn(hot, name) ? hot[name]! : [];
    return paths.map((path) => {
      const parsed = orThrow(gitPath(workspace.repository, path));
      return orThrow(path.endsWith("/") ? dirKey(parsed) : fileKey(parsed));
    });
  });
}

/** Of a hot resource, those of its paths' leases that the caller has: they go with the name. */
async function hotRefs(workspace: Workspace, refs: readonly LeaseRef[]): Promise<LeaseRef[]> {
  const keys = hotPaths(
    workspace,
    refs.flatMap(({ key }) => (key === null ? [] : [key])),
  );
  if (keys.length === 0) return [];
  const { actor } = await workspace.session("read");
  const found = await workspace.coordinator.find(keys.map((key) => byKey(key)));
  return found.filter(({ lease }) => sameParty(lease, actor)).map(({ lease: { key } }) => byKey(key));
}

async function wordKey(workspace: Workspace, parsed: Parsed, word: string): Promise<LeaseKey> {
  if (parsed.has("all-resources")) return orThrow(resourceKey(word));
  if (parsed.has("all-refs")) return orThrow(refKey(word));
  if (parsed.has("all-dirs")) return directoryKey(workspace, word);
  const { path, isDirectory } = await pathAsNamed(workspace, word);
  if (isDirectory === true) {
    throw new CotenantError("E_USAGE", `"${printable(word)}" is a directory`, {
      hint: `to lease it with everything in it: --dir ${printable(word)}`,
    });
  }
  return orThrow(fileKey(path));
}

async function pathAsNamed(workspace: Workspace, text: string): Promise<CanonicalPath> {
  const found = await workspace.path(text);
  const { files } = workspace.surroundings.platform;
  const refusal = await refusePattern(files, text, found.absolutePath);
  if (refusal !== null) throw errorFrom(refusal);
  return found;
}

async function directoryKey(workspace: Workspace, text: string): Promise<LeaseKey> {
  const { path, isDirectory } = await pathAsNamed(workspace, text);
  if (isDirectory === false) {
    throw new CotenantError("E_USAGE", `"${printable(text)}" is a file, not a directory`, {
      hint: "leave out --dir",
    });
  }
  return orThrow(dirKey(path));
}

/** Leases that exist already: by id, by canonical key, or as they were named when they were taken. */
export async function leaseRefs(workspace: Workspace, parsed: Parsed): Promise<LeaseRef[]> {
  const refs: LeaseRef[] = [];
  for (const word of parsed.words) refs.push(await leaseRef(workspace, parsed, word));
  for (const path of parsed.texts("dir"))
    refs.push(byKey(orThrow(dirKey((await workspace.path(path)).path))));
  for (const name of parsed.texts("resource")) refs.push(byKey(orThrow(resourceKey(name))));
  for (const name of parsed.texts("ref")) refs.push(byKey(orThrow(refKey(name))));
  if (refs.length === 0)
    throw new CotenantError("E_USAGE", "no lease was named", {
      hint: "name at least one by its id or by what it is on; 'cotenant lock status' shows them",
    });
  const named = new Set(refs.map(({ key }) => key));
  return [...refs, ...(await hotRefs(workspace, refs)).filter(({ key }) => !named.has(key))];
}

async function leaseRef(workspace: Workspace, parsed: Parsed, word: string): Promise<LeaseRef> {
  const id = word.length === 26 ? parseUlid(word) : null;
  if (id !== null && !isRefusal(id)) return { key: null, leaseId: id };
  if (parsed.has("all-resources")) return byKey(orThrow(resourceKey(word)));
  if (parsed.has("all-refs")) return byKey(orThrow(refKey(word)));
  if (KEY_KINDS.some((kind) => word.startsWith(`${kind}:`))) return byKey(orThrow(parseKey(word)));
  const { path, isDirectory } = await workspace.path(word);
  return byKey(orThrow(isDirectory === true || parsed.has("all-dirs") ? dirKey(path) : fileKey(path)));
}

export function byKey(key: LeaseKey): LeaseRef {
  return { key, leaseId: null };
}
