import { resourceNamed, resourceRefs } from "../../coordinator/resources";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, errorFrom, orThrow, usageError } from "../../errors/cotenant-error";
import type { CanonicalPath } from "../../identity/paths";
import { type Cover, coverOf, refusePattern } from "../../identity/patterns";
import { byKey, type LeaseRef } from "../../kernel/commands";
import { parseUlid, printable } from "../../kernel/ids";
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
} from "../../kernel/keys";
import { isRefusal } from "../../kernel/refusal";
import { claimRef } from "../issues/claim-refs";

/** What is to be leased, or was. Paths are relative to the caller's directory. */
export interface LockTargets {
  /** Files; also keys (`file:src/a.ts`) and ids of leases, where no such file is there. */
  readonly names?: readonly string[];
  /** Directories, each with everything in it. */
  readonly dirs?: readonly string[];
  /** Named resources; the name of a path or a ref means that. */
  readonly resources?: readonly string[];
  /** Git refs, by their full names. */
  readonly refs?: readonly string[];
}

/** The smallest directory that covers each of the patterns. */
export async function coversOf(workspace: Workspace, patterns: readonly string[]): Promise<Cover[]> {
  const { repository, surroundings } = workspace;
  const { git, cwd } = surroundings;
  const found: Cover[] = [];
  for (const pattern of patterns) found.push(orThrow(await coverOf(git, repository, cwd, pattern)));
  return found;
}

export async function keysOf(
  workspace: Workspace,
  { names = [], dirs = [], resources = [], refs = [] }: LockTargets,
  covers: readonly Cover[] = [],
): Promise<LeaseKey[]> {
  const keys = covers.map(({ directory }) => orThrow(dirKey(directory)));
  for (const name of names) keys.push(await namedKey(workspace, name));
  for (const path of dirs) keys.push(await directoryKey(workspace, path));
  for (const name of resources) {
    const named = await resourceNamed(workspace, name);
    keys.push(...named.keys);
    if (named.remark !== null) workspace.warnings.push(named.remark);
  }
  for (const name of refs) keys.push(orThrow(refKey(name)));
  if (keys.length > 0) return [...new Set(keys)];
  throw new CotenantError("E_USAGE", "nothing was named to lock", {
    hint: "name at least one file, --dir <path>, --resource <name> or --ref <refs/…>",
  });
}

async function namedKey(workspace: Workspace, name: string): Promise<LeaseKey> {
  const { path, isDirectory } = await pathNamed(workspace, name);
  if (isDirectory === null) {
    const key = await keyAsShown(workspace, name);
    if (key !== null) return key;
  }
  if (isDirectory !== true) return orThrow(fileKey(path));
  throw new CotenantError("E_USAGE", `"${printable(name)}" is a directory`, {
    hint: `to lease it with everything in it: --dir ${printable(name)}`,
  });
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
  } else if (isKey(word)) key = orThrow(parseKey(word));
  else return null;
  if (LOCKED_KINDS.includes(kindOf(key))) return key;
  throw new CotenantError("E_USAGE", `${printable(key)} is not for 'lock'`, {
    hint: key.startsWith("issue:")
      ? `for a claim: cotenant claim acquire ${nameOf(key)}, or cotenant claim force-evict ${nameOf(key)} --reason <why>`
      : "name a file, --dir <path>, --resource <name> or --ref <refs/…>",
  });
}

const LOCKED_KINDS: readonly KeyKind[] = ["file", "dir", "resource", "ref"];

/** A path, unless it is a pattern that only looks like one. */
export async function pathNamed(workspace: Workspace, text: string, hint?: string): Promise<CanonicalPath> {
  const found = await workspace.path(text);
  const { files } = workspace.surroundings.platform;
  const refusal = await refusePattern(files, text, found.absolutePath, hint);
  if (refusal !== null) throw errorFrom(refusal);
  return found;
}

async function directoryKey(workspace: Workspace, text: string): Promise<LeaseKey> {
  const { path, isDirectory } = await pathNamed(workspace, text);
  if (isDirectory !== false) return orThrow(dirKey(path));
  throw usageError(`"${printable(text)}" is a file, not a directory`, "leave out --dir");
}

/** Leases that exist already: by id, by key, or as they were named when they were taken. */
export async function leaseRefsOf(
  workspace: Workspace,
  { names = [], dirs = [], resources = [], refs = [] }: LockTargets,
): Promise<LeaseRef[]> {
  const found: LeaseRef[] = [];
  for (const name of names) found.push(await leaseRef(workspace, name));
  for (const path of dirs) found.push(byKey(orThrow(dirKey((await workspace.path(path)).path))));
  if (resources.length > 0) {
    const { actor } = await workspace.session("read");
    for (const name of resources) found.push(...(await resourceRefs(workspace, actor, name)));
  }
  for (const name of refs) found.push(byKey(orThrow(refKey(name))));
  if (found.length === 0)
    throw new CotenantError("E_USAGE", "no lease was named", {
      hint: "name at least one by its id or by what it is on; 'cotenant lock status' shows them",
    });
  return found.filter(({ key }, at) => key === null || found.findIndex((one) => one.key === key) === at);
}

async function leaseRef(workspace: Workspace, name: string): Promise<LeaseRef> {
  const id = name.length === 26 ? parseUlid(name) : null;
  if (id !== null && !isRefusal(id)) return { key: null, leaseId: id };
  if (name.startsWith("issue:")) return claimRef(workspace, name.slice("issue:".length));
  if (isKey(name)) return byKey(orThrow(parseKey(name)));
  const { path, isDirectory } = await workspace.path(name);
  return byKey(orThrow(isDirectory === true ? dirKey(path) : fileKey(path)));
}

export function isLeaseId(word: string): boolean {
  return word.length === 26 && !isRefusal(parseUlid(word));
}

function isKey(word: string): boolean {
  return KEY_KINDS.some((kind) => word.startsWith(`${kind}:`));
}
