import { createHash, randomBytes } from "node:crypto";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { CotenantError } from "../errors/cotenant-error";
import { readPlainFile } from "../platform/node/plain-file";
import type { ProcessIdentity } from "../platform/platform";

/** The protocol between a daemon and its clients. Whoever speaks another one goes without. */
export const PROTOCOL = 1;

/** Where the daemon of one user keeps what others need to find it, inside the control plane. */
export interface DaemonPlace {
  readonly controlDir: string;
  readonly folder: string;
  /** Who is running, where it listens, and what shows that one may ask. */
  readonly record: string;
  /** Held as long as a daemon runs: the proof that there is one, and only one. */
  readonly lock: string;
  readonly log: string;
}

export interface DaemonRecord {
  readonly pid: number;
  readonly startTime: string;
  readonly bootId: string;
  readonly socket: string;
  readonly token: string;
  readonly protocol: number;
  readonly version: string;
  readonly build: string;
  readonly startedAt: string;
  /** Of the control plane it serves: a copy of the repository has a copy of this record, and no daemon. */
  readonly controlInode: string;
}

/** One for each user: in a shared repository everybody has a daemon of their own, or none. */
export function daemonPlace(controlDir: string, user: string = userName()): DaemonPlace {
  const folder = path.join(controlDir, "daemon");
  const at = (ending: string) => path.join(folder, `${user}.${ending}`);
  return { controlDir, folder, record: at("json"), lock: at("lock"), log: at("log") };
}

function userName(): string {
  return process.getuid === undefined
    ? os.userInfo().username.replace(/[^\w.-]/g, "_")
    : String(process.getuid());
}

/** Null where there is none that could be believed: somebody else's, of another version, or of a repository this one is a copy of. */
export function readRecord({ record, controlDir }: DaemonPlace): DaemonRecord | null {
  try {
    const stat = fs.statSync(record, { throwIfNoEntry: false });
    if (stat === undefined || !isOurs(stat)) return null;
    const said = JSON.parse(readPlainFile(record)) as Record<string, unknown>;
    if (said["schema_version"] !== 1 || said["control_inode"] !== inodeOf(controlDir)) return null;
    return {
      pid: said["pid"] as number,
      startTime: String(said["start_time"]),
      bootId: String(said["boot_id"]),
      socket: String(said["socket"]),
      token: String(said["token"]),
      protocol: Number(said["protocol"]),
      version: String(said["version"]),
      build: String(said["build"]),
      startedAt: String(said["started_at"]),
      controlInode: String(said["control_inode"]),
    };
  } catch {
    return null;
  }
}

/** The process that a record is of, for the question whether it is still there. */
export function processOf({ pid, startTime, bootId }: DaemonRecord, self: ProcessIdentity): ProcessIdentity {
  return { ...self, pid, startTime, bootId };
}

export function writeRecord({ record }: DaemonPlace, said: DaemonRecord): void {
  const text = JSON.stringify(
    {
      schema_version: 1,
      pid: said.pid,
      start_time: said.startTime,
      boot_id: said.bootId,
      socket: said.socket,
      token: said.token,
      protocol: said.protocol,
      version: said.version,
      build: said.build,
      started_at: said.startedAt,
      control_inode: said.controlInode,
    },
    null,
    2,
  );
  const fresh = `${record}.new`;
  fs.rmSync(fresh, { force: true });
  fs.writeFileSync(fresh, `${text}\n`, { mode: 0o600, flag: "wx" });
  fs.renameSync(fresh, record);
}

/** Only its own: another daemon may have come to the same place meanwhile. */
export function removeRecord(place: DaemonPlace, token: string): void {
  if (readRecord(place)?.token === token) fs.rmSync(place.record, { force: true });
}

export function inodeOf(directory: string): string {
  return String(fs.statSync(directory, { bigint: true }).ino);
}

/** Tells a directory from whatever else may come to have its path; empty where there is none. */
export function identityOf(directory: string): string {
  const stat = fs.statSync(directory, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.dev} ${stat.ino}`;
}

/**
 * A new name for a socket, in a directory that only this user can enter. Sockets have short names: 104 bytes on some
 * systems. What earlier daemons of the same repository have left there goes; the caller has their lock.
 */
export function newSocketPath(controlDir: string, env: Readonly<Record<string, string | undefined>>): string {
  if (process.platform === "win32") return `\\\\.\\pipe\\cotenant-${controlMark(controlDir)}-${randomHex(8)}`;
  const folder = socketFolder(env);
  const prefix = `${controlMark(controlDir)}-`;
  for (const name of fs.readdirSync(folder))
    if (name.startsWith(prefix)) fs.rmSync(path.join(folder, name), { force: true });
  return path.join(folder, `${prefix}${randomHex(4)}`);
}

/** Sockets have short names: 108 bytes with the one that ends them, 104 on other systems. */
export const SHORT_ENOUGH = process.platform === "linux" ? 107 : 103;
/** With the ending of the one for hooks. */
const NAME_LENGTH = 28;

function socketFolder(env: Readonly<Record<string, string | undefined>>): string {
  const runtime = env["XDG_RUNTIME_DIR"];
  const places = [
    ...(runtime === undefined || !path.isAbsolute(runtime) ? [] : [path.join(runtime, "cotenant")]),
    path.join(os.tmpdir(), `cotenant-${process.getuid?.()}`),
    `/tmp/cotenant-${process.getuid?.()}`,
  ];
  for (const place of places) {
    if (place.length + NAME_LENGTH > SHORT_ENOUGH || !isPrivateFolder(place)) continue;
    return place;
  }
  throw new CotenantError("E_PERMISSION", `no directory for the daemon's socket: ${places.join(", ")}`, {
    hint: "one of them must be a directory that belongs to you and that nobody else can enter",
    data: { places },
  });
}

/** Made where it is missing; false where others could enter it. */
export function isPrivateFolder(folder: string): boolean {
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    const stat = fs.lstatSync(folder);
    return stat.isDirectory() && isOurs(stat) && (stat.mode & 0o077) === 0;
  } catch {
    return false;
  }
}

function isOurs(stat: fs.Stats): boolean {
  return process.getuid === undefined || (stat.uid === process.getuid() && (stat.mode & 0o022) === 0);
}

/** Tells one control plane from every other on this machine. */
export function controlMark(controlDir: string): string {
  return createHash("sha256")
    .update(`${controlDir}\0${inodeOf(controlDir)}`)
    .digest("hex")
    .slice(0, 16);
}

export function randomHex(bytes: number): string {
  return randomBytes(bytes).toString("hex");
}
