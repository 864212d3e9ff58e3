import { fileFailure } from "../errors/cotenant-error";
import type { Descriptor, Platform } from "../platform/platform";
import { decodeLine, type Line } from "../store/envelope";
import type { Layout } from "../store/layout";
import { eachLine } from "../store/replay";
import type { HistoryFilter, LoggedEvent, Subscription } from "./contract";
import { type Beginning, FROM_THE_FIRST, openSegments, type Segment } from "./log-lines";

/** Every whole line of every segment, oldest first. Repeated views at a segment's start are left out unless wanted. */
export async function* readHistory(
  platform: Platform,
  layout: Layout,
  filter: HistoryFilter,
): AsyncGenerator<LoggedEvent> {
  const found =
    filter.newest === undefined
      ? linesAfter(platform, layout, filter)
      : newestLines(platform, layout, filter);
  try {
    for await (const batch of found)
      for (const line of batch) if (filter.newest !== undefined || matches(line, filter)) yield toEvent(line);
  } catch (error) {
    throw fileFailure(error, "reading the log", layout.log);
  }
}

type Batches = AsyncGenerator<readonly Line[]>;

function beginningOf({ from }: HistoryFilter): Beginning {
  if (from === undefined) return FROM_THE_FIRST;
  return "sequence" in from
    ? { after: Math.max(0, from.sequence - 1), sinceMs: null }
    : { after: 0, sinceMs: from.timeMs };
}

/** Everything logged from there on. */
async function* linesAfter(platform: Platform, layout: Layout, filter: HistoryFilter): Batches {
  const beginning = beginningOf(filter);
  let seen = filter.ground === true ? 0 : beginning.after;
  const isFresh = (line: Line) => {
    if (line.sequence <= seen) return false;
    seen = line.sequence;
    return isWanted(line, filter);
  };
  yield* inSegments(platform, layout, beginning, async function* (segments) {
    for (const segment of segments) {
      for await (const batch of segment.batches()) yield batch.filter(isFresh);
      report(segment, filter);
    }
  });
}

/** The last so many that match, oldest first, read from the newest segment backwards until there are enough. */
async function* newestLines(platform: Platform, layout: Layout, filter: HistoryFilter): Batches {
  const most = filter.newest ?? 0;
  const beginning = beginningOf(filter);
  yield* inSegments(platform, layout, beginning, async function* (segments) {
    let found: Line[] = [];
    let lowest = Number.POSITIVE_INFINITY;
    for (const segment of [...segments].reverse()) {
      const here: Line[] = [];
      let first = lowest;
      for await (const batch of segment.batches()) {
        first = Math.min(first, batch[0]?.sequence ?? first);
        // A segment may be there twice, plain and packed.
        for (const line of batch)
          if (
            line.sequence > beginning.after &&
            line.sequence < lowest &&
            isWanted(line, filter) &&
            matches(line, filter)
          )
            here.push(line);
        if (here.length > 2 * most + 1_000) here.splice(0, here.length - most);
      }
      report(segment, filter);
      lowest = first;
      found = [...here, ...found];
      if (found.length >= most) break;
    }
    yield most === 0 ? [] : found.slice(-most);
  });
}

/** A segment that `recover` replaced is known to be damaged; of any other somebody should hear. */
function report({ path, isDamaged }: Segment, { onUnreadable }: HistoryFilter): void {
  if (isDamaged && !path.includes(".damaged-")) onUnreadable?.(path);
}

/** A generator over segments that stay open until it ends. */
async function* inSegments(
  platform: Platform,
  layout: Layout,
  beginning: Beginning,
  read: (segments: readonly Segment[]) => Batches,
): Batches {
  const opened = await openSegments(platform, layout, beginning);
  try {
    yield* read(opened.segments);
  } finally {
    await opened.close();
  }
}

function isWanted(line: Line, { ground, from }: HistoryFilter): boolean {
  if (ground === true) return true;
  if (line.type === "log.checkpoint") return false;
  return from === undefined || "sequence" in from || Date.parse(line.timestamp) >= from.timeMs;
}

async function linesFrom(
  platform: Platform,
  fd: Descriptor,
  from: number,
): Promise<{ lines: Line[]; end: number; inode: number }> {
  const { files, digest } = platform;
  const lines: Line[] = [];
  const { size, inode } = await files.fstat(fd);
  const end = await eachLine(files, fd, Math.min(from, size), size, (text) => {
    const line = decodeLine(digest, text);
    if (line !== null) lines.push(line);
  });
  return { lines, end, inode };
}

const LOOK_EVERY_MS = 500;
/** The same with a watch, which tells of every change but of another directory in its place. */
const PATROL_EVERY_MS = 60_000;

/** Follows the log from its present end, or from the line after `after`, through rotations. */
export async function watchLog(
  platform: Platform,
  layout: Layout,
  listener: (event: LoggedEvent) => void,
  after: number | null = null,
): Promise<Subscription> {
  const { timers } = platform;
  const follower = new Follower(platform, layout, after);
  let isOpen = true;
  let wake = () => {};
  try {
    if (after === null) await follower.look();
  } catch (error) {
    throw fileFailure(error, "reading the log", layout.log);
  }
  let hasNews = false;
  const watch = timers.watchDirectory(layout.root, () => {
    hasNews = true;
    wake();
  });
  const follow = async () => {
    while (isOpen) {
      hasNews = false;
      // What one look does not see, the next one does.
      for (const line of await follower.look().catch(() => [])) if (isOpen) tell(listener, line);
      if (!isOpen) return;
      // Told of something during the look: it may have come too late for it.
      if (hasNews) continue;
      const sleep = timers.sleep(watch.isOn ? PATROL_EVERY_MS : LOOK_EVERY_MS);
      wake = sleep.wake;
      await sleep.done;
    }
  };
  void follow();
  return {
    close: () => {
      isOpen = false;
      watch.close();
      wake();
    },
  };
}

/** Remembers how far it has read. */
class Follower {
  readonly #platform: Platform;
  readonly #layout: Layout;
  #position = { inode: 0, offset: 0, sequence: 0 };
  /** Whether there may be lines after its position in another file than the one it knows. */
  #hasPosition: boolean;

  constructor(platform: Platform, layout: Layout, after: number | null) {
    this.#platform = platform;
    this.#layout = layout;
    this.#hasPosition = after !== null;
    if (after !== null) this.#position.sequence = after;
  }

  /** What was logged since the last look. */
  async look(): Promise<Line[]> {
    const { files } = this.#platform;
    if ((await files.stat(this.#layout.log)) === null) return [];
    const fd = await files.open(this.#layout.log, "read");
    try {
      const { inode, sequence, offset } = this.#position;
      const now = await files.fstat(fd);
      const isSame = now.inode === inode && now.size >= offset;
      const { lines, end } = await linesFrom(this.#platform, fd, isSame ? offset : 0);
      const missed: Line[] = [];
      // Another segment: what was added to the one before since the last look is in the archive by now.
      if (!isSame && this.#hasPosition) {
        const filter = { from: { sequence: sequence + 1 } };
        for await (const batch of linesAfter(this.#platform, this.#layout, filter)) missed.push(...batch);
      }
      const last = Math.max(sequence, missed.at(-1)?.sequence ?? 0);
      const fresh = lines.filter((line) => line.sequence > last && line.type !== "log.checkpoint");
      const highest = Math.max(last, lines.at(-1)?.sequence ?? 0);
      this.#position = { inode: now.inode, offset: end, sequence: highest };
      this.#hasPosition = true;
      return [...missed, ...fresh];
    } finally {
      await files.close(fd);
    }
  }
}

/** A listener's own mistake is not the others' loss. */
function tell(listener: (event: LoggedEvent) => void, line: Line): void {
  try {
    listener(toEvent(line));
  } catch {
    // It has heard of the event, and nobody here can help it.
  }
}

function matches(line: Line, filter: HistoryFilter): boolean {
  if (filter.where !== undefined && !filter.where(toEvent(line))) return false;
  if (filter.agentId !== undefined && line.actor.agentId !== filter.agentId) return false;
  if (filter.key === undefined && filter.leaseId === undefined) return true;
  const about = [line.payload["leases"], line.payload["ended"]].flatMap((l) =>
    Array.isArray(l) ? l : [],
  ) as {
    key?: unknown;
    lease_id?: unknown;
  }[];
  return about.some(
    (lease) =>
      (filter.key === undefined || lease.key === filter.key) &&
      (filter.leaseId === undefined || lease.lease_id === filter.leaseId),
  );
}

function toEvent(line: Line): LoggedEvent {
  const { schemaVersion, sequence, type, timestamp, actor, payload } = line;
  return { schemaVersion, sequence, type, timestamp, actor, payload };
}
