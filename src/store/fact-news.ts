import { type FactName, type FactRecord, factKind } from "../kernel/facts";
import { bootOf } from "../kernel/time";
import type { Platform } from "../platform/platform";
import type { Layout } from "./layout";
import { type Head, Replay, replayLog } from "./replay";

/** A place in the log, and what its file was, for whoever keeps something that was read up to there. */
interface Position {
  readonly boot: string;
  readonly inode: number;
  /** When the log ended just there, at the time; else null. */
  readonly mtime_ms: number | null;
  readonly head: Head;
}

export interface News {
  readonly facts: ReadonlyMap<FactName, FactRecord | null>;
  readonly position: string;
  readonly lines: number;
}

/** Null where there is no log to have a position in. */
export async function factPosition(
  { files, clock }: Platform,
  layout: Layout,
  head: Head,
): Promise<string | null> {
  const stat = await files.stat(layout.log);
  if (stat === null || head.offset === 0) return null;
  return write({
    boot: bootOf(clock.clockId()),
    inode: stat.inode,
    mtime_ms: stat.size === head.offset ? stat.mtimeMs : null,
    head,
  });
}

/**
 * What the log says of facts of a kind after a position. Reads nothing before it: the chain of sums shows whether what
 * comes now follows what was read then. Null when it does not, or when nobody can tell: another segment, another
 * boot, a log that was cut off, mended or touched.
 */
export async function factNews(
  platform: Platform,
  layout: Layout,
  kind: string,
  text: string,
): Promise<News | null> {
  const { files, digest, clock } = platform;
  const position = JSON.parse(text) as Position;
  const { head } = position;
  if (position.boot !== bootOf(clock.clockId()) || (await files.stat(layout.log)) === null) return null;
  const fd = await files.open(layout.log, "read");
  try {
    const { inode, size, mtimeMs } = await files.fstat(fd);
    if (inode !== position.inode || size < head.offset) return null;
    if (size === head.offset)
      return mtimeMs === position.mtime_ms ? { facts: new Map(), position: text, lines: 0 } : null;
    const replay = await replayLog(files, digest, fd, size, new Replay(head));
    // A torn end is a writer at work, or one that died: it says nothing yet.
    if (replay.damage?.isWholeLine === true) return null;
    const facts = [...replay.touchedFacts].filter(([name]) => factKind(name) === kind);
    const mtime_ms = size === replay.head.offset ? mtimeMs : null;
    return {
      facts: new Map(facts),
      position: write({ ...position, mtime_ms, head: replay.head }),
      lines: replay.counted,
    };
  } finally {
    await files.close(fd);
  }
}

function write(position: Position): string {
  return JSON.stringify(position);
}
