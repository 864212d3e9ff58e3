import type { Flag, Parsed } from "../../../cli/grammar/command";
import { endOfFlags } from "../../../cli/grammar/parse";
import { resourceNamed, resourceRefs } from "../../../coordinator/resources";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, errorFrom, orThrow } from "../../../errors/cotenant-error";
import type { CanonicalPath } from "../../../identity/paths";
import { type Cover, coverOf, refusePattern } from "../../../identity/patterns";
import type { LeaseRef } from "../../../kernel/commands";
import { parseUlid, printable } from "../../../kernel/ids";
import {
  dirKey,
  fileKey,
  KEY_KINDS,
  type KeyKind,
  kindOf,
  type LeaseKey,
  nameOf,
  parseKey,
  refKey,
} from "../../../kernel/keys";
import type { Reach } from "../../../kernel/lease";
import { isRefusal } from "../../../kernel/refusal";

/** How things to lock are named on the command line. */
export const TARGET_FLAGS: Readonly<Record<string, Flag>> = {
  dir: { value: "<path>", many: true, completes: "directory", meaning: "a directory and everything in it" },
  resource: {
    value: "<name>",
    many: true,
    completes: "resource",
    meaning: "a named resource; the name of a path or a ref leases that",
  },
  ref: { value: "<refs/…>", many: true, completes: "ref", meaning: "a Git ref, by its full name" },
  "all-dirs": { meaning: "every path given is a directory (a bare --dir means this)" },
  "all-resources": { meaning: "every word given is a resource (a bare --resource means this)" },
  "all-refs": { meaning: "every word given is a ref (a bare --ref means this)" },
};

/** Of commands about leases that exist: what matches a pattern may have changed since. */
export const NO_GLOB: Readonly<Record<string, Flag>> = {
  glob: { meaning: "not here: name the directory that was leased", insteadUse: "dir" },
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
  if (covering !== null) keys.push(...covering.map(({ directory }) => orThrow(dirKey(directory))));
  else if (!parsed.has("all-resources"))
    for (const word of parsed.words) keys.push(await wordKey(workspace, parsed, word));
  for (const path of parsed.texts("dir")) keys.push(await directoryKey(workspace, path));
  for (const name of resourceNames(parsed)) {
    const named = await resourceNamed(workspace, name);
    keys.push(...named.keys);
    if (named.remark !== null) workspace.warnings.push(named.remark);
  }
  for (const name of parsed.texts("ref")) keys.push(orThrow(refKey(name)));
  if (keys.length === 0) {
    throw new CotenantError("E_USAGE", "nothing was named to lock", {
      hint: "name at least one file, --dir <path>, --resource <name> or --ref <refs/…>",
    });
  }
  return [...new Set(keys)].map((key) => ({ key, reach: "repository" as const }));
}

async function wordKey(workspace: Workspace, parsed: Parsed, word: string): Promise<LeaseKey> {
  if (parsed.has("all-refs")) return orThrow(refKey(word));
  if (parsed.has("all-dirs")) return directoryKey(workspace, word);
  const { path, isDirectory } = await pathAsNamed(workspace, word);
  if (isDirectory === null) {
    const key = await keyAsShown(workspace, word);
    if (key !== null) return key;
  }
  if (isDirectory === true) {
    throw new CotenantError("E_USAGE", `"${printable(word)}" is a directory`, {
      hint: `to lease it with everything in it: --dir ${printable(word)}`,
    });
  }
  return orThrow(fileKey(path));
}

/** A word that is no path here but a lease's id or key, as other commands print and take them. */
async function keyAsShown(workspace: Workspace, word: string): Promise<LeaseKey | null> {
  let key: LeaseKey;
  if (isLeaseId(word)) {
    const [found] = await workspace.coordinator.find([{ key: null, leaseId: orThrow(parseUlid(word)) }]);
    if (found === undefined)
      throw new CotenantError("E_NOT_FOUND", `no lease has the id ${printable(word)}`, {
        hint: "'cotenant lock status' shows them; to lease a file of that name write ./ before it",
      });
    key = found.lease.key;
  } else if (KEY_KINDS.some((kind) => word.startsWith(`${kind}:`))) key = orThrow(parseKey(word));
  else return null;
  if (LOCKED_KINDS.includes(kindOf(key))) return key;
  throw new CotenantError("E_USAGE", `${printable(key)} is not for 'lock'`, {
    hint: key.startsWith("issue:")
      ? `for a claim: cotenant claim acquire ${nameOf(key)}, or cotenant claim force-evict ${nameOf(key)} --reason <why>`
      : "name a file, --dir <path>, --resource <name> or --ref <refs/…>",
  });
}

const LOCKED_KINDS: readonly KeyKind[] = ["file", "dir", "resource", "ref"];

export async function pathAsNamed(workspace: Workspace, text: string, hint?: string): Promise<CanonicalPath> {
  const found = await workspace.path(text);
  const { files } = workspace.surroundings.platform;
  const refusal = await refusePattern(files, text, found.absolutePath, hint);
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
  if (parsed.has("glob"))
    throw new CotenantError("E_USAGE", "--glob is for 'lock acquire': a pattern names no lease", {
      hint: "name the directory that was leased, with --dir, or the lease's id: 'cotenant lock status' shows both",
    });
  const refs: LeaseRef[] = [];
  for (const word of parsed.words)
    if (isLeaseId(word) || !parsed.has("all-resources")) refs.push(await leaseRef(workspace, parsed, word));
  for (const path of parsed.texts("dir"))
    refs.push(byKey(orThrow(dirKey((await workspace.path(path)).path))));
  const names = resourceNames(parsed).filter((name) => !(isLeaseId(name) && parsed.words.includes(name)));
  if (names.length > 0) {
    const { actor } = await workspace.session("read");
    for (const name of names) refs.push(...(await resourceRefs(workspace, actor, name)));
  }
  for (const name of parsed.texts("ref")) refs.push(byKey(orThrow(refKey(name))));
  if (refs.length === 0)
    throw new CotenantError("E_USAGE", "no lease was named", {
      hint: "name at least one by its id or by what it is on; 'cotenant lock status' shows them",
    });
  return refs.filter(({ key }, at) => key === null || refs.findIndex((one) => one.key === key) === at);
}

/** A bare --resource speaks of all the words. */
function resourceNames(parsed: Parsed): readonly string[] {
  return [...(parsed.has("all-resources") ? parsed.words : []), ...parsed.texts("resource")];
}

function isLeaseId(word: string): boolean {
  return word.length === 26 && !isRefusal(parseUlid(word));
}

async function leaseRef(workspace: Workspace, parsed: Parsed, word: string): Promise<LeaseRef> {
  const id = word.length === 26 ? parseUlid(word) : null;
  if (id !== null && !isRefusal(id)) return { key: null, leaseId: id };
  if (parsed.has("all-refs")) return byKey(orThrow(refKey(word)));
  if (word.startsWith("issue:"))
    return (await import("../../issues/commands/issues")).claimRef(workspace, word.slice("issue:".length));
  if (KEY_KINDS.some((kind) => word.startsWith(`${kind}:`))) return byKey(orThrow(parseKey(word)));
  const { path, isDirectory } = await workspace.path(word);
  return byKey(orThrow(isDirectory === true || parsed.has("all-dirs") ? dirKey(path) : fileKey(path)));
}

export function byKey(key: LeaseKey): LeaseRef {
  return { key, leaseId: null };
}
