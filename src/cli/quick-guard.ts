import * as fs from "node:fs";
import * as path from "node:path";
import { ALLOWED, type Answer, answer } from "../guard/answers";
import {
  type Basis,
  BEAT_EVERY_MS,
  type Being,
  callerOf,
  type Mark,
  PASSES,
  type Pass,
  passName,
  REFUSALS,
  type Refusal,
} from "../guard/pass";
import { isHarnessName, type Report, readReport } from "../guard/report";
import { wishOf } from "../guard/tools";
import { tooEarly } from "../guard/words";
import { behind, MOST_WRAPPERS } from "../guard/wrappers";
import type { HarnessName } from "../identity/harness";
import { type Instant, remainingMs } from "../kernel/time";
import { NodeClock } from "../platform/node/clock";
import { bootId, NodeProcesses, namespace, startTimeOf } from "../platform/node/processes";
import { readHookInput } from "./guarding";
import { nodeTerminal } from "./terminal";

/**
 * Whether a check has been answered: it is of a file that its session holds already, or that somebody else holds and that
 * was denied before, as the last check of it found out. A file of its own, because most checks are like that, and every
 * edit waits for them. Whatever is unusual is left to the program.
 */
export function isAnswered(args: readonly string[]): boolean {
  try {
    const call = readCall(args);
    const input = call === null ? null : readHookInput();
    if (call === null || input === null || input.text === null) return false;
    const report = readReport(call.harness, call.event, JSON.parse(input.text));
    if (report?.moment !== "before") return false;
    const asked = whatIsAsked(report);
    if (asked === null) return false;
    return isPassed(asked, report, call) || isRefused(asked, report, call);
  } catch {
    return false;
  }
}

interface Call {
  readonly harness: HarnessName;
  readonly event: string;
  readonly pid: number | null;
  /** How long the harness waits; null where nobody has said so. */
  readonly patienceMs: number | null;
}

/** The command lines that `agent install` writes; null for any other. */
function readCall(args: readonly string[]): Call | null {
  if (args.some((word, i) => i % 2 === 0 && !KNOWN.includes(word))) return null;
  const [harness, event, pid, deadline] = KNOWN.map((name) => valueAfter(args, name));
  if (harness == null || event == null || !isHarnessName(harness)) return null;
  if ([pid, deadline].some((text) => text != null && !/^[1-9]\d{0,9}$/.test(text))) return null;
  const patienceMs = deadline == null ? null : Number(deadline) * 1000;
  return { harness, event, pid: pid == null ? null : Number(pid), patienceMs };
}

const KNOWN = ["--harness", "--event", "--pid", "--deadline"];

function valueAfter(args: readonly string[], name: string): string | null {
  const at = args.indexOf(name);
  return at === -1 ? null : (args[at + 1] ?? null);
}

/** One file that is to be written, by whom, and where its repository keeps what we know of it. */
interface Asked {
  readonly caller: string;
  readonly directory: string;
  readonly control: string;
}

function whatIsAsked(report: Report): Asked | null {
  const wish = wishOf(report);
  if (wish?.kind !== "files" || wish.paths.length !== 1) return null;
  const [named] = wish.paths as [string];
  const caller = callerOf(report, named, process.env);
  if (caller === null) return null;
  const file = path.resolve(report.cwd ?? process.cwd(), named);
  const directory = fs.realpathSync.native(path.dirname(file));
  // A link may lead anywhere by now.
  if (fs.lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true) return null;
  return { caller, directory, control: path.join(commonDirAbove(directory), "cotenant") };
}

function isPassed(asked: Asked, report: Report, { pid }: Call): boolean {
  const pass = left<Pass>(asked, PASSES);
  if (pass === null || !stands(pass, asked, pid)) return false;
  leaveTrace(pass.trace);
  give(answer(report, ALLOWED, process.env));
  return true;
}

/** Says so, in the harness's own form, where the retry is so far off that nobody would wait for it. */
function isRefused(asked: Asked, report: Report, { pid, patienceMs }: Call): boolean {
  const refusal = patienceMs === null ? null : left<Refusal>(asked, REFUSALS);
  if (refusal === null || patienceMs === null || !stands(refusal, asked, pid)) return false;
  const { contention, fact, owner } = refusal;
  const now = present();
  const leftMs = remainingMs(contention.retryAt, now);
  if (contention.retryAt.clockId !== now.clockId || leftMs <= patienceMs || !isAlive(owner)) return false;
  if (fs.readFileSync(fact.file, "utf8") !== fact.text) return false;
  give(answer(report, { isAllowed: false, ...tooEarly(contention, now) }, process.env));
  return true;
}

function give({ stdout, stderr, status }: Answer): void {
  const terminal = nodeTerminal();
  if (stdout !== "") terminal.out(stdout);
  if (stderr !== "") terminal.err(stderr);
  process.exitCode = status;
}

function present(): Instant {
  const clock = new NodeClock();
  return { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs(), clockId: clock.clockId() };
}

/** What an earlier check has left. Looked for first: a file that is not there costs more as an error. */
function left<T extends Basis>({ control, caller }: Asked, folder: string): T | null {
  const place = path.join(control, "guard", folder, passName(caller));
  return fs.existsSync(place) ? (JSON.parse(fs.readFileSync(place, "utf8")) as T) : null;
}

/** Whether all that an answer rests on is as it was. */
function stands(basis: Basis, { caller, directory, control }: Asked, givenPid: number | null): boolean {
  if (basis.caller !== caller || basis.directory !== directory) return false;
  if (!isSameProcess(basis, givenPid) || !basis.settings.every(isAsItWas)) return false;
  if (basis.absent.some((name) => fs.existsSync(name)) || !basis.empty.every(isEmpty)) return false;
  if (Math.abs(Date.now() - fs.statSync(basis.beat).mtimeMs) >= BEAT_EVERY_MS) return false;
  return isWhole(control) && fs.readFileSync(basis.lease.file, "utf8") === basis.lease.text;
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

function isSameProcess({ holder }: Basis, givenPid: number | null): boolean {
  const processes = new NodeProcesses();
  let pid = givenPid ?? process.ppid;
  for (let i = 0; givenPid === null && i < MOST_WRAPPERS; i++) {
    const next = behind(processes.ancestry(pid));
    if (next === null) break;
    pid = next;
  }
  return pid === holder.pid && isAlive(holder);
}

function isAlive({ pid, startTime, bootId: boot, pidNamespace }: Being): boolean {
  if (startTime === "") return false;
  return startTimeOf(pid) === startTime && bootId() === boot && namespace("pid") === pidNamespace;
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
