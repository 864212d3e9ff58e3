import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Coordinator, LoggedEvent } from "../../src/coordinator/contract";
import { Feed } from "../../src/daemon/feed";
import { LogFollower } from "../../src/daemon/log-follower";
import { nodePlatform } from "../../src/platform/node/node";
import { openParty, type Party } from "../store/stage";
import { until } from "../support/program";
import { StageDaemon } from "./stage";

const platform = nodePlatform();
let daemon: StageDaemon;
let writer: Party;
let open: LogFollower[] = [];

beforeEach(async () => {
  daemon = new StageDaemon(platform);
  writer = openParty(platform, "agent:w", { control: daemon.control });
  await writer.store.prepare();
});
afterEach(async () => {
  for (const follower of open) follower.close();
  open = [];
  await daemon.close();
});

interface Followed {
  readonly follower: LogFollower;
  readonly heard: LoggedEvent[];
  /** How often it has begun to read the log itself. */
  readonly reads: () => number;
}

function follow(
  after = 0,
  from: () => StageDaemon | null = () => daemon,
  more: { readonly patienceMs?: number } = {},
): Followed {
  const { coordinator } = openParty(platform, "agent:f", { control: daemon.control });
  const heard: LoggedEvent[] = [];
  let reads = 0;
  const direct: Pick<Coordinator, "watch"> = {
    watch: (listener, since) => {
      reads++;
      return coordinator.watch(listener, since);
    },
  };
  const log = writer.store.layout.log;
  const parts = { platform, direct, log, find: () => from()?.record ?? null, ...more };
  const follower = new LogFollower(parts, (event) => heard.push(event), after);
  follower.start();
  open.push(follower);
  return { follower, heard, reads: () => reads };
}

let made = 0;
async function write(times: number): Promise<void> {
  for (let n = 0; n < times; n++) await writer.acquire(`file:f-${made++}`);
}

async function logged(after = 0): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for await (const event of writer.coordinator.history({ from: { sequence: after + 1 } })) events.push(event);
  return events;
}

const arrived = (...all: Followed[]) =>
  until("all have heard everything", async () => {
    const last = (await logged()).at(-1)!.sequence;
    return all.every(({ heard }) => heard.at(-1)?.sequence === last);
  });

describe("a follower of the log", () => {
  it("is told by the daemon just what the log says, and reads nothing itself", async () => {
    await write(3);
    const followed = follow();
    await until("the daemon tells", () => followed.follower.source === "daemon");
    await write(5);
    await arrived(followed);
    expect(followed.heard).toEqual(await logged());
    expect(followed.reads()).toBe(0);
  });

  it("begins at its own position", async () => {
    await write(4);
    const [, second] = await logged();
    const followed = follow(second!.sequence);
    await write(1);
    await arrived(followed);
    expect(followed.heard).toEqual(await logged(second!.sequence));
  });

  it("goes on from the files when the daemon leaves: nothing twice, nothing missed, in order", async () => {
    const followed = follow();
    await until("the daemon tells", () => followed.follower.source === "daemon");
    await write(5);
    await arrived(followed);
    const writing = write(20);
    await daemon.close();
    await writing;
    await write(3);
    await arrived(followed);
    expect(followed.follower.source).toBe("files");
    expect(followed.heard).toEqual(await logged());
  });

  it("leaves a daemon that is there and says nothing", async () => {
    const mute = { watch: async () => ({ close: () => {} }), history: async function* () {} };
    const quiet = new StageDaemon(platform, { feed: new Feed(mute as unknown as Coordinator) });
    const followed = follow(0, () => quiet);
    await until("the daemon has promised to tell", () => followed.follower.source === "daemon");
    await write(3);
    await arrived(followed);
    expect(followed.follower.source).toBe("files");
    expect(followed.heard).toEqual(await logged());
    await quiet.close();
  });

  it("leaves a daemon that has told something and then falls silent, though nothing more is ever logged", async () => {
    let isSilent = false;
    const { coordinator } = openParty(platform, "agent:d", { control: daemon.control });
    const falling = {
      watch: (listener: (event: LoggedEvent) => void, after?: number) =>
        coordinator.watch((event) => (isSilent ? undefined : listener(event)), after),
      history: (...filter: Parameters<Coordinator["history"]>) => coordinator.history(...filter),
    };
    const quiet = new StageDaemon(platform, { feed: new Feed(falling as Coordinator) });
    const followed = follow(0, () => quiet);
    await until("the daemon tells", () => followed.follower.source === "daemon");
    await write(1);
    await until("it is told", () => followed.heard.length === 1);
    isSilent = true;
    await write(1);
    await arrived(followed);
    expect(followed.heard).toEqual(await logged());
    await quiet.close();
  });

  it("finds a daemon that comes later, without telling anything twice", async () => {
    let later: StageDaemon | null = null;
    const followed = follow(0, () => later);
    await write(3);
    await arrived(followed);
    expect(followed.follower.source).toBe("files");
    later = daemon;
    await until("the daemon tells", () => followed.follower.source === "daemon");
    await write(3);
    await arrived(followed);
    expect(followed.heard).toEqual(await logged());
  });

  it("is one of fifty, for whom the log is read once", async () => {
    await write(3);
    let histories = 0;
    const counted = new Proxy(daemon.engine.coordinator, {
      get: (target, name) => {
        if (name === "history") histories++;
        const value = Reflect.get(target, name) as unknown;
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const one = new StageDaemon(platform, { feed: new Feed(counted) });
    const last = (await logged()).at(-1)!.sequence;
    // However busy the machine is: a daemon that takes its time is left otherwise.
    const patient = { patienceMs: 60_000 };
    const first = follow(last, () => one, patient);
    await until("the daemon tells", () => first.follower.source === "daemon");
    const others = Array.from({ length: 49 }, () => follow(last, () => one, patient));
    await write(5);
    await arrived(first, ...others);
    const expected = await logged(last);
    for (const { heard, reads } of [first, ...others]) {
      expect(heard).toEqual(expected);
      expect(reads()).toBe(0);
    }
    expect(histories).toBe(1);
    await one.close();
  });
});

describe("the daemon's feed", () => {
  it("forgets what is long past, and reads it again for whoever asks", async () => {
    const feed = new Feed(daemon.engine.coordinator);
    const all: number[] = [];
    const watching = await feed.subscribe(({ sequence }) => all.push(sequence), 0);
    await write(2_100);
    await until("all are told", () => all.length === 2_100);
    const late: number[] = [];
    const second = await feed.subscribe(({ sequence }) => late.push(sequence), 0);
    expect(late).toEqual(all);
    watching.close();
    second.close();
  });
});
