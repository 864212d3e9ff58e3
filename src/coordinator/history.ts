import { fileFailure } from "../errors/cotenant-error";
import type { Descriptor, Platform } from "../platform/platform";
import { decodeLine, type Line } from "../store/envelope";
import type { Layout } from "../store/layout";
import { eachLine } from "../store/replay";
import { archivedSegments, readSegment } from "../store/segments";
import type { HistoryFilter, LoggedEvent, Subscription } from "./contract";

/** Every whole line of every segment, oldest first. Repeated views at a segment's start are left out. */
export async function* readHistory(
  platform: Platform,
  layout: Layout,
  filter: HistoryFilter,
): AsyncGenerator<LoggedEvent> {
  try {
    for await (const line of linesAfter(platform, layout, 0)) if (matches(line, filter)) yield toEvent(line);
  } catch (error) {
    throw fileFailure(error, "reading the log", layout.log);
  }
}

/**
 * Everything logged after that line. The log is opened before the archive is listed: whatever is rotated out
 * of it meanwhile is still at hand, and whatever was before is in the archive.
 */
async function* linesAfter(platform: Platform, layout: Layout, sequence: number): AsyncGenerator<Line> {
  const { files } = platform;
  let seen = sequence;
  const fresh = (lines: readonly Line[]) =>
    lines.filter((line) => {
      if (line.sequence <= seen) return false;
      seen = line.sequence;
      return line.type !== "log.checkpoint";
    });
  const log = (await files.stat(layout.log)) === null ? null : await files.open(layout.log, "read");
  try {
    for (const name of await archivedSegments(files, layout)) {
      const lines: Line[] = [];
      await readSegment(platform, `${layout.archive}/${name}`, (line) => lines.push(line));
      yield* fresh(lines);
    }
    if (log !== null) yield* fresh((await linesFrom(platform, log, 0)).lines);
  } finally {
    if (log !== null) await files.close(log);
  }
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

/** Follows the log from its present end, through rotations. */
export async function watchLog(
  platform: Platform,
  layout: Layout,
  listener: (event: LoggedEvent) => void,
): Promise<Subscription> {
  const { timers } = platform;
  const follower = new Follower(platform, layout);
  let isOpen = true;
  let wake = () => {};
  try {
    await follower.look();
  } catch (error) {
    throw fileFailure(error, "reading the log", layout.log);
  }
  const watch = timers.watchDirectory(layout.root, () => wake());
  const follow = async () => {
    while (isOpen) {
      // What one look does not see, the next one does.
      for (const line of await follower.look().catch(() => [])) if (isOpen) tell(listener, line);
      if (!isOpen) return;
      const sleep = timers.sleep(LOOK_EVERY_MS);
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

  constructor(platform: Platform, layout: Layout) {
    this.#platform = platform;
    this.#layout = layout;
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
      if (!isSame && inode !== 0)
        for await (const line of linesAfter(this.#platform, this.#layout, sequence)) missed.push(line);
      const last = Math.max(sequence, missed.at(-1)?.sequence ?? 0);
      const fresh = lines.filter((line) => line.sequence > last && line.type !== "log.checkpoint");
      const highest = Math.max(last, lines.at(-1)?.sequence ?? 0);
      this.#position = { inode: now.inode, offset: end, sequence: highest };
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
  const { sequence, type, timestamp, actor, payload } = line;
  return { sequence, type, timestamp, actor, payload };
}
