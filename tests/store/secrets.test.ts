import { describe, expect, it } from "vitest";
import type { LeaseId } from "../../src/kernel/ids";
import { type SecretEntry, SessionSecrets } from "../../src/store/secrets";
import {
  acquireRequest,
  CONTROL,
  codeOf,
  decode,
  encode,
  enter,
  enterAs,
  freshId,
  key,
  LOG,
  type Party,
  quietWorld,
  range,
} from "./stage";

const FILE = `${CONTROL}/secrets/agent%3aa/default.json`;

function entry(party: Party, name: string, leaseId: LeaseId = freshId(party.platform)): SecretEntry {
  return {
    secret: `secret of ${name}`,
    madeAtMs: party.platform.clock.wallMs(),
    worktreeId: party.actor.worktreeId,
    leases: [{ leaseId, key: key(`resource:${name}`), reach: "repository" }],
  };
}

const kept = async (party: Party) => (await party.secrets.possessions()).map(({ secret }) => secret);

describe("a session's secrets", () => {
  it.each([
    ["a time that is none", { made_at: "soon" }],
    ["a worktree that is none", { worktree_id: "wt:../.." }],
    [
      "a lease id that no file can have",
      { leases: [{ lease_id: "\0", key: "resource:r", reach: "repository" }] },
    ],
    [
      "a lease id that leads elsewhere",
      { leases: [{ lease_id: "../x", key: "resource:r", reach: "repository" }] },
    ],
    [
      "a key that is none",
      { leases: [{ lease_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV", key: "r", reach: "repository" }] },
    ],
  ])("pass over a line with %s, and can be pruned", async (_, wrong) => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:r");
    const text = decode(world.disk.peek(FILE))!;
    world.disk.install(FILE, encode(`${JSON.stringify({ ...JSON.parse(text), ...wrong })}\n${text}`));
    world.advance(3_600_000);
    const again = enter(world, "agent:a");
    await again.session.prune();
    expect(await codeOf(again.release("resource:none"))).toBe("E_NOT_FOUND");
    await again.release("resource:r");
  });

  it("are in a file of the user's own, also where the repository is shared", async () => {
    const world = quietWorld();
    const { party: a, process } = enterAs(world, "agent:a", { modes: { file: 0o660, directory: 0o2770 } });
    await a.acquire("resource:r");
    const { files } = process.platform;
    expect(((await files.stat(FILE)) as { mode: number }).mode & 0o777).toBe(0o600);
    expect(((await files.stat(`${CONTROL}/secrets/agent%3aa`)) as { mode: number }).mode & 0o777).toBe(0o700);
    expect(((await files.stat(`${CONTROL}/secrets`)) as { mode: number }).mode & 0o7777).toBe(0o3770);
    expect(((await files.stat(LOG)) as { mode: number }).mode & 0o777).toBe(0o660);
  });

  it("of agents that differ in case only are not in one file, whatever the file system thinks of case", () => {
    const world = quietWorld();
    const paths = ["agent:bob", "agent:Bob", "agent:BOB"].map((agent) =>
      enter(world, agent).secrets.path.toLowerCase(),
    );
    expect(new Set(paths).size).toBe(3);
  });

  it("are found by other processes of the session, newest first", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.secrets.add(entry(a, "one"));
    await a.secrets.add({ ...entry(a, "one"), secret: "the second" });
    const again = enter(world, "agent:a");
    expect((await again.secrets.on(key("resource:one"))).map((p) => p.secret)).toEqual([
      "the second",
      "secret of one",
    ]);
    await a.secrets.add({ ...entry(a, "one"), secret: "the third" });
    expect((await again.secrets.on(key("resource:one")))[0]!.secret).toBe("the third");
  });

  it.each([
    ["half a line", '{"schema_version":1,"secr'],
    ["zeros", "\0\0\0\0\0\0"],
    ["a line of something else", '{"a":1}\n'],
  ])("survive %s at the end of the file", async (_, tail) => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.secrets.add(entry(a, "one"));
    world.disk.install(FILE, encode(decode(world.disk.peek(FILE)) + tail));
    await enter(world, "agent:a").secrets.add(entry(a, "two"));
    expect(await kept(enter(world, "agent:a"))).toEqual(["secret of one", "secret of two"]);
  });

  it("that could not be written stop the operation before it is asked for", async () => {
    for (const seed of range(10)) {
      const world = quietWorld(seed);
      const a = enter(world, "agent:a");
      await a.acquire("resource:one");
      const fault = world.faults.add({
        code: "ENOSPC",
        operations: ["append"],
        path: (path) => path === FILE,
      });
      expect(await codeOf(a.acquire("resource:two"))).toBe("E_DISK");
      fault.remove();
      expect((await a.coordinator.list()).length).toBe(1);
      await a.acquire("resource:three");
      await enter(world, "agent:a").release("resource:three");
    }
  });

  it("of a newer schema are refused, untouched", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    const newer = `${decode(world.disk.peek(FILE))}{"schema_version":2,"sealed":"…"}\n`;
    world.disk.install(FILE, encode(newer));
    const again = enter(world, "agent:a");
    expect(await codeOf(again.acquire("resource:two"))).toBe("E_SCHEMA_NEWER");
    expect(await codeOf(again.release("resource:one"))).toBe("E_SCHEMA_NEWER");
    expect(decode(world.disk.peek(FILE))).toBe(newer);
  });
});

describe("pruning", () => {
  it("keeps what still proves something", async () => {
    const world = quietWorld();
    const a = enter(world, "human:a");
    await a.acquire("resource:held");
    await a.acquire("resource:gone");
    await a.release("resource:gone");
    await a.acquire("resource:stolen");
    await enter(world, "human:b").acquire("resource:stolen", { steal: true, reason: "mine" });
    world.advance(61_000);
    await a.session.prune();
    const left = (await a.secrets.possessions()).map((p) => p.key);
    expect(left).toEqual(["resource:held", "resource:stolen"]);
    await a.release("resource:held");
    expect(await codeOf(enter(world, "human:a").release("resource:stolen"))).toBe("E_FENCING_MISMATCH");
  });

  it("loses nothing when the disk is full, and fails nobody's release", async () => {
    for (const seed of range(20)) {
      const world = quietWorld(seed);
      const a = enter(world, "agent:a");
      await a.acquire("resource:held");
      for (const i of range(201)) await a.secrets.add(entry(a, `old${i}`));
      await a.acquire("resource:given");
      world.advance(61_000);
      world.faults.add({ code: "ENOSPC", path: (path) => path.startsWith(`${CONTROL}/secrets/`) });
      await a.release("resource:given");
      world.faults.clear();
      await enter(world, "agent:a").release("resource:held");
    }
  });

  it("is durable: a power cut leaves the old file or the new one", async () => {
    for (const seed of range(30)) {
      const world = quietWorld(seed);
      const a = enter(world, "agent:a");
      await a.acquire("resource:held", { ttlSecs: 86_400 });
      for (const i of range(5)) await a.secrets.add(entry(a, `old${i}`));
      world.disk.syncEverything();
      world.advance(61_000);
      await a.session.prune();
      world.powerCut();
      await enter(world, "agent:a").release("resource:held");
    }
  });

  /** agent:a has waited for what agent:h holds, longer than secrets that prove nothing are kept. */
  async function longWait() {
    const world = quietWorld();
    const holder = enter(world, "agent:h");
    await holder.acquire("resource:r");
    const waiting = enter(world, "agent:a").acquire("resource:r", { wait: { timeoutMs: 600_000 } });
    await new Promise((resolve) => setImmediate(resolve));
    world.advance(90_000);
    return { world, holder, waiting };
  }

  it("does not take the secret of somebody who has waited long and gets the lease meanwhile", async () => {
    const { world, holder, waiting } = await longWait();
    // Another process of the same session throws away what proves nothing, as far as it can tell.
    const sibling = enter(world, "agent:a");
    await sibling.secrets.add(entry(sibling, "some"));
    await sibling.session.prune();
    await holder.release("resource:r");
    await waiting;
    await enter(world, "agent:a").release("resource:r");
  });

  it("that cannot be looked at after a long wait does not make a grant a failure", async () => {
    const { world, holder, waiting } = await longWait();
    const secretsOfA = (path: string) => path.includes("/secrets/agent%3aa");
    const fault = world.faults.add({
      code: "EIO",
      operations: ["openForWriting", "readFile", "stat"],
      path: secretsOfA,
    });
    await holder.release("resource:r");
    expect((await waiting).leases.map(({ key }) => key)).toEqual(["resource:r"]);
    expect(fault.struck).toBeGreaterThan(0);
  });

  it("looks at what stands only once nobody can add to the file", async () => {
    const world = quietWorld();
    const { party: a, process } = enterAs(world, "agent:a");
    await a.secrets.add(entry(a, "old"));
    const late = freshId(a.platform);
    const pending = entry(a, "late", late);
    await a.secrets.add(pending);
    world.advance(61_000);
    // The lease is granted to a sibling, who checks on its secret, while this one is about to prune.
    const sibling = enter(world, "agent:a");
    const { locks } = process.platform;
    const tryLock = locks.tryLock.bind(locks);
    let granted = false;
    locks.tryLock = async (fd) => {
      if (!granted) {
        granted = true;
        const request = acquireRequest(sibling, "resource:late", { leaseIds: [late] });
        await sibling.coordinator.acquire({
          ...request,
          secretHash: a.platform.digest.sha256(pending.secret),
        });
        await sibling.secrets.ensure(pending);
      }
      return tryLock(fd);
    };
    await a.session.prune();
    expect(granted).toBe(true);
    await enter(world, "agent:a").release("resource:late");
  });

  it("happens also in a session that only ever asks", async () => {
    const world = quietWorld();
    await enter(world, "agent:h").acquire("resource:r", { ttlSecs: 86_400 });
    const a = enter(world, "agent:a");
    for (const i of range(450)) {
      await codeOf(a.acquire("resource:r"));
      if (i % 50 === 0) world.advance(61_000);
    }
    expect(await a.secrets.count()).toBeLessThan(320);
  });
});

it("one door per process: many callers at once add every one of their secrets", async () => {
  const world = quietWorld();
  const a = enter(world, "agent:a");
  await Promise.all(range(50).map((i) => a.secrets.add(entry(a, `r${i}`))));
  expect((await kept(enter(world, "agent:a"))).length).toBe(50);
  const { path } = new SessionSecrets(a.platform, a.store.layout, a.actor, async () => {});
  expect(path).toBe(FILE);
});
