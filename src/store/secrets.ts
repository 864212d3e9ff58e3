import { fileFailure } from "../errors/cotenant-error";
import type { AgentId, LeaseId, SessionId, WorktreeId } from "../kernel/ids";
import type { LeaseKey } from "../kernel/keys";
import type { Reach } from "../kernel/lease";
import type { Platform } from "../platform/platform";
import { escapeSegment, type Layout } from "./layout";
import { list, object, text } from "./wire";

/** One secret, made for one operation, and the leases it was to prove. */
export interface SecretEntry {
  readonly secret: string;
  readonly madeAtMs: number;
  readonly worktreeId: WorktreeId;
  readonly leases: readonly { readonly leaseId: LeaseId; readonly key: LeaseKey; readonly reach: Reach }[];
}

/** One lease this session once asked for, and how to prove it. */
export interface Possession {
  readonly leaseId: LeaseId;
  readonly key: LeaseKey;
  readonly reach: Reach;
  readonly worktreeId: WorktreeId;
  readonly secret: string;
}

interface Loaded {
  readonly inode: number;
  readonly size: number;
  readonly entries: SecretEntry[];
  /** Newest last. */
  readonly byKey: Map<string, Possession[]>;
}

/**
 * A session's secrets: one line per operation, appended before the operation is asked for (PROTOCOL 14), so
 * that nothing granted can be without its proof. Private to the user in shared repositories too.
 */
export class SessionSecrets {
  readonly path: string;
  readonly #platform: Platform;
  readonly #directory: string;
  readonly #prepare: () => Promise<void>;
  #loaded: Loaded | null = null;
  #door: Promise<unknown> = Promise.resolve();
  /** Given back by this process: proves nothing, and goes with the next pruning. */
  readonly #released = new Set<LeaseId>();

  /** `prepare` makes the control plane where there is none yet. */
  constructor(
    platform: Platform,
    layout: Layout,
    party: { agentId: AgentId; sessionId: SessionId },
    prepare: () => Promise<void>,
  ) {
    const { agentId, sessionId } = party;
    const fileName = (name: string) => escapeSegment(name, (t) => platform.digest.sha256(t));
    this.#platform = platform;
    this.#prepare = prepare;
    this.#directory = `${layout.secrets}/${fileName(agentId)}`;
    this.path = `${this.#directory}/${fileName(sessionId)}.json`;
  }

  async add(entry: SecretEntry): Promise<void> {
    const { files } = this.#platform;
    const bytes = new TextEncoder().encode(`${JSON.stringify(encode(entry))}\n`);
    try {
      await this.#withFile(async (fd) => {
        const loaded = await this.#load();
        const { size } = await files.fstat(fd);
        const written = await files.append(fd, bytes);
        if (written !== bytes.length) {
          await files.truncate(fd, size);
          throw Object.assign(new Error("short write"), { code: "ENOSPC" });
        }
        const stat = await files.fstat(fd);
        include(loaded, entry);
        this.#loaded = { ...loaded, inode: stat.inode, size: stat.size };
      });
    } catch (error) {
      throw fileFailure(error, "keeping the lease's secret", this.path);
    }
  }

  async count(): Promise<number> {
    return (await this.#load()).entries.length;
  }

  async possessions(): Promise<Possession[]> {
    return [...(await this.#load()).byKey.values()].flat();
  }

  /** Newest first. */
  async on(key: LeaseKey): Promise<Possession[]> {
    return [...((await this.#load()).byKey.get(key) ?? [])].reverse();
  }

  /** A lease that was given back needs no proof. In memory only: the file is left to `prune`. */
  forget(lease: { readonly key: LeaseKey; readonly leaseId: LeaseId }): void {
    this.#released.add(lease.leaseId);
    if (this.#loaded !== null) drop(this.#loaded, lease);
  }

  /** Keeps only what `wanted` says. Under a lock of the file's own: another process may be adding meanwhile. */
  async prune(wanted: (entry: SecretEntry) => boolean): Promise<void> {
    const { files } = this.#platform;
    if ((await files.stat(this.path)) === null) return;
    await this.#withFile(async () => {
      this.#loaded = null;
      const all = (await this.#load()).entries;
      const kept = all.filter(
        (e) => wanted(e) && !e.leases.every(({ leaseId }) => this.#released.has(leaseId)),
      );
      if (kept.length === all.length) return;
      const temporary = `${this.path}.new`;
      await files.unlink(temporary);
      const fd = await files.open(temporary, "append", 0o600);
      try {
        const content = kept.map((entry) => `${JSON.stringify(encode(entry))}\n`).join("");
        await files.append(fd, new TextEncoder().encode(content));
      } finally {
        await files.close(fd);
      }
      await files.rename(temporary, this.path);
      this.#loaded = null;
      this.#released.clear();
    });
  }

  async #load(): Promise<Loaded> {
    const { files } = this.#platform;
    const stat = await files.stat(this.path);
    if (stat === null) return { inode: 0, size: 0, entries: [], byKey: new Map() };
    if (this.#loaded?.inode === stat.inode && this.#loaded.size === stat.size) return this.#loaded;
    const bytes = await files.readFile(this.path);
    const loaded: Loaded = { inode: stat.inode, size: stat.size, entries: [], byKey: new Map() };
    for (const line of new TextDecoder().decode(bytes ?? new Uint8Array()).split("\n")) {
      const entry = line === "" ? null : decode(line);
      if (entry !== null) include(loaded, entry);
    }
    for (const owned of [...loaded.byKey.values()].flat())
      if (this.#released.has(owned.leaseId)) drop(loaded, owned);
    this.#loaded = loaded;
    return loaded;
  }

  /** As with the store's mutex: callers of this process queue here, only the first of them asks the system. */
  #withFile<T>(body: (fd: number) => Promise<T>): Promise<T> {
    const turn = this.#door.then(() => this.#withLockedFile(body));
    this.#door = turn.catch(() => {});
    return turn;
  }

  async #withLockedFile<T>(body: (fd: number) => Promise<T>): Promise<T> {
    const { files, locks } = this.#platform;
    for (;;) {
      const fd = await this.#open();
      try {
        if (!(await locks.tryLock(fd))) await locks.lock(fd);
        // Pruning replaces the file; whoever waited then holds a file that nobody will read.
        const named = await files.stat(this.path);
        if (named !== null && named.inode === (await files.fstat(fd)).inode) return await body(fd);
      } finally {
        await files.close(fd);
      }
    }
  }

  async #open(): Promise<number> {
    const { files } = this.#platform;
    try {
      return await files.open(this.path, "append", 0o600);
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOENT") throw error;
      await this.#prepare();
      await files.makeDirectory(this.#directory, 0o700);
      return files.open(this.path, "append", 0o600);
    }
  }
}

function include(loaded: Loaded, entry: SecretEntry): void {
  const { secret, worktreeId } = entry;
  loaded.entries.push(entry);
  for (const lease of entry.leases) {
    const possession = { ...lease, worktreeId, secret };
    const others = loaded.byKey.get(lease.key);
    if (others === undefined) loaded.byKey.set(lease.key, [possession]);
    else others.push(possession);
  }
}

function drop(loaded: Loaded, lease: { readonly key: LeaseKey; readonly leaseId: LeaseId }): void {
  const left = (loaded.byKey.get(lease.key) ?? []).filter((p) => p.leaseId !== lease.leaseId);
  if (left.length === 0) loaded.byKey.delete(lease.key);
  else loaded.byKey.set(lease.key, left);
}

function encode(entry: SecretEntry): Record<string, unknown> {
  return {
    schema_version: 1,
    secret: entry.secret,
    made_at: new Date(entry.madeAtMs).toISOString(),
    worktree_id: entry.worktreeId,
    leases: entry.leases.map((l) => ({ lease_id: l.leaseId, key: l.key, reach: l.reach })),
  };
}

/** A line that cannot be read proves nothing, and is passed over. */
function decode(line: string): SecretEntry | null {
  try {
    const w = object(JSON.parse(line));
    return {
      secret: text(w, "secret"),
      madeAtMs: Date.parse(text(w, "made_at")),
      worktreeId: text(w, "worktree_id") as WorktreeId,
      leases: list(w, "leases").map((value) => {
        const l = object(value);
        return {
          leaseId: text(l, "lease_id") as LeaseId,
          key: text(l, "key") as LeaseKey,
          reach: text(l, "reach") as Reach,
        };
      }),
    };
  } catch {
    return null;
  }
}
