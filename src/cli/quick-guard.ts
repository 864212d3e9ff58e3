import * as fs from "node:fs";
import * as path from "node:path";
import { BEAT_EVERY_MS, callerOf, type Mark, PASSES, type Pass, passName } from "../guard/pass";
import { isHarnessName, type Report, readReport } from "../guard/report";
import { wishOf } from "../guard/tools";
import { behind, MOST_WRAPPERS } from "../guard/wrappers";
import { bootId, NodeProcesses, namespace, startTimeOf } from "../platform/node/processes";
import { readHookInput } from "./guarding";

/**
 * Whether a check is of a file that its session holds already, as the last check of it found out. A file of its own,
 * because most checks are like that, and every edit waits for them. Whatever is unusual is left to the program.
 */
export function isHeldAlready(args: readonly string[]): boolean {
  try {
    const call = readCall(args);
    const input = call === null ? null : readHookInput();
    if (call === null || input === null || input.text === null) return false;
    const report = readReport(call.harness, call.event, JSON.parse(input.text));
    if (report?.moment !== "before") return false;
    return isPassed(report, call.pid);
  } catch {
    return false;
  }
}

/** The command lines that `agent install` writes; null for any other. */
function readCall(args: readonly string[]) {
  if (args.some((word, i) => i % 2 === 0 && !KNOWN.includes(word))) return null;
  const [harness, event, pid] = ["--harness", "--event", "--pid"].map((name) => valueAfter(args, name));
  if (harness == null || event == null || !isHarnessName(harness)) return null;
  if (pid != null && !/^[1-9]\d{0,9}$/.test(pid)) return null;
  return { harness, event, pid: pid == null ? null : Number(pid) };
}

const KNOWN = ["--harness", "--event", "--pid", "--deadline"];

function valueAfter(args: readonly string[], name: string): string | null {
  const at = args.indexOf(name);
  return at === -1 ? null : (args[at + 1] ?? null);
}

function isPassed(report: Report, givenPid: number | null): boolean {
  const wish = wishOf(report);
  if (wish?.kind !== "files" || wish.paths.length !== 1) return false;
  const [named] = wish.paths as [string];
  const caller = callerOf(report, named, process.env);
  if (caller === null) return false;
  const file = path.resolve(report.cwd ?? process.cwd(), named);
  const directory = fs.realpathSync.native(path.dirname(file));
  // A link may lead anywhere by now.
  if (fs.lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true) return false;
  const control = path.join(commonDirAbove(directory), "cotenant");
  const place = path.join(control, "guard", PASSES, passName(caller));
  // Looked for first: a file that is not there costs more as an error.
  if (!fs.existsSync(place)) return false;
  const pass = JSON.parse(fs.readFileSync(place, "utf8")) as Pass;
  if (pass.caller !== caller || pass.directory !== directory) return false;
  if (!isSameProcess(pass, givenPid) || !pass.settings.every(isAsItWas)) return false;
  if (pass.absent.some((name) => fs.existsSync(name)) || !pass.empty.every(isEmpty)) return false;
  if (Math.abs(Date.now() - fs.statSync(pass.beat).mtimeMs) >= BEAT_EVERY_MS) return false;
  if (!isWhole(control) || fs.readFileSync(pass.lease.file, "utf8") !== pass.lease.text) return false;
  leaveTrace(pass.trace);
  return true;
}

/** Where the repository around a directory keeps what its worktrees share. */
function commonDirAbove(directory: string): string {
  for (let at = directory; ; at = path.dirname(at)) {
    const place = path.join(at, ".git");
    const stat = fs.statSync(place, { throwIfNoEntry: false });
    if (stat?.isDirectory() === true) return place;
    if (stat !== undefined) return namedIn(place);
    if (at === path.dirname(at)) throw new Error("no repository");
  }
}

/** A linked worktree has a file that names its Git directory, in which another names the one that all share. */
function namedIn(place: string): string {
  const named = /^gitdir: (.+?)\r?\n?$/.exec(fs.readFileSync(place, "utf8"));
  if (named === null) throw new Error("no Git directory");
  const gitDir = path.resolve(path.dirname(place), named[1]!);
  const shared = path.join(gitDir, "commondir");
  return fs.existsSync(shared) ? path.resolve(gitDir, fs.readFileSync(shared, "utf8").trim()) : gitDir;
}

function isSameProcess({ holder }: Pass, givenPid: number | null): boolean {
  const processes = new NodeProcesses();
  let pid = givenPid ?? process.ppid;
  for (let i = 0; givenPid === null && i < MOST_WRAPPERS; i++) {
    const next = behind(processes.ancestry(pid));
    if (next === null) break;
    pid = next;
  }
  if (pid !== holder.pid || holder.startTime === "") return false;
  return (
    startTimeOf(pid) === holder.startTime &&
    bootId() === holder.bootId &&
    namespace("pid") === holder.pidNamespace
  );
}

function isAsItWas({ file, size, mtimeMs }: Mark): boolean {
  const stat = fs.statSync(file, { throwIfNoEntry: false });
  return (stat?.size ?? null) === size && (stat?.mtimeMs ?? null) === mtimeMs;
}

function isEmpty(directory: string): boolean {
  return !fs.existsSync(directory) || fs.readdirSync(directory).length === 0;
}

/** The index knows the log to its end: what it says of a lease is what the log says. */
function isWhole(control: string): boolean {
  const text = fs.readFileSync(path.join(control, "index/applied"), "utf8");
  const { value } = JSON.parse(text) as { value: Record<string, unknown> };
  const log = fs.statSync(path.join(control, "claims.jsonl"));
  return (
    value["offset"] === log.size &&
    value["size"] === log.size &&
    value["inode"] === log.ino &&
    value["mtime_ms"] === log.mtimeMs &&
    value["boot_id"] === bootId()
  );
}

function leaveTrace({ file, mode }: Pass["trace"]): void {
  const fd = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_CREAT, mode);
  try {
    fs.writeSync(fd, `${Date.now()}\n`, 0);
  } finally {
    fs.closeSync(fd);
  }
}
