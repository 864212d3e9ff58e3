import type { Extent } from "../kernel/conflicts";
import { conflict } from "../kernel/conflicts";
import type { LeaseId, WorktreeId } from "../kernel/ids";
import { directoriesAbove, kindOf, type LeaseKey, nameOf, pathOf, type RepoPath } from "../kernel/keys";
import { type Ended, isIndefinite, type Lease, type Slot } from "../kernel/lease";
import type { Digest, Files } from "../platform/platform";
import type { Applied } from "./applied";
import { escapeSegment, type Layout, type Modes } from "./layout";
import type { EndingRecord } from "./replay";
import { seal, unseal } from "./sealed";
import { endedFromWire, endedToWire, leaseFromWire, leaseToWire, text, WireError } from "./wire";

const PLAIN = "meta.json";
/** Every name of ours in the tree; the escaping keeps repository names out of it. */
const OURS = /^meta[.@]/;
const WORKTREE_META = /^meta@(wt-[0-9a-f]{8})\.json$/;

/** An index file that does not hold what it should: what it said must be found in the log. */
export class DamagedIndex extends Error {}

/**
 * The path tree: one small file per lease, in directories that mirror the repository's, so that a process
 * that starts from nothing can ask "is anything leased here, above, or below?" by looking at a few names.
 * Derived from the log; nothing here is ever synced.
 */
export class IndexTree {
  readonly #files: Files;
  readonly #digest: Digest;
  readonly #layout: Layout;
  readonly #modes: Modes;
  readonly #known = new Set<string>();

  constructor(files: Files, digest: Digest, layout: Layout, modes: Modes) {
    this.#files = files;
    this.#digest = digest;
    this.#layout = layout;
    this.#modes = modes;
  }

  // --- asking ---------------------------------------------------------------------------------------

  async at(key: LeaseKey, worktreeId: WorktreeId | null): Promise<Lease | null> {
    return this.#readLease(this.#metaPath(key, worktreeId));
  }

  /** Whether the trees that should hold something are there at all. */
  async isComplete(entries: Applied["entries"]): Promise<boolean> {
    for (const [kind, number] of Object.entries(entries)) {
      if (
        number !== undefined &&
        number > 0 &&
        (await this.#files.stat(`${this.#layout.index}/${kind}`)) === null
      )
        return false;
    }
    return true;
  }

  /** All leases on a key, of either reach. */
  async onKey(key: LeaseKey): Promise<Lease[]> {
    const names = await this.#files.readDirectory(this.#directory(key));
    // We leave no empty directory where a lease was: somebody has been here.
    if (names?.length === 0) throw new DamagedIndex(this.#directory(key));
    const found: Lease[] = [];
    for (const name of names ?? []) {
      if (name !== PLAIN && !WORKTREE_META.test(name)) continue;
      const lease = await this.#readLease(`${this.#directory(key)}/${name}`);
      if (lease !== null) found.push(lease);
    }
    return found;
  }

  /** Every lease, valid or not, that conflicts with the extent. `enough` may end a long walk early. */
  async conflicting(extent: Extent, enough: (lease: Lease) => boolean = () => false): Promise<Lease[]> {
    const found: Lease[] = [];
    const add = (lease: Lease | null) => {
      if (lease === null || !conflict(extent, lease)) return false;
      found.push(lease);
      return enough(lease);
    };
    for (const lease of await this.onKey(extent.key)) if (add(lease)) return found;
    const kind = kindOf(extent.key);
    if (kind !== "file" && kind !== "dir") return found;
    const worktrees = extent.reach === "worktree" ? [extent.worktreeId] : await this.#worktreesWithReach();
    for (const above of directoriesAbove(pathOf(extent.key))) {
      const key = `dir:${above}` as LeaseKey;
      if (add(await this.at(key, null))) return found;
      for (const worktreeId of worktrees) if (add(await this.at(key, worktreeId))) return found;
    }
    if (kind === "dir") {
      for (const tree of ["file", "dir"]) {
        for await (const lease of this.#below(this.#treePath(tree, pathOf(extent.key)), false)) {
          if (add(lease)) return found;
        }
      }
    }
    return found;
  }

  async *all(): AsyncGenerator<Lease> {
    for (const kind of ["issue", "file", "dir", "resource", "ref", "worktree", "scope"]) {
      yield* this.#below(`${this.#layout.index}/${kind}`, true);
    }
  }

  async indefinite(): Promise<Lease[]> {
    const directory = `${this.#layout.index}/indefinite`;
    const found: Lease[] = [];
    for (const name of (await this.#files.readDirectory(directory)) ?? []) {
      const marker = await this.#readSealed(`${directory}/${name}`);
      if (marker === null) continue;
      // The marker may be older than the lease's end; the lease's own file decides.
      const lease = await this.at(text(marker, "key") as LeaseKey, null);
      if (lease !== null && lease.leaseId === marker["lease_id"]) found.push(lease);
    }
    return found;
  }

  async ending(leaseId: LeaseId): Promise<EndingRecord | null> {
    const value = await this.#readSealed(this.#endingPath(leaseId));
    if (value === null) return null;
    return { ended: endedFromWire(value), atMs: Date.parse(text(value, "ended_at")) };
  }

  // --- changing (under the mutex) ---------------------------------------------------------------------

  /** True when the lease is new to the index. */
  async put(lease: Lease): Promise<boolean> {
    const worktreeId = lease.reach === "worktree" ? lease.worktreeId : null;
    const path = this.#metaPath(lease.key, worktreeId);
    if (await this.#overwrite(path, leaseToWire(lease))) return false;
    const directory = this.#directory(lease.key);
    await this.#ensureDirectory(directory);
    if (worktreeId !== null) await this.#ensureDirectory(`${this.#layout.index}/reach/${dashed(worktreeId)}`);
    try {
      await this.#create(path, leaseToWire(lease));
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOENT") throw error;
      // Another process emptied and removed the directory since we last saw it.
      this.forget();
      await this.#ensureDirectory(directory);
      await this.#create(path, leaseToWire(lease));
    }
    if (isIndefinite(lease)) {
      await this.#ensureDirectory(`${this.#layout.index}/indefinite`);
      const marker = { lease_id: lease.leaseId, key: lease.key };
      await this.#create(`${this.#layout.index}/indefinite/${lease.leaseId}`, marker);
    }
    return true;
  }

  /** True when there was one. */
  async drop(slot: Slot): Promise<boolean> {
    const [key, worktreeId] = slot.split("\n") as [LeaseKey, WorktreeId | undefined];
    const directory = this.#directory(key);
    const was = await this.#files.unlink(this.#metaPath(key, worktreeId ?? null));
    if (await this.#files.removeDirectory(directory)) this.#known.delete(directory);
    return was;
  }

  async putEnding(record: EndingRecord): Promise<void> {
    await this.#ensureDirectory(`${this.#layout.index}/ended`);
    const value = { ...endedToWire(record.ended), ended_at: new Date(record.atMs).toISOString() };
    const path = this.#endingPath(record.ended.leaseId);
    if (!(await this.#overwrite(path, value))) await this.#create(path, value);
  }

  /** Forgets directories known to exist: they may have been removed behind our back. */
  forget(): void {
    this.#known.clear();
  }

  /** Removes every lease's file, so that a rebuild starts from nothing. */
  async clear(): Promise<void> {
    this.forget();
    await this.#remove(this.#layout.index, true);
  }

  /** Removes what no longer says anything: empty directories, stale markers, old endings, leftovers of writes. */
  async prune(olderThanMs: number): Promise<void> {
    this.forget();
    const indefinite = new Set((await this.indefinite()).map((lease) => lease.leaseId as string));
    const markers = `${this.#layout.index}/indefinite`;
    for (const name of (await this.#files.readDirectory(markers)) ?? []) {
      if (!indefinite.has(name)) await this.#files.unlink(`${markers}/${name}`);
    }
    const ended = `${this.#layout.index}/ended`;
    for (const name of (await this.#files.readDirectory(ended)) ?? []) {
      const value = await this.#readSealed(`${ended}/${name}`).catch(() => null);
      if (value === null || Date.parse(text(value, "ended_at")) < olderThanMs)
        await this.#files.unlink(`${ended}/${name}`);
    }
    for (const kind of ["issue", "file", "dir", "resource", "ref", "worktree", "scope"]) {
      await this.#pruneEmpty(`${this.#layout.index}/${kind}`);
    }
  }

  // --- inside -----------------------------------------------------------------------------------------

  async *#below(directory: string, own: boolean): AsyncGenerator<Lease> {
    const names = await this.#files.readDirectory(directory);
    if (names === null) return;
    for (const name of names) {
      if (name === PLAIN || WORKTREE_META.test(name)) {
        if (!own) continue;
        const lease = await this.#readLease(`${directory}/${name}`);
        if (lease !== null) yield lease;
      } else if (!OURS.test(name)) {
        yield* this.#below(`${directory}/${name}`, true);
      }
    }
  }

  async #worktreesWithReach(): Promise<WorktreeId[]> {
    const names = await this.#files.readDirectory(`${this.#layout.index}/reach`);
    return (names ?? []).map((name) => name.replace("wt-", "wt:") as WorktreeId);
  }

  async #readLease(path: string): Promise<Lease | null> {
    const value = await this.#readSealed(path);
    if (value === null) return null;
    try {
      return leaseFromWire(value);
    } catch (error) {
      if (error instanceof WireError) throw new DamagedIndex(path);
      throw error;
    }
  }

  async #readSealed(path: string): Promise<Readonly<Record<string, unknown>> | null> {
    const bytes = await this.#files.readFile(path);
    if (bytes === null) return null;
    const value = unseal(this.#digest, bytes);
    if (value === null) throw new DamagedIndex(path);
    return value;
  }

  /** False when there is no file to overwrite. In place: replacing by rename costs ten times as much. */
  async #overwrite(path: string, value: object): Promise<boolean> {
    const fd = await this.#openExisting(path);
    if (fd === null) return false;
    try {
      const size = (await this.#files.fstat(fd)).size;
      const bytes = seal(this.#digest, value, size);
      if ((await this.#files.writeAt(fd, bytes, 0)) !== bytes.length)
        throw Object.assign(new Error("short write"), { code: "ENOSPC" });
    } finally {
      await this.#files.close(fd);
    }
    return true;
  }

  async #openExisting(path: string): Promise<number | null> {
    if ((await this.#files.stat(path)) === null) return null;
    try {
      return await this.#files.open(path, "update");
    } catch (error) {
      const code = (error as { code?: unknown }).code;
      if (code === "ENOENT" || code === "ENOTDIR") return null;
      throw error;
    }
  }

  /** A new name appears whole, by rename. */
  async #create(path: string, value: object): Promise<void> {
    const temporary = `${path}.new`;
    const fd = await this.#files.open(temporary, "update-or-create", this.#modes.file);
    try {
      const bytes = seal(this.#digest, value, (await this.#files.fstat(fd)).size);
      if ((await this.#files.writeAt(fd, bytes, 0)) !== bytes.length)
        throw Object.assign(new Error("short write"), { code: "ENOSPC" });
    } finally {
      await this.#files.close(fd);
    }
    await this.#files.rename(temporary, path);
  }

  async #ensureDirectory(path: string): Promise<void> {
    if (this.#known.has(path)) return;
    try {
      await this.#files.makeDirectory(path, this.#modes.directory);
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOENT") throw error;
      await this.#ensureDirectory(path.slice(0, path.lastIndexOf("/")));
      await this.#files.makeDirectory(path, this.#modes.directory);
    }
    if (this.#known.size < 10_000) this.#known.add(path);
  }

  async #remove(path: string, keepItself: boolean): Promise<void> {
    for (const name of (await this.#files.readDirectory(path)) ?? []) {
      const child = `${path}/${name}`;
      if (keepItself && (child === this.#layout.applied || child === this.#layout.synced)) continue;
      if ((await this.#files.lstat(child))?.kind === "directory") await this.#remove(child, false);
      else await this.#files.unlink(child);
    }
    if (!keepItself) await this.#files.removeDirectory(path);
  }

  async #pruneEmpty(directory: string): Promise<void> {
    for (const name of (await this.#files.readDirectory(directory)) ?? []) {
      if (name.endsWith(".new") && OURS.test(name)) await this.#files.unlink(`${directory}/${name}`);
      else if (!OURS.test(name)) await this.#pruneEmpty(`${directory}/${name}`);
    }
    await this.#files.removeDirectory(directory);
  }

  #endingPath(leaseId: LeaseId): string {
    return `${this.#layout.index}/ended/${leaseId}.json`;
  }

  #metaPath(key: LeaseKey, worktreeId: WorktreeId | null): string {
    return `${this.#directory(key)}/${worktreeId === null ? PLAIN : `meta@${dashed(worktreeId)}.json`}`;
  }

  #directory(key: LeaseKey): string {
    const kind = kindOf(key);
    if (kind === "file" || kind === "dir") return this.#treePath(kind, pathOf(key));
    if (kind === "ref") return `${this.#layout.index}/ref/${this.#escaped(nameOf(key).split("/"))}`;
    return `${this.#layout.index}/${kind}/${this.#escaped([nameOf(key)])}`;
  }

  #treePath(tree: string, path: RepoPath): string {
    return path === "."
      ? `${this.#layout.index}/${tree}`
      : `${this.#layout.index}/${tree}/${this.#escaped(path.split("/"))}`;
  }

  #escaped(segments: readonly string[]): string {
    return segments.map((segment) => escapeSegment(segment, (t) => this.#digest.sha256(t))).join("/");
  }
}

/** `wt:1a2b3c4d` as part of a file name. */
function dashed(worktreeId: WorktreeId): string {
  return worktreeId.replace(":", "-");
}

export function endingsOf(ended: readonly Ended[], atMs: number): EndingRecord[] {
  return ended.filter((gone) => gone.how !== "released").map((gone) => ({ ended: gone, atMs }));
}
