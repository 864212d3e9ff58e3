import type { Holder } from "../kernel/lease";

/**
 * What cotenant needs from the machine it runs on.
 *
 * Every method may answer at once or later (`Later`): `node.ts` answers synchronously, so that a one-shot
 * command never starts a thread pool, and the simulator answers when its seeded scheduler says so, which
 * makes every file operation a point where another process may run, or where this one may die.
 */
export type Later<T> = T | Promise<T>;

export interface Platform {
  readonly clock: Clock;
  readonly files: Files;
  readonly locks: Locks;
  readonly processes: Processes;
  readonly random: Random;
  readonly digest: GitDigest;
  readonly timers: Timers;
  readonly compression: Compression;
}

/** Boot id, plus the time-namespace id where there is one: two instants compare only within one clock. */
export interface Clock {
  wallMs(): number;
  monotonicMs(): number;
  clockId(): string;
}

export interface Random {
  bytes(length: number): Uint8Array;
}

export interface Digest {
  /** SHA-256 in lower-case hex. */
  sha256(data: string | Uint8Array): string;
}

export interface GitDigest extends Digest {
  /** SHA-1 in lower-case hex: what most Git repositories name their objects by. Nothing of ours rests on it. */
  sha1(data: Uint8Array): string;
  /** Of something that comes in pieces, and may be too large to be held. */
  begin(algorithm: "sha1" | "sha256"): PiecewiseDigest;
}

export interface PiecewiseDigest {
  add(data: Uint8Array): void;
  /** In lower-case hex, at the end. */
  hex(): string;
}

/** `pack` for archived segments, `deflate` for Git's objects. */
export interface Compression {
  pack(data: Uint8Array): Later<Uint8Array>;
  unpack(data: Uint8Array): Later<Uint8Array>;
  /** The zlib format, quickly rather than tightly. */
  deflate(data: Uint8Array): Later<Uint8Array>;
  /** Fails on what is damaged, and on what would become larger than `most` bytes. */
  inflate(data: Uint8Array, most: number): Later<Uint8Array>;
}

export interface Timers {
  /** Resolves after `ms`, or as soon as `wake` is called on the returned handle. */
  sleep(ms: number): Sleep;
  /** Calls `notify` when an entry of the directory changes. Never a promise of completeness: poll as well. */
  watchDirectory(path: string, notify: () => void): DirectoryWatch;
  /** The same for one file, by its inode. Null where none is to be had: watches run out, and callers poll instead. */
  watchFile(path: string, notify: () => void): { close(): void } | null;
}

export interface DirectoryWatch {
  /** Whether the system tells of changes: then polling is for what it cannot tell, such as another directory in its place. */
  readonly isOn: boolean;
  close(): void;
}

export interface Sleep {
  readonly done: Promise<void>;
  wake(): void;
}

export type Liveness = "alive" | "dead" | "unknown";

/** Identifies one process on one machine in a way that survives pid reuse. */
export type ProcessIdentity = Holder;

export interface Ancestry {
  readonly parentPid: number;
  readonly words: readonly string[];
  /** The terminal session that it belongs to; null where that cannot be told. */
  readonly session: number | null;
}

/** A process by its number, where it stands and who started it; nothing that would survive the reuse of its number. */
export interface Started {
  readonly pid: number;
  readonly parentPid: number;
  /** Null where that cannot be told. */
  readonly directory: string | null;
}

export interface Processes {
  host(): string;
  machineId(): string;
  self(): ProcessIdentity;
  /** What the system calls the user of this process; null where it has no name. */
  userName(): string | null;
  /** Identity of another process of this machine, or null when it is not there. */
  identify(pid: number): Later<ProcessIdentity | null>;
  /** Who started a process, and with which words it was started itself; null where that cannot be told. */
  ancestry(pid: number): Later<Ancestry | null>;
  /** Those of our user that are alive and no older than the process that began at `startTime`; null where that cannot be told. */
  startedSince(startTime: string): Later<readonly Started[] | null>;
  /** The start of a process that begins now; empty where that cannot be told. */
  startTimeNow(): Later<string>;
  /**
   * Of the environment that a process was started with, those of these variables that it has; null where that cannot be told, or
   * it was started with none at all. Never more than was asked for: there are keys in environments.
   */
  variables(pid: number, names: readonly string[]): Later<Readonly<Record<string, string>> | null>;
  /** PROTOCOL 12. Anything that cannot be proved dead is alive or unknown. */
  liveness(holder: ProcessIdentity): Later<Liveness>;
  /** Ends a process at once, also a stopped one; only this very one, and only if it is of our user. */
  end(victim: ProcessIdentity): Later<void>;
}

export interface FileStat {
  readonly kind: "file" | "directory" | "symlink" | "other";
  readonly inode: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly mode: number;
  readonly uid: number;
}

export type OpenMode =
  /** existing file, reading */
  | "read"
  /** existing file, reading and writing in place */
  | "update"
  /** create when missing, reading and writing in place */
  | "update-or-create"
  /** create when missing, reading; every write goes to the end */
  | "append"
  /** must not exist */
  | "create";

export type Descriptor = number;

/** Failures are thrown with a POSIX `code` (`ENOSPC`, `EIO`, `EACCES`…). "Not there" is a null, not a failure. */
export interface Files {
  open(path: string, mode: OpenMode, permissions?: number): Later<Descriptor>;
  close(fd: Descriptor): Later<void>;
  read(fd: Descriptor, offset: number, length: number): Later<Uint8Array>;
  /** At the end of a file opened with "append". May be short; answers how much was taken. */
  append(fd: Descriptor, data: Uint8Array): Later<number>;
  writeAt(fd: Descriptor, data: Uint8Array, offset: number): Later<number>;
  truncate(fd: Descriptor, size: number): Later<void>;
  datasync(fd: Descriptor): Later<void>;
  /** The same, off the calling thread where the platform can. For processes that have other work meanwhile. */
  datasyncInBackground(fd: Descriptor): Later<void>;
  sync(fd: Descriptor): Later<void>;
  syncDirectory(path: string): Later<void>;
  /** The same for many files and directories at once, together where the platform can: a disk takes them as one. */
  syncAll(fds: readonly Descriptor[], directories: readonly string[]): Later<void>;
  fstat(fd: Descriptor): Later<FileStat>;
  stat(path: string): Later<FileStat | null>;
  lstat(path: string): Later<FileStat | null>;
  /**
   * Many at once, four numbers for each: inode, size, and the times of the last change of content and of anything, in
   * milliseconds with fractions. The inode is -1 for what is not there, and not a number for links, for what is
   * neither file nor directory, and for what cannot be looked at. Where `into` comes with -1, nothing is expected to
   * be there, which some platforms find out faster.
   */
  lstatAll(count: number, pathAt: (index: number) => string, into: Float64Array): Later<void>;
  readFile(path: string): Later<Uint8Array | null>;
  readDirectory(path: string): Later<string[] | null>;
  realPath(path: string): Later<string | null>;
  /** What a link says; null for what is none. */
  readLink(path: string): Later<string | null>;
  rename(from: string, to: string): Later<void>;
  link(existing: string, created: string): Later<void>;
  /** False when it was not there. */
  unlink(path: string): Later<boolean>;
  /** False when it was there already. */
  makeDirectory(path: string, permissions: number): Later<boolean>;
  /** False when it was not there or not empty. */
  removeDirectory(path: string): Later<boolean>;
  chmod(path: string, permissions: number): Later<void>;
  /** Name of a network or pass-through file system that holds `path`, or null for a local one. */
  networkFileSystem(path: string): Later<string | null>;
}

/**
 * An operating-system lock on an open file: exclusive, belonging to the descriptor, gone when the last copy
 * of the descriptor is closed, so also when the process dies.
 */
export interface Locks {
  tryLock(fd: Descriptor): Later<boolean>;
  /** Waits without holding up the caller's event loop. */
  lock(fd: Descriptor): Promise<void>;
  unlock(fd: Descriptor): Later<void>;
}
