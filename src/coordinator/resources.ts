import { orThrow } from "../errors/cotenant-error";
import { type CanonicalPath, canonicalPath, gitPath } from "../identity/paths";
import { type Actor, byKey, type LeaseRef } from "../kernel/commands";
import { printable } from "../kernel/ids";
import { dirKey, fileKey, isFullRefName, type LeaseKey, refKey, resourceKey } from "../kernel/keys";
import { sameParty } from "../kernel/lease";
import { isRefusal } from "../kernel/refusal";
import type { Workspace } from "./workspace";

/** What somebody gets who asks for a resource by this name. */
export interface NamedResource {
  readonly keys: readonly LeaseKey[];
  /** Where the name is that of something else; null where it is only a name. */
  readonly remark: string | null;
}

/**
 * A name for paths that many want at once (docs/PUBLISH.md), or the name of a path or a ref itself: whoever takes it takes what it
 * stands for in the same operation, so that neither can be had without the other. The name is leased as well, because not
 * everybody sees the same files.
 */
export async function resourceNamed(workspace: Workspace, name: string): Promise<NamedResource> {
  const shown = `"${printable(name, 200)}"`;
  const ref = refIn(name);
  if (ref !== null) return { keys: [ref], remark: `${shown} is a ref: leased as ${ref}` };
  const spelt = pathIn(workspace, name);
  if (spelt !== null)
    return {
      keys: [spelt],
      remark: `${shown} is a path: leased as ${printable(spelt)}, as without --resource`,
    };
  const own = orThrow(resourceKey(name));
  const hot = workspace.config.values["publish.hot_resources"];
  const listed = Object.hasOwn(hot, name) ? hot[name]! : null;
  if (listed !== null)
    return { keys: [own, ...listed.map((path) => pathKey(workspace, path))], remark: null };
  const known = Object.values(hot)
    .flat()
    .find((path) => bare(path) === bare(name));
  const path = known === undefined ? await existing(workspace, name) : pathKey(workspace, known);
  if (path !== null)
    return {
      keys: [own, path],
      remark: `${shown} is a path: ${printable(path)} is leased with the resource`,
    };
  return { keys: [own], remark: (await isLikeAPath(workspace, name)) ? onlyAName(name) : null };
}

function onlyAName(name: string): string {
  const shown = printable(name, 200);
  return `"${shown}" is leased as a name only, which protects no file: there is none of that name. For the file: cotenant lock acquire ${shown}`;
}

/** The caller's leases that go by this name, also where its path has gone since; else those of others, else the name. */
export async function resourceRefs(workspace: Workspace, actor: Actor, name: string): Promise<LeaseRef[]> {
  const { keys } = await resourceNamed(workspace, name);
  const possible = [...keys, ...(refIn(name) === null ? await pathKeysOf(workspace, name) : [])];
  const found = await workspace.coordinator.find([...new Set(possible)].map(byKey));
  const mine = found.filter(({ lease }) => sameParty(lease, actor));
  const meant = (mine.length > 0 ? mine : found).map(({ lease }) => lease.key);
  return [...new Set(meant.length > 0 ? meant : keys.slice(0, 1))].map(byKey);
}

/** `ref:refs/heads/x`, or the ref's full name alone. */
function refIn(name: string): LeaseKey | null {
  const ref = name.startsWith("ref:") ? name.slice("ref:".length) : name;
  return isFullRefName(ref) ? orThrow(refKey(ref)) : null;
}

/** `file:src/a.ts` or `dir:src`, as `lock status` prints them. */
function pathIn({ repository }: Workspace, name: string): LeaseKey | null {
  const [, kind, path] = /^(file|dir):(.+)$/s.exec(name) ?? [];
  if (path === undefined) return null;
  const parsed = orThrow(gitPath(repository, path));
  return orThrow(kind === "dir" ? dirKey(parsed) : fileKey(parsed));
}

/** Whether a name of nothing is that of a file in a directory that is there. */
async function isLikeAPath(workspace: Workspace, name: string): Promise<boolean> {
  if (!/^[^\s]+\/[^\s/]+$/.test(name)) return false;
  const above = await pathsNamed(workspace, name.slice(0, name.lastIndexOf("/")));
  return above.some(({ isDirectory }) => isDirectory === true);
}

function bare(path: string): string {
  return path.replace(/\/$/, "");
}

/** As the configuration names paths: from the repository's root, directories with a slash at the end. */
function pathKey({ repository }: Workspace, path: string): LeaseKey {
  const parsed = orThrow(gitPath(repository, path));
  return orThrow(path.endsWith("/") ? dirKey(parsed) : fileKey(parsed));
}

/** From the root, where a name is the same for everybody; else from where the caller stands. */
async function existing(workspace: Workspace, name: string): Promise<LeaseKey | null> {
  const there = (await pathsNamed(workspace, name)).find(({ isDirectory }) => isDirectory !== null);
  return there === undefined ? null : orThrow(there.isDirectory ? dirKey(there.path) : fileKey(there.path));
}

async function pathKeysOf(workspace: Workspace, name: string): Promise<LeaseKey[]> {
  const paths = await pathsNamed(workspace, name);
  return paths.flatMap(({ path }) =>
    [fileKey(path), dirKey(path)].flatMap((key) => (isRefusal(key) ? [] : [key])),
  );
}

/** A name that is no path at all is only a name. */
async function pathsNamed({ surroundings, repository }: Workspace, name: string): Promise<CanonicalPath[]> {
  const { platform, cwd } = surroundings;
  const seen = [];
  for (const from of [repository.worktreeRoot, cwd])
    seen.push(await canonicalPath(platform, repository, from, bare(name) || name));
  return seen.flatMap((one) => (isRefusal(one) || one.worktreeRoot !== repository.worktreeRoot ? [] : [one]));
}
