import * as fs from "node:fs";
import { sameProcessSpace } from "../liveness";
import type { Ancestry, Liveness, Processes, ProcessIdentity, Started } from "../platform";
import { sha256 } from "./crypto";

/** Loaded where it is needed: the quickest commands do without. */
function os(): typeof import("node:os") {
  return require("node:os") as typeof import("node:os");
}

/** What one look at a process tells. `startTime` is empty when it could not be read. */
interface Sighting {
  readonly startTime: string;
  readonly ended: boolean;
}

export class NodeProcesses implements Processes {
  #self: ProcessIdentity | undefined;
  #machineId: string | undefined;
  /** Nothing that runs here moves itself into another one. */
  #namespaces: Pick<ProcessIdentity, "pidNamespace" | "timeNamespace"> | undefined;

  host(): string {
    return os().hostname();
  }

  machineId(): string {
    this.#machineId ??= disguised(readMachineId());
    return this.#machineId;
  }

  self(): ProcessIdentity {
    this.#self ??= this.#identity(process.pid, look(process.pid)?.startTime ?? "");
    return this.#self;
  }

  userName(): string | null {
    try {
      return os().userInfo().username;
    } catch {
      // A number that no list of users has, as in many containers.
      return null;
    }
  }

  identify(pid: number): ProcessIdentity | null {
    const seen = look(pid);
    return seen === null || seen.ended ? null : this.#identity(pid, seen.startTime);
  }

  ancestry(pid: number): Ancestry | null {
    if (process.platform === "linux") return showsOurNamespace() ? ancestryInProc(pid) : null;
    return process.platform === "darwin" ? ancestryWithPs(pid) : null;
  }

  startedSince(startTime: string): readonly Started[] | null {
    if (startTime === "") return null;
    if (process.platform === "linux") return showsOurNamespace() ? startedInProc(Number(startTime)) : null;
    return process.platform === "darwin" ? startedWithPs(Date.parse(startTime)) : null;
  }

  startTimeNow(): string {
    if (process.platform === "linux") return showsOurNamespace() ? ticksNow() : "";
    // As `ps` writes it, and no later than that: it counts in seconds.
    return process.platform === "darwin" ? new Date(Date.now() - 1_000).toUTCString() : "";
  }

  variables(pid: number, names: readonly string[]): Readonly<Record<string, string>> | null {
    return process.platform === "linux" && showsOurNamespace() ? variablesInProc(pid, names) : null;
  }

  liveness(holder: ProcessIdentity): Liveness {
    const self = this.self();
    const space = sameProcessSpace(holder, self);
    if (space !== "same") return space;
    // Whoever asks is alive.
    if (holder.pid === self.pid && self.startTime !== "" && holder.startTime === self.startTime)
      return "alive";
    try {
      process.kill(holder.pid, 0);
    } catch (error) {
      // EPERM: it is there and belongs to somebody else. Anything but "no such process" proves nothing.
      if ((error as NodeJS.ErrnoException).code === "ESRCH") return "dead";
    }
    const seen = look(holder.pid);
    if (seen === null) return "alive";
    if (seen.ended) return "dead";
    const reused = seen.startTime !== "" && holder.startTime !== "" && seen.startTime !== holder.startTime;
    return reused ? "dead" : "alive";
  }

  end(victim: ProcessIdentity): void {
    const seen = this.identify(victim.pid);
    if (seen === null || seen.startTime === "" || this.liveness(victim) !== "alive") return;
    if (seen.startTime !== victim.startTime || seen.pid === this.self().pid) return;
    try {
      process.kill(victim.pid, "SIGKILL");
    } catch {
      // It is somebody else's, or has ended by itself.
    }
  }

  #ownNamespaces(): Pick<ProcessIdentity, "pidNamespace" | "timeNamespace"> {
    this.#namespaces ??= { pidNamespace: namespace("pid"), timeNamespace: namespace("time") };
    return this.#namespaces;
  }

  #identity(pid: number, startTime: string): ProcessIdentity {
    return {
      machineId: this.machineId(),
      bootId: bootId(),
      ...this.#ownNamespaces(),
      user: process.getuid === undefined ? os().userInfo().username : String(process.getuid()),
      pid,
      startTime,
    };
  }
}

let cachedBootId: string | undefined;

export function bootId(): string {
  cachedBootId ??= readBootId();
  return cachedBootId;
}

function readBootId(): string {
  if (process.platform === "linux") return fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  if (process.platform === "darwin")
    return command("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"]).trim();
  // Seconds of the boot, rounded: equal within a boot, different after the next.
  return `boot-${Math.round((Date.now() / 1000 - os().uptime()) / 10)}`;
}

const namespaces = new Map<string, string>();

/**
 * Empty where there are no such namespaces; never equal to anything where they cannot be read. A process stays in those that it
 * was born into.
 */
export function namespace(kind: "pid" | "time"): string {
  const known = namespaces.get(kind) ?? readNamespace(kind);
  namespaces.set(kind, known);
  return known;
}

function readNamespace(kind: "pid" | "time"): string {
  if (process.platform !== "linux") return "";
  try {
    return /\[(\d+)\]/.exec(fs.readlinkSync(`/proc/self/ns/${kind}`))?.[1] ?? "";
  } catch (error) {
    // Kernels before 5.6 have no time namespaces.
    return kind === "time" && (error as NodeJS.ErrnoException).code === "ENOENT" ? "" : "unreadable";
  }
}

/** Empty when the machine has no id; then an earlier boot cannot be told from another machine. */
function readMachineId(): string {
  if (process.platform === "linux") {
    for (const file of ["/etc/machine-id", "/var/lib/dbus/machine-id"]) {
      try {
        const id = fs.readFileSync(file, "utf8").trim();
        if (/^[0-9a-f]{32}$/.test(id)) return id;
      } catch {}
    }
    return "";
  }
  if (process.platform === "darwin") {
    const found = /"IOPlatformUUID" = "([^"]+)"/.exec(
      command("/usr/sbin/ioreg", ["-rd1", "-c", "IOPlatformExpertDevice"]),
    );
    return found?.[1] ?? "";
  }
  return "";
}

/** The machine's own id is confidential, as machine-id(5) says; ours only has to be the same each time. */
function disguised(id: string): string {
  if (id === "") return "";
  return sha256(`cotenant\0${id}`).slice(0, 32);
}

/** Null when there is no such process, or none that could be told from a later one of the same number. */
export function startTimeOf(pid: number): string | null {
  const seen = look(pid);
  return seen === null || seen.ended || seen.startTime === "" ? null : seen.startTime;
}

let showsOurs: boolean | undefined;

/**
 * Whether `/proc` goes by the same numbers as we do. In a pid namespace that was made without a `/proc` of its own it shows
 * the processes of another one: what stands there under a number says nothing about ours.
 */
function showsOurNamespace(): boolean {
  if (showsOurs === undefined) {
    try {
      showsOurs = fs.readlinkSync("/proc/self") === String(process.pid);
    } catch {
      showsOurs = false;
    }
  }
  return showsOurs;
}

/** Only that it is there: unseen is not dead. */
function lookWithSignal(pid: number): Sighting | null {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return null;
  }
  return { startTime: "", ended: false };
}

function look(pid: number): Sighting | null {
  if (process.platform === "linux") return showsOurNamespace() ? lookInProc(pid) : lookWithSignal(pid);
  if (process.platform === "darwin") return lookWithPs(pid);
  return null;
}

function lookInProc(pid: number): Sighting | null {
  const fields = statFields(pid);
  return fields === null ? null : { startTime: fields[19] ?? "", ended: hasEnded(fields) };
}

/** From the third field of its `stat` on: state, parent, group. Null where there is no such process. */
function statFields(pid: number): readonly string[] | null {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name in parentheses may hold spaces and parentheses of its own.
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

function hasEnded([state]: readonly string[]): boolean {
  return state === "Z" || state === "X";
}

/**
 * The members of a process group that have not ended; null where that cannot be told. A process that has ended stays in its group
 * until its parent asks how: an orphan's parent is the machine's first process, and in some containers that asks only every few
 * seconds, or never.
 */
export function membersOf(group: number): number[] | null {
  return livingWhere((_, fields) => Number(fields[2]) === group);
}

/** Processes of ours that were started with this in their environment and have not ended; none where that cannot be told. */
export function markedWith(entry: string): number[] {
  const isMarked = (pid: number) => `\0${environmentOf(pid)}`.includes(`\0${entry}\0`);
  return livingWhere(isMarked) ?? [];
}

function livingWhere(isOne: (pid: number, fields: readonly string[]) => boolean): number[] | null {
  if (process.platform !== "linux" || !showsOurNamespace()) return null;
  return fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const fields = statFields(pid);
      return fields !== null && !hasEnded(fields) && isOne(pid, fields);
    });
}

/** Empty where it is somebody else's, or has gone. */
function environmentOf(pid: number): string {
  try {
    return fs.readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return "";
  }
}

/** Hundredths of a second since the boot, which is what `stat` has as well. */
function ticksNow(): string {
  try {
    const [seconds = ""] = fs.readFileSync("/proc/uptime", "latin1").split(" ");
    return String(Math.floor(Number(seconds) * 100));
  } catch {
    return "";
  }
}

function lookWithPs(pid: number): Sighting | null {
  const line = command("/bin/ps", ["-o", "stat=,lstart=", "-p", String(pid)]).trim();
  if (line === "") return null;
  const space = line.search(/\s/);
  return { startTime: line.slice(space).trim(), ended: line.startsWith("Z") };
}

function ancestryInProc(pid: number): Ancestry | null {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const words = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
    return { parentPid: Number(fields[1]), session: Number(fields[3]), words };
  } catch {
    return null;
  }
}

/** Where one word ends and the next begins is lost there. */
function ancestryWithPs(pid: number): Ancestry | null {
  const line = command("/bin/ps", ["-ww", "-o", "ppid=,command=", "-p", String(pid)]).trim();
  const found = /^(\d+)\s+(.*)$/.exec(line);
  return found === null ? null : { parentPid: Number(found[1]), session: null, words: found[2]!.split(" ") };
}

function startedInProc(since: number): Started[] {
  const uid = process.getuid?.();
  const found: Started[] = [];
  for (const name of fs.readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const pid = Number(name);
    const seen = lookInProc(pid);
    if (seen === null || seen.ended || Number(seen.startTime) < since) continue;
    try {
      if (fs.statSync(`/proc/${pid}`).uid !== uid) continue;
      const parentPid = ancestryInProc(pid)?.parentPid;
      if (parentPid !== undefined)
        found.push({ pid, parentPid, directory: fs.readlinkSync(`/proc/${pid}/cwd`) });
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

function variablesInProc(pid: number, names: readonly string[]): Record<string, string> | null {
  let text: string;
  try {
    text = fs.readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return null;
  }
  // Empty as well where it has ended, or has written over it.
  if (text.replaceAll("\0", "") === "") return null;
  const found: Record<string, string> = {};
  for (const entry of text.split("\0")) {
    const at = entry.indexOf("=");
    const name = entry.slice(0, Math.max(0, at));
    if (names.includes(name)) found[name] = entry.slice(at + 1);
  }
  return found;
}

/** It does not say where they stand. */
function startedWithPs(sinceMs: number): Started[] {
  const uid = String(process.getuid?.());
  return command("/bin/ps", ["-axo", "pid=,ppid=,uid=,lstart="])
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((words) => words[2] === uid && Date.parse(words.slice(3).join(" ")) >= sinceMs)
    .map(([pid, parentPid]) => ({ pid: Number(pid), parentPid: Number(parentPid), directory: null }));
}

/** Empty when it failed: the caller then knows nothing, which is always safe. */
function command(file: string, args: string[]): string {
  const { spawnSync } = require("node:child_process") as typeof import("node:child_process");
  const done = spawnSync(file, args, { encoding: "utf8", timeout: 2_000, env: { LC_ALL: "C", TZ: "UTC" } });
  return done.status === 0 ? done.stdout : "";
}
