import type { Descriptor, Platform } from "../platform/platform";
import { acknowledgedDamage } from "./damage";
import { decodeLine, type Line } from "./envelope";
import { type Layout, PRIVATE } from "./layout";
import { type Damage, eachLine, Replay, replayLog } from "./replay";
import { refuseNewer, refuseNewerText } from "./schema";
import { archivedSegments } from "./segments";
import { SyncMark } from "./sync-mark";

/** An archived segment, read line by line. */
interface SegmentSurvey {
  readonly name: string;
  readonly segment: number;
  readonly isPacked: boolean;
  readonly lines: number;
  /** The first thing wrong in it: a line, or how it follows the segment before. */
  readonly damage: string | null;
}

/** Everything the log and its archive can tell about themselves. Nothing is written, no lock is taken. */
export interface LogSurvey {
  readonly exists: boolean;
  readonly bytes: number;
  /** The current segment, up to the first damage. */
  readonly replay: Replay;
  /** What writers stop at. */
  readonly damage: Damage | null;
  /** An unacknowledged end: a writer at work, or one that died. */
  readonly torn: Damage | null;
  readonly archived: readonly SegmentSurvey[];
  /** Numbers of segments that are in neither place. */
  readonly missing: readonly number[];
  /** When the newest line was made, by the clock of its writer; null without lines. */
  readonly newestMs: number | null;
  /** How often a line is older than the one before it. */
  readonly stepsBack: number;
}

/** Where a segment ended, for the one after it. */
interface End {
  readonly segment: number;
  readonly sequence: number;
  /** Null when it cannot be told: the segment is damaged, or was set aside. */
  readonly sum: string | null;
}

export async function surveyLog(platform: Platform, layout: Layout): Promise<LogSurvey> {
  const { files, digest } = platform;
  // First: what is synced while we read must not look like lines that are missing.
  const synced = await new SyncMark(files, digest, layout, PRIVATE).reload();
  // Before the archive is listed: what is rotated out meanwhile is still at hand, and is not looked at twice.
  const fd = (await files.stat(layout.log)) === null ? null : await files.open(layout.log, "read");
  try {
    return await survey(platform, layout, fd, synced);
  } finally {
    if (fd !== null) await files.close(fd);
  }
}

async function survey(
  platform: Platform,
  layout: Layout,
  fd: Descriptor | null,
  synced: number,
): Promise<LogSurvey> {
  const { files, digest } = platform;
  const bytes = fd === null ? 0 : (await files.fstat(fd)).size;
  const replay = new Replay();
  if (fd !== null) await replayLog(files, digest, fd, bytes, replay);
  const current = replay.head.segment;
  const { archived, missing, end } = await surveyArchive(platform, layout, current);
  const wasThere = archived.length > 0 || synced > 0 || (await files.stat(layout.applied)) !== null;
  const times = fd === null ? { newestMs: null, stepsBack: 0 } : await timesOf(platform, fd, bytes);
  const found = fd === null ? (wasThere ? GONE : null) : acknowledgedDamage(replay, synced);
  const misplaced = fd === null || found !== null ? null : await misplacedStart(platform, fd, bytes, end);
  return {
    exists: fd !== null,
    bytes,
    replay,
    damage: found ?? misplaced,
    torn: found === null ? replay.damage : null,
    archived,
    missing,
    ...times,
  };
}

const GONE: Damage = {
  offset: 0,
  sequence: 1,
  why: "the log is gone, but there was one",
  inCheckpoint: true,
  isWholeLine: false,
};

async function surveyArchive(
  platform: Platform,
  layout: Layout,
  current: number,
): Promise<{ archived: SegmentSurvey[]; missing: number[]; end: End | null }> {
  const archived: SegmentSurvey[] = [];
  const missing: number[] = [];
  let end: End | null = null;
  let expected = 1;
  for (const name of distinct(await archivedSegments(platform.files, layout))) {
    const segment = Number(/\d{6}/.exec(name)![0]);
    // Linked there by a rotation that died, or that went on while we looked: it is the log itself.
    if (current > 0 && segment >= current) continue;
    for (; expected < segment; expected++) missing.push(expected);
    expected = segment + 1;
    // What `recover` has set aside is known to be damaged; what follows it says so.
    const isSetAside = name.includes(".damaged-");
    const seen: Seen = isSetAside
      ? { survey: null, end: { segment, sequence: 0, sum: null } }
      : await surveySegment(platform, layout, name, end);
    if (seen.survey !== null) archived.push(seen.survey);
    end = seen.end;
  }
  for (; expected < current; expected++) missing.push(expected);
  return { archived, missing, end };
}

/** A segment may be there twice, plain and packed. */
function distinct(names: readonly string[]): string[] {
  return names.filter((name) => !(name.endsWith(".gz") && names.includes(name.slice(0, -".gz".length))));
}

interface Seen {
  readonly survey: SegmentSurvey | null;
  readonly end: End;
}

async function surveySegment(
  platform: Platform,
  layout: Layout,
  name: string,
  before: End | null,
): Promise<Seen> {
  const segment = Number(/\d{6}/.exec(name)![0]);
  const content = await contentOf(platform, `${layout.archive}/${name}`);
  const replay = new Replay();
  let damage = content === null ? "it cannot be unpacked" : null;
  let number = 0;
  for (const text of content === null ? [] : linesOf(content)) {
    number++;
    const line = text === null ? null : wholeLine(platform, text);
    const why: string | null =
      line === null
        ? "is torn or altered"
        : (replay.take(line, replay.head.offset + 1) ?? (number === 1 ? misfit(line, before) : null));
    if (why === null) continue;
    damage = `line ${number}: ${line === null ? "it " : ""}${why}`;
    break;
  }
  if (damage === null && !replay.isGrounded) damage = "it does not begin with a whole checkpoint";
  const { sequence, sum } = replay.head;
  const isPacked = name.endsWith(".gz");
  return {
    survey: { name, segment, isPacked, lines: replay.counted, damage },
    end: { segment, sequence, sum: damage === null ? sum : null },
  };
}

function wholeLine(platform: Platform, text: string): Line | null {
  const line = decodeLine(platform.digest, text);
  if (line === null) refuseNewerText(text, "the archive");
  else refuseNewer(line.schemaVersion, "the archive");
  return line;
}

/** Why the line cannot be the first after that segment. Where history is missing, or was mended, all is possible. */
function misfit(line: Line, before: End | null): string | null {
  if (before === null || before.sum === null || line.payload["recovered"] !== undefined) return null;
  if (line.payload["segment"] !== before.segment + 1) return null;
  if (line.prev !== before.sum) return "it does not follow the segment before it";
  return line.sequence === before.sequence + 1 ? null : "a sequence number is missing before it";
}

/** Whole by itself, but not what comes after the archive. */
async function misplacedStart(
  platform: Platform,
  fd: Descriptor,
  bytes: number,
  before: End | null,
): Promise<Damage | null> {
  let why: string | null = null;
  await eachLine(platform.files, fd, 0, bytes, (text, offset) => {
    if (offset > 0) return;
    const line = decodeLine(platform.digest, text);
    why = line === null ? null : misfit(line, before);
  });
  const sequence = (before?.sequence ?? 0) + 1;
  return why === null ? null : { offset: 0, sequence, why, inCheckpoint: true, isWholeLine: true };
}

async function timesOf(
  { files }: Platform,
  fd: Descriptor,
  bytes: number,
): Promise<{ newestMs: number | null; stepsBack: number }> {
  let newestMs: number | null = null;
  let stepsBack = 0;
  await eachLine(files, fd, 0, bytes, (text) => {
    const atMs = Date.parse(/"timestamp":"([^"]{1,40})"/.exec(text)?.[1] ?? "");
    if (Number.isNaN(atMs)) return;
    if (newestMs !== null && atMs < newestMs) stepsBack++;
    newestMs = atMs;
  });
  return { newestMs, stepsBack };
}

/** Null when it cannot be unpacked. It may have been packed since its name was read. */
async function contentOf({ files, compression }: Platform, path: string): Promise<Uint8Array | null> {
  const plain = path.endsWith(".gz") ? null : await files.readFile(path);
  if (plain !== null) return plain;
  const packed = await files.readFile(path.endsWith(".gz") ? path : `${path}.gz`);
  try {
    return packed === null ? new Uint8Array() : await compression.unpack(packed);
  } catch {
    return null;
  }
}

/** Null for an end without a newline: a closed segment has none. */
function* linesOf(bytes: Uint8Array): Generator<string | null> {
  const decoder = new TextDecoder();
  let start = 0;
  for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
    yield decoder.decode(bytes.subarray(start, end));
    start = end + 1;
  }
  if (start < bytes.length) yield null;
}
