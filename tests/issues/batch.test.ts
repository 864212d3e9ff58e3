import { describe, expect, it } from "vitest";
import { underMutex } from "../../src/features/issues/desk";
import { IssueFolder } from "../../src/features/issues/folder";
import { isFound } from "../../src/features/issues/resolve";
import { settleIssues } from "../../src/features/issues/settle";
import { shortId, shortIds } from "../../src/features/issues/short-id";
import { makeUlid } from "../../src/kernel/ids";
import type { Files, Platform } from "../../src/platform/platform";
import { decode, encode, quietWorld } from "../store/stage";
import { type Clerk, openClerk } from "./stage";
import { atEveryOperation, STRIKES, type Struck } from "./struck";

const SYNCS = ["sync", "syncDirectory", "syncAll", "datasync", "datasyncInBackground"];
const EVENTS = "/repo/.cotenant/events/local.jsonl";

/** Counts how often somebody waits for the disk, and how many files are open at once. */
function counting(platform: Platform) {
  const counted = { syncs: 0, appends: 0, open: 0, mostOpen: 0 };
  const files = new Proxy(platform.files, {
    get: (target, name: keyof Files) => {
      const call = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        if (SYNCS.includes(name)) counted.syncs++;
        if (name === "open" && args[0] === EVENTS && args[1] === "append") counted.appends++;
        if (name === "open") counted.mostOpen = Math.max(counted.mostOpen, ++counted.open);
        if (name === "close") counted.open--;
        return call.apply(target, args);
      };
    },
  });
  return { platform: { ...platform, files }, counted };
}

const drafts = (clerk: Clerk, count: number) =>
  Array.from({ length: count }, (_, at) =>
    clerk.draft(`number ${at}`, { labels: ["area:x"], dependencies: ["01J00000000000000000000000"] }),
  );

describe("many new issues", () => {
  it("wait for the disk hardly more often than one", async () => {
    const costOf = async (count: number) => {
      const { platform, counted } = counting(quietWorld().attach("writer").platform);
      const clerk = openClerk(platform, "agent:a");
      await clerk.create("the first makes the directories");
      const before = { ...counted };
      await clerk.writer.create(drafts(clerk, count));
      return { syncs: counted.syncs - before.syncs, appends: counted.appends - before.appends };
    };
    const one = await costOf(1);
    expect(one.appends).toBe(1);
    const many = await costOf(100);
    expect(many.appends).toBe(1);
    // What grows is 201 files, more than may be open at once.
    expect(many.syncs).toBeLessThanOrEqual(one.syncs + 2);
  });

  it("leave a process enough descriptors", async () => {
    const { platform, counted } = counting(quietWorld().attach("writer").platform);
    const clerk = openClerk(platform, "agent:a");
    await clerk.writer.create(drafts(clerk, 600));
    expect(counted.mostOpen).toBeLessThan(150);
    expect(await new IssueFolder(platform, "/repo").ids()).toHaveLength(600);
  });

  it("have the short ids that each would have alone", () => {
    const { digest } = quietWorld().attach("p").platform;
    // Many begin alike.
    const ids = Array.from({ length: 400 }, (_, at) => {
      const random = encode(digest.sha256(String(at))).subarray(0, 10);
      random.fill(0, 0, at % 7);
      return makeUlid(1_700_000_000_000 + at, random);
    });
    const short = shortIds(ids);
    for (const id of ids) expect(short.get(id)).toBe(shortId(id, ids));
  });
});

/** Killed, or without power, after each of its operations. */
describe.each(STRIKES)("%s at every operation, a write of several new issues", (_, strikeBy) => {
  it("leaves all of them or none, and once acknowledged all", () =>
    atEveryOperation(600, 6, strikeBy, writesThree));
});

async function writesThree({ made, strike }: Struck): Promise<void> {
  const run = async <T>(act: (clerk: Clerk) => Promise<T>) => {
    const process = made.spawn("p", (platform) => act(openClerk(platform, "agent:a")));
    await made.run();
    if (process.error !== undefined) throw process.error;
    return process.result as T;
  };
  const wanted = await run(async (clerk) => {
    await clerk.create("the first makes the directories");
    return drafts(clerk, 3);
  });
  let acknowledged = false;
  const victim = made.spawn(
    "victim",
    async (platform) => {
      await openClerk(platform, "agent:a").writer.create(wanted);
      acknowledged = true;
    },
    { mayFail: true },
  );
  await strike(victim);
  const found = () =>
    run(async ({ reader }) => {
      const all = [];
      for (const { issue } of wanted) all.push(await reader.find(issue.id));
      return all.filter(isFound);
    });
  const first = await found();
  expect(first.length).toBe(acknowledged || first.length > 0 ? wanted.length : 0);
  for (const issue of first)
    expect(issue).toMatchObject({ labels: ["area:x"], dependencies: ["01J00000000000000000000000"] });
  await run((clerk) => settleIssues(clerk.reader, 0, (act) => underMutex(clerk.session, act)));
  expect((await found()).map(({ id }) => id)).toEqual(first.map(({ id }) => id));
  for (const { issue } of wanted) {
    const names = await run(({ platform }) =>
      Promise.resolve(platform.files.readDirectory(new IssueFolder(platform, "/repo").folder(issue.id))),
    );
    const whole = ["deps.or-set.jsonl", "issue.json", "labels.or-set.jsonl"];
    expect([...(names ?? [])].sort()).toEqual(first.length === 0 ? [] : whole);
  }
  // Part of a line may stay, and the whole one stands below it.
  const lines = (decode(made.disk.peek(EVENTS)) ?? "").split("\n");
  const events = lines.filter((line) => line.startsWith("{") && line.endsWith("}}"));
  for (const { issue } of first)
    expect(events.filter((line) => line.includes(`"issue_id":"${issue.id}"`))).toHaveLength(1);
}
