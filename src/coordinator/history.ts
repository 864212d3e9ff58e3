import type { Platform } from "../platform/platform";
import { decodeLine, type Line } from "../store/envelope";
import type { Layout } from "../store/layout";
import { eachLine } from "../store/replay";
import type { HistoryFilter, LoggedEvent, Subscription } from "./contract";

const SEGMENT = /^claims-\d{6}\.jsonl(\.gz)?$/;

/** Every whole line of every segment, oldest first. Repeated views at a segment's start are left out. */
export async function* readHistory(
  platform: Platform,
  layout: Layout,
  filter: HistoryFilter,
): AsyncGenerator<LoggedEvent> {
  const archived = ((await platform.files.readDirectory(layout.archive)) ?? [])
    .filter((name) => SEGMENT.test(name))
    .sort();
  let seen = 0;
  for (const path of [...archived.map((name) => `${layout.archive}/${name}`), layout.log]) {
    for (const line of await linesOf(platform, path)) {
      if (line.sequence <= seen) continue;
      seen = line.sequence;
      if (line.type !== "log.checkpoint" && matches(line, filter)) yield toEvent(line);
    }
  }
}

async function linesOf(platform: Platform, path: string): Promise<Line[]> {
  const { files, digest, compression } = platform;
  const lines: Line[] = [];
  const take = (text: string) => {
    const line = decodeLine(digest, text);
    if (line !== null) lines.push(line);
  };
  if (path.endsWith(".gz")) {
    const packed = await files.readFile(path);
    if (packed !== null)
      for (const text of new TextDecoder().decode(await compression.unpack(packed)).split("\n")) take(text);
    return lines;
  }
  if ((await files.stat(path)) === null) return lines;
  const fd = await files.open(path, "read");
  try {
    await eachLine(files, fd, 0, (await files.fstat(fd)).size, take);
  } finally {
    await files.close(fd);
  }
  return lines;
}

/** Follows the log from its present end, through rotations. */
export async function watchLog(
  platform: Platform,
  layout: Layout,
  listener: (event: LoggedEvent) => void,
): Promise<Subscription> {
  const { files, timers } = platform;
  let open = true;
  let wake = () => {};
  let position = { inode: 0, offset: 0, sequence: 0 };
  const look = async (announce: boolean) => {
    if ((await files.stat(layout.log)) === null) return;
    const fd = await files.open(layout.log, "read");
    try {
      const stat = await files.fstat(fd);
      const from = stat.inode === position.inode && stat.size >= position.offset ? position.offset : 0;
      let { sequence } = position;
      const end = await eachLine(files, fd, from, stat.size, (text) => {
        const line = decodeLine(platform.digest, text);
        if (line === null || line.sequence <= sequence) return;
        sequence = line.sequence;
        if (announce && line.type !== "log.checkpoint") listener(toEvent(line));
      });
      position = { inode: stat.inode, offset: end, sequence };
    } finally {
      await files.close(fd);
    }
  };
  await look(false);
  const watch = timers.watchDirectory(layout.root, () => wake());
  const follow = async () => {
    while (open) {
      await look(true);
      const sleep = timers.sleep(500);
      wake = sleep.wake;
      await sleep.done;
    }
  };
  void follow();
  return {
    close: () => {
      open = false;
      watch.close();
      wake();
    },
  };
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
