import { CotenantError, during } from "../errors/cotenant-error";
import type { AgentId, LeaseId, SessionId, WorktreeId } from "../kernel/ids";
import type { LeaseKey } from "../kernel/keys";
import type { Reach } from "../kernel/lease";
import type { Descriptor, Platform } from "../platform/platform";
import { escapeName, type Layout } from "./layout";
import { refuseNewer, SCHEMA_VERSION } from "./schema";
import { key, leaseId, list, object, reach, text, timeMs, worktreeId } from "./wire";

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
  readonly #directory: string;
  readonly #prepare: () => Promise<void>;
  #loaded: Loaded | null = null;
  #door: Promise<unknown> = Promise.resolve();
  /** Given back by this process: proves nothing, and goes with the next pruning. */
  readonly #released = new Set<LeaseId>();

  /** `prepare` makes the control plane where there is none yet. */
  constructor(
    private readonly platform: Platform,
    layout: Layout,
    party: { agentId: AgentId; sessionId: SessionId },
    prepare: () => Promise<void>,
  ) {
    const { agentId, sessionId } = party;
    const fileName = (name: string) => escapeName(name, (t) => platform.digest.sha256(t));
    this.#prepare = prepare;
    this.#directory = `${layout.secrets}/${fileName(agentId)}`;
    this.path = `${this.#directory}/${fileName(sessionId)}.json`;
  }

  /** Before the operation is asked for. */
  async add(entry: SecretEntry): Promise<void> {
    await during("keeping the lease's secret", this.path, () =>
      this.#withFile(async (fd) => this.#append(fd, entry, await this.#load())),
    );
  }

  /** Puts it back if somebody has pruned it meanwhile, taking it for one that came to nothing. */
  async ensure(entry: SecretEntry): Promise<void> {
    await during("keeping the lease's secret", this.path, () =>
      this.#withFile(async (fd) => {
        const loaded = await this.#load();
        if (!loaded.entries.some(({ secret }) => secret === entry.secret))
          await this.#append(fd, entry, loaded);
      }),
    );
  }

  /** Whether anything is kept at all. */
  async isThere(): Promise<boolean> {
    return (await this.platform.files.stat(this.path)) !== null;
  }

  async count(): Promise<number> {
    return (await this.#read()).entries.length;
  }

  async possessions(): Promise<Possession[]> {
    return [...(await this.#read()).byKey.values()].flat();
  }

  /** Newest first. */
  async on(key: LeaseKey): Promise<Possession[]> {
    return [...((await this.#read()).byKey.get(key) ?? [])].reverse();
  }

  /** A lease that was given back needs no proof. In memory only: the file is left to `prune`. */
  forget(lease: { readonly key: LeaseKey; readonly leaseId: LeaseId }): void {
    this.#released.add(lease.leaseId);
    if (this.#loaded !== null) drop(this.#loaded, lease);
  }

  /** One that was refused: it is not shown with what is asked for next. The file is left as it is, until `prune`. */
  overlook(lease: { readonly key: LeaseKey; readonly leaseId: LeaseId }): void {
    if (this.#loaded !== null) drop(this.#loaded, lease);
  }

  /**
   * Keeps only what `judge` finds useful. It is asked once nobody can add to the file any more: whoever is
   * granted something later makes sure of its secret afterwards (`ensure`), and waits for us there.
   */
  async prune(judge: (entries: readonly SecretEntry[]) => Promise<readonly SecretEntry[]>): Promise<void> {
    const { files } = this.platform;
    await during("pruning the session's secrets", this.path, async () => {
      if ((await files.stat(this.path)) === null) return;
      await this.#withFile(async () => {
        this.#loaded = null;
        const all = (await this.#load()).entries;
        const useful = all.filter((e) => !e.leases.every(({ leaseId }) => this.#released.has(leaseId)));
        const kept = await judge(useful);
        if (kept.length === all.length) return;
        await this.#replace(kept);
        this.#loaded = null;
        this.#released.clear();
      });
    });
  }

  // --- inside ---------------------------------------------------------------------------------------------

  async #append(fd: Descriptor, entry: SecretEntry, loaded: Loaded): Promise<void> {
    const { files } = this.platform;
    const { size } = await files.fstat(fd);
    // What a writer that died left of its line must not swallow ours.
    const isTorn = size > 0 && (await files.read(fd, size - 1, 1))[0] !== 10;
    const bytes = utf8.encode(`${isTorn ? "\n" : ""}${JSON.stringify(encode(entry))}\n`);
    const written = await files.append(fd, bytes);
    if (written !== bytes.length) {
      await files.truncate(fd, size);
      throw Object.assign(new Error("short write"), { code: "ENOSPC" });
    }
    const stat = await files.fstat(fd);
    include(loaded, entry);
    this.#loaded = { ...loaded, inode: stat.inode, size: stat.size };
  }

  /** Synced before it gets the name: losing one secret is a nuisance, losing all of them a calamity. */
  async #replace(entries: readonly SecretEntry[]): Promise<void> {
    const { files } = this.platform;
    const temporary = `${this.path}.new`;
    const bytes = utf8.encode(entries.map((entry) => `${JSON.stringify(encode(entry))}\n`).join(""));
    await files.unlink(temporary);
    const fd = await files.open(temporary, "append", 0o600);
    try {
      for (let at = 0; at < bytes.length; ) at += await files.append(fd, bytes.subarray(at));
      await files.sync(fd);
    } finally {
      await files.close(fd);
    }
    await files.rename(temporary, this.path);
  }

  async #read(): Promise<Loaded> {
    return during("reading the session's secrets", this.path, () => this.#load());
  }

  async #load(): Promise<Loaded> {
    const { files } = this.platform;
    const stat = await files.stat(this.path);
    if (stat === null) return { inode: 0, size: 0, entries: [], byKey: new Map() };
    if (this.#loaded?.inode === stat.inode && this.#loaded.size === stat.size) return this.#loaded;
    const bytes = await files.readFile(this.path);
    const loaded: Loaded = { inode: stat.inode, size: stat.size, entries: [], byKey: new Map() };
    for (const line of new TextDecoder().decode(bytes ?? new Uint8Array()).split("\n")) {
      const entry = line === "" ? null : decodeSecret(line);
      if (entry !== null) include(loaded, entry);
    }
    for (const owned of [...loaded.byKey.values()].flat())
      if (this.#released.has(owned.leaseId)) drop(loaded, owned);
    this.#loaded = loaded;
    return loaded;
  }

  /** As with the store's mutex: callers of this process queue here, only the first of them asks the system. */
  #withFile<T>(body: (fd: Descriptor) => Promise<T>): Promise<T> {
    const turn = this.#door.then(() => this.#withLockedFile(body));
    this.#door = turn.catch(() => {});
    return turn;
  }

  async #withLockedFile<T>(body: (fd: Descriptor) => Promise<T>): Promise<T> {
    const { files } = this.platform;
    for (;;) {
      const fd = await this.#open();
      try {
        await this.#lock(fd);
        // Pruning replaces the file; whoever waited then holds a file that nobody will read.
        const named = await files.stat(this.path);
        if (named !== null && named.inode === (await files.fstat(fd)).inode) return await body(fd);
      } finally {
        await files.close(fd);
      }
    }
  }

  /** Only processes of this session contend, and for an instant each; but one of them may be stopped. */
  async #lock(fd: Descriptor): Promise<void> {
    const { locks, timers, clock } = this.platform;
    const startedMs = clock.monotonicMs();
    while (!(await locks.tryLock(fd))) {
      if (clock.monotonicMs() - startedMs > BUSY_MS)
        throw new CotenantError("E_STORE_BUSY", "another process of this session keeps its secrets locked", {
          data: { path: this.path },
        });
      await timers.sleep(RETRY_MS).done;
    }
  }

  async #open(): Promise<Descriptor> {
    const { files } = this.platform;
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

const BUSY_MS = 10_000;
const RETRY_MS = 5;
const utf8 = new TextEncoder();

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
    schema_version: SCHEMA_VERSION,
    secret: entry.secret,
    made_at: new Date(entry.madeAtMs).toISOString(),
    worktree_id: entry.worktreeId,
    leases: entry.leases.map((l) => ({ lease_id: l.leaseId, key: l.key, reach: l.reach })),
  };
}

/** A line that cannot be read proves nothing, and is passed over; unless a newer version wrote it. */
export function decodeSecret(line: string): SecretEntry | null {
  try {
    const w = object(JSON.parse(line));
    refuseNewer(w["schema_version"], "the session's file of secrets");
    return {
      secret: text(w, "secret"),
      madeAtMs: timeMs(w, "made_at"),
      worktreeId: worktreeId(w),
      leases: list(w, "leases").map((value) => {
        const l = object(value);
        return { leaseId: leaseId(l), key: key(l), reach: reach(l) };
      }),
    };
  } catch (error) {
    if (error instanceof CotenantError) throw error;
    return null;
  }
}
