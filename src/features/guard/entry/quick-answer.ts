import * as fs from "node:fs";
import * as path from "node:path";
import type { Environment } from "../../../identity/repository";
import { type Instant, remainingMs } from "../../../kernel/time";
import { NodeClock } from "../../../platform/node/clock";
import { overwritePlainFile, readPlainFile } from "../../../platform/node/plain-file";
import { bootId, NodeProcesses, namespace, startTimeOf } from "../../../platform/node/processes";
import { ALLOWED, type Answer, answer } from "../answers";
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
} from "../pass";
import type { Report } from "../report";
import { wishOf } from "../tools";
import { tooEarly } from "../words";
import { behind, MOST_WRAPPERS } from "../wrappers";

/** Who asks, and from where. */
export interface Asking {
  readonly env: Environment;
  /** Where whoever asks stands; the event mostly says it itself. */
  cwd(): string;
  readonly parentPid: number;
  /** The harness's own process, where somebody has named it. */
  readonly harnessPid: number | null;
  /** How long the harness waits; null where nobody has said so. */
  readonly patienceMs: number | null;
}

/**
 * The answer to a check of a file that its session holds already, or that somebody else holds and that was denied before, as
 * the last check of it found out. Null for whatever is unusual, which is left to the guard itself.
 */
export function quickAnswer(report: Report, asking: Asking): Answer | null {
  try {
    if (report.moment !== "before") return null;
    const asked = whatIsAsked(report, asking);
    return asked === null ? null : (passed(asked, report, asking) ?? refused(asked, report, asking));
  } catch {
    return null;
  }
}

/** One file that is to be written, by whom, and where its repository keeps what we know of it. */
interface Asked {
  readonly caller: string;
  readonly directory: string;
  readonly control: string;
}

function whatIsAsked(report: Report, { env, cwd }: Asking): Asked | null {
  const wish = wishOf(report);
  if (wish?.kind !== "files" || wish.paths.length !== 1) return null;
  const [named] = wish.paths as [string];
  const caller = callerOf(report, named, env);
  if (caller === null) return null;
  const file = path.resolve(report.cwd ?? cwd(), named);
  const directory = fs.realpathSync.native(path.dirname(file));
  // A link may lead anywhere by now.
  if (fs.lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true) return null;
  return { caller, directory, control: path.join(commonDirAbove(directory), "cotenant") };
}

function passed(asked: Asked, report: Report, asking: Asking): Answer | null {
  const pass = left<Pass>(asked, PASSES);
  if (pass === null || !stands(pass, asked, asking) || !isTrace(pass.trace.file, asked)) return null;
  overwritePlainFile(pass.trace.file, `${Date.now()}\n`, pass.trace.mode & 0o666);
  return answer(report, ALLOWED, asking.env);
}

/** Says so, in the harness's own form, where the retry is so far off that nobody would wait for it. */
function refused(asked: Asked, report: Report, asking: Asking): Answer | null {
  const { patienceMs, env } = asking;
  const refusal = patienceMs === null ? null : left<Refusal>(asked, REFUSALS);
  if (refusal === null || patienceMs === null || !stands(refusal, asked, asking)) return null;
  const { contention, fact, owner } = refusal;
  const now = present();
  const leftMs = remainingMs(contention.retryAt, now);
  if (contention.retryAt.clockId !== now.clockId || leftMs <= patienceMs || !isAlive(owner)) return null;
  if (!isBelow(fact.file, asked.control) || readPlainFile(fact.file) !== fact.text) return null;
  return answer(report, { isAllowed: false, ...tooEarly(contention, now) }, env);
}

function present(): Instant {
  const clock = new NodeClock();
  return { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs(), clockId: clock.clockId() };
}

/** What an earlier check has left. Looked for first: a file that is not there costs more as an error. */
function left<T extends Basis>({ control, caller }: Asked, folder: string): T | null {
  const place = path.join(control, "guard", folder, passName(caller));
  return fs.existsSync(place) ? (JSON.parse(readPlainFile(place)) as T) : null;
}

/** Whether all that an answer rests on is as it was. */
function stands(basis: Basis, { caller, directory, control }: Asked, asking: Asking): boolean {
  if (basis.caller !== caller || basis.directory !== directory) return false;
  if (!isBelow(basis.lease.file, control) || !isBelow(basis.beat, control)) return false;
  if (!isSameProcess(basis, asking) || !basis.settings.every(isAsItWas)) return false;
  if (basis.absent.some((name) => fs.existsSync(name)) || !basis.empty.every(isEmpty)) return false;
  if (Math.abs(Date.now() - fs.statSync(basis.beat).mtimeMs) >= BEAT_EVERY_MS) return false;
  return isWhole(control) && readPlainFile(basis.lease.file) === basis.lease.text;
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
  const named = /^gitdir: (.+?)\r?\n?$/.exec(readPlainFile(place));
  if (named === null) throw new Error("no Git directory");
  const gitDir = path.resolve(path.dirname(place), named[1]!);
  const shared = path.join(gitDir, "commondir");
  return fs.existsSync(shared) ? path.resolve(gitDir, readPlainFile(shared).trim()) : gitDir;
}

function isSameProcess({ holder }: Basis, { harnessPid, parentPid }: Asking): boolean {
  const processes = new NodeProcesses();
  let pid = harnessPid ?? parentPid;
  for (let i = 0; harnessPid === null && i < MOST_WRAPPERS; i++) {
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
  const text = readPlainFile(path.join(control, "index/applied"));
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

/** Whoever may write into the Git directory can write a pass, too: it leads to nothing outside of it. */
function isBelow(file: string, control: string): boolean {
  return path.normalize(file) === file && file.startsWith(`${control}${path.sep}`);
}

/** As `traceFile` names them. */
function isTrace(file: string, { control }: Asked): boolean {
  return (
    path.dirname(file) === path.join(control, "guard/edits") && /^[0-9a-f]{32}$/.test(path.basename(file))
  );
}
