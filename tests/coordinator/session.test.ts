import { describe, expect, it } from "vitest";
import { Session } from "../../src/coordinator/session";
import type { WorktreeId } from "../../src/kernel/ids";
import { PRIVATE } from "../../src/store/layout";
import {
  acquireRequest,
  byKey,
  CONTROL,
  codeOf,
  decode,
  enter,
  enterAs,
  freshId,
  key,
  LOG,
  logLines,
  type Party,
  quietWorld,
  range,
} from "../store/stage";

const give = (from: Party, name: string, to: Party) =>
  from.session.transfer(byKey(name), {
    toAgent: to.actor.agentId,
    toWorktree: to.actor.worktreeId,
    toBranch: null,
    reason: "yours",
  });

describe("a session", () => {
  it("finds its secrets again in another process", async () => {
    const world = quietWorld();
    await enter(world, "agent:a").acquire("file:x");
    await enter(world, "agent:a").renew("file:x", 700);
    await enter(world, "agent:a").session.heartbeat([byKey("file:x")]);
    await enter(world, "agent:a").release("file:x");
    expect(await codeOf(enter(world, "agent:a").release("file:x"))).toBe("E_NOT_FOUND");
  });

  it("is told how the lease it believes in ended, also after it asked in vain for another", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const human = enter(world, "human:h");
    await a.acquire("file:x");
    await human.session.evict([byKey("file:x")], { reason: "enough" });
    await human.acquire("file:x");
    expect(await codeOf(a.acquire("file:x"))).toBe("E_LOCK_CONFLICT");
    expect(await codeOf(enter(world, "agent:a").renew("file:x"))).toBe("E_FENCING_MISMATCH");
  });

  it("never takes a successor's lease for its own", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("file:x", { ttlSecs: 1 });
    world.advance(1_500);
    await enter(world, "agent:b").acquire("file:x");
    expect(await codeOf(a.release("file:x"))).toBe("E_FENCING_MISMATCH");
    expect((await a.coordinator.list()).length).toBe(1);
  });

  it("takes a secret by hand in place of its own", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const secret = (await a.acquire("file:x")).secret!;
    const stranger = enter(world, "agent:b");
    expect(await codeOf(stranger.session.release([byKey("file:x")], { secret: "wrong" }))).toBe(
      "E_LOCK_NOT_HELD",
    );
    await stranger.session.release([byKey("file:x")], { secret });
  });

  it("shows the secret that proves the lease, and none that does not", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const requestId = freshId(a.platform);
    const { secret: first } = await a.acquire("file:x", { requestId });
    expect(first).not.toBe(null);
    expect((await a.acquire("file:x", { requestId })).secret).toBe(first);
    expect((await a.acquire("file:x")).secret).toBe(first);
    // Retried where the first call's secret is not at hand: the answer is the same, the proof is not here.
    const elsewhere = enter(world, "agent:a", { session: "other" });
    expect((await elsewhere.acquire("file:x", { requestId })).secret).toBe(null);
    expect(await elsewhere.secrets.on(key("file:x"))).toHaveLength(1);
  });

  describe("adopts what was handed to it", () => {
    const scene = async () => {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      const b = enter(world, "agent:b", { worktree: "wt:00000002" });
      await a.acquire(["file:x", "file:z"]);
      return { world, a, b, again: () => enter(world, "agent:b", { worktree: "wt:00000002" }) };
    };

    it("with the first call that names it, and keeps the secret", async () => {
      const { a, b, again } = await scene();
      await give(a, "file:x", b);
      await b.renew("file:x");
      await again().release("file:x");
    });

    it("also beside leases that it had before", async () => {
      const { a, b, again } = await scene();
      await b.acquire("file:own");
      await give(a, "file:x", b);
      await b.session.renew([byKey("file:own"), byKey("file:x")], {
        ttlSecs: null,
        overrideMax: false,
        reason: null,
      });
      await again().release("file:x");
      await again().release("file:own");
    });

    it("also when it comes back to where it was before", async () => {
      const { a, b } = await scene();
      await give(a, "file:x", b);
      await give(b, "file:x", a);
      await a.renew("file:x");
      await a.release("file:x");
      // And with more than one secret for that key on record.
      await a.acquire("file:x");
      await give(a, "file:x", b);
      await codeOf(a.acquire("file:x"));
      await give(b, "file:x", a);
      await a.release("file:x");
    });

    it("also by acquiring it, or what is around it", async () => {
      const { a, b, again } = await scene();
      await give(a, "file:x", b);
      const { leases } = await b.acquire("file:x");
      expect(leases[0]!.secretHash).not.toBe(null);
      await again().release("file:x");
      await give(a, "file:z", b);
      await b.acquire("dir:.");
      await again().release("file:z");
    });

    it("also when it died the first time, between keeping its secret and asking", async () => {
      const { a, b, again } = await scene();
      await give(a, "file:x", b);
      b.coordinator.renew = () => Promise.reject(new Error("died"));
      await expect(b.renew("file:x")).rejects.toThrow("died");
      await again().renew("file:x");
      await again().release("file:x");
    });

    it("but not from another worktree", async () => {
      const { world, a } = await scene();
      const elsewhere = enter(world, "agent:b", { worktree: "wt:00000003" });
      const heir = { ...elsewhere, actor: { ...elsewhere.actor, worktreeId: "wt:00000002" as WorktreeId } };
      await give(a, "file:x", heir);
      expect(await codeOf(elsewhere.release("file:x"))).toBe("E_LOCK_NOT_HELD");
    });
  });

  describe("keeps its leases renewed while it is active", () => {
    it("whatever it is doing", async () => {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      await a.acquire("file:x", { ttlSecs: 100 });
      for (const _ of range(5)) {
        world.advance(60_000);
        await a.acquire("file:other", { ttlSecs: 100 });
      }
      expect((await a.coordinator.list()).map(({ lease }) => lease.key).sort()).toEqual([
        "file:other",
        "file:x",
      ]);
      // Another process of the session does so, too.
      world.advance(60_000);
      await codeOf(enter(world, "agent:a").release("file:none"));
      world.advance(60_000);
      expect((await a.coordinator.list()).length).toBe(2);
    });

    it("at no cost until something is due", async () => {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      await a.acquire("file:x");
      const before = world.trace.step;
      await a.acquire("file:y");
      const looks = world.trace.entries().filter((e) => e.step > before && e.what.includes("index/file/x"));
      expect(looks).toEqual([]);
    });

    it("and its own operation never fails for it", async () => {
      const world = quietWorld();
      const { party: a } = enterAs(world, "agent:a");
      await a.acquire("file:x", { ttlSecs: 100 });
      await a.acquire("file:y");
      world.advance(60_000);
      // Renewing file:x fails; holding file:y is a matter of reading.
      world.faults.add({ code: "EROFS" });
      expect((await a.acquire("file:y")).changed).toBe(false);
      world.faults.clear();
      await a.acquire("file:y");
      world.advance(60_000);
      expect((await a.coordinator.list()).length).toBe(2);
    });
  });

  describe("asks for what an ended process of it has left, and for more", () => {
    /** What happens between the grant and its binding to this process. */
    const asking = async (between: (world: ReturnType<typeof quietWorld>) => unknown) => {
      const world = quietWorld();
      const first = enterAs(world, "agent:a");
      await first.party.acquire("file:x");
      world.kill(first.process);
      const { platform, actor, secrets, coordinator } = enter(world, "agent:a");
      let calls = 0;
      const interrupted = new Proxy(coordinator, {
        get: (target, name) => {
          const own = Reflect.get(target, name) as unknown;
          if (name !== "acquire") return typeof own === "function" ? own.bind(target) : own;
          return async (request: Parameters<typeof coordinator.acquire>[0]) => {
            if (calls++ === 1) await between(world);
            return target.acquire(request);
          };
        },
      });
      const session = new Session(platform, interrupted, actor, secrets);
      const keys = ["file:x", "file:y"].map((name) => ({ key: key(name), reach: "repository" as const }));
      const failure = await session.acquire(keys, { ttlSecs: 1 }).catch((error: unknown) => error);
      expect(calls).toBe(2);
      return { session, failure };
    };

    it("is told who has taken meanwhile what lapsed at once, and can still prove all that it was granted", async () => {
      const { session, failure } = await asking(async (world) => {
        world.advance(1_500);
        await enter(world, "agent:b").acquire("file:y");
      });
      expect(failure).toMatchObject({
        code: "E_LOCK_CONFLICT",
        message: expect.stringMatching(/file:y is held by agent:b.*; it had been granted before/),
        hint: expect.stringMatching(/^take other work;.*; 'cotenant status' shows what you still hold$/),
      });
      expect(await codeOf(session.release([byKey("file:y")]))).toBe("E_FENCING_MISMATCH");
      await session.release([byKey("file:x")]);
    });

    it("gets it back by asking again where the disk failed", async () => {
      const { session, failure } = await asking((world) => {
        world.faults.add({ code: "ENOSPC", operations: ["append"], path: (path) => path === LOG, times: 1 });
      });
      expect(failure).toMatchObject({
        message: expect.stringContaining("; it had been granted before"),
        hint: expect.stringMatching(/^run the same command again/),
        data: { outcome: "unknown" },
      });
      await session.release([byKey("file:x"), byKey("file:y")]);
    });
  });

  it("stops with everything it holds, however much", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a", { policy: { stopIdleSecs: 1 } });
    expect(await a.session.stop()).toMatchObject({ changed: false, leases: [] });
    await a.acquire(
      range(600).map((i) => `file:a${i}`),
      { bind: "process" },
    );
    await a.acquire(
      range(600).map((i) => `file:b${i}`),
      { bind: "process" },
    );
    expect((await a.session.stop()).leases.length).toBe(1_200);
    expect(logLines(world).filter((line) => line!["event_type"] === "claim.stopped").length).toBe(2);
    world.advance(1_500);
    expect(await a.coordinator.list()).toEqual([]);
  });

  it("knows what is its own", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(["file:x", "dir:d"]);
    await enter(world, "agent:b").acquire("file:y");
    expect((await enter(world, "agent:a").session.mine()).map(({ lease }) => lease.key).sort()).toEqual([
      "dir:d",
      "file:x",
    ]);
    expect(await enter(world, "agent:c").session.mine()).toEqual([]);
  });

  it("leaves a sign of life for others to read", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("file:x");
    for (const _ of range(2)) await a.session.writeHeartbeat(a.store.layout, PRIVATE);
    const path = `${CONTROL}/heartbeat/agent%3aa.json`;
    expect(JSON.parse(decode(world.disk.peek(path))!)).toMatchObject({
      agent_id: "agent:a",
      interval_secs: 30,
    });
  });
});

describe("waiting", () => {
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  it("leaves no ticket behind when its own call fails", async () => {
    const world = quietWorld();
    const holder = enter(world, "agent:h");
    await holder.acquire("file:x");
    const a = enter(world, "agent:a");
    const waiting = a.acquire("file:x", { wait: { timeoutMs: 60_000 } });
    const failed = waiting.then(
      () => null,
      (error: unknown) => error,
    );
    await turn();
    expect((await holder.coordinator.waiters()).length).toBe(1);
    world.faults.add({
      code: "ENOSPC",
      operations: ["append"],
      process: (name) => name.startsWith("agent:a"),
    });
    await holder.release("file:x");
    await turn();
    expect(await failed).toMatchObject({ code: "E_DISK" });
    expect(await holder.coordinator.waiters()).toEqual([]);
    await holder.acquire("file:x");
  });

  it("leaves no ticket behind when something turns up that waiting cannot cure", async () => {
    const world = quietWorld();
    const holder = enter(world, "human:h");
    const forever = { ttlSecs: 0, reason: "for good" };
    await holder.acquire("scope:one", forever);
    const a = enter(world, "human:a");
    await a.acquire("scope:two", forever);
    const waiting = codeOf(a.acquire("scope:one", { ...forever, wait: { timeoutMs: 60_000 } }));
    await turn();
    expect((await holder.coordinator.waiters()).length).toBe(1);
    // Meanwhile it has as many as it may have.
    await enter(world, "human:a").acquire("scope:three", forever);
    await holder.release("scope:one");
    expect(await waiting).toBe("E_LIMIT");
    expect(await holder.coordinator.waiters()).toEqual([]);
  });

  it("is over for a waiter that died; the next one is served", async () => {
    const world = quietWorld();
    const holder = enter(world, "agent:h");
    await holder.acquire("file:x");
    const { party: dying, process } = enterAs(world, "agent:d");
    void dying.acquire("file:x", { wait: { timeoutMs: 60_000 } }).catch(() => {});
    await turn();
    const next = enter(world, "agent:n").acquire("file:x", { wait: { timeoutMs: 60_000 } });
    await turn();
    expect((await holder.coordinator.waiters()).map((t) => t.agentId)).toEqual(["agent:d", "agent:n"]);
    world.kill(process);
    await holder.release("file:x");
    expect((await next).leases[0]!.agentId).toBe("agent:n");
  });

  it("passes over one that is stopped, when its turn has come and gone", async () => {
    const world = quietWorld();
    const holder = enter(world, "agent:h");
    await holder.acquire("file:x");
    const { party: stopped, process } = enterAs(world, "agent:s");
    const late = stopped.acquire("file:x", { wait: { timeoutMs: 60_000 } }).catch((e: unknown) => e);
    await turn();
    const next = enter(world, "agent:n").acquire("file:x", { wait: { timeoutMs: 60_000 } });
    await turn();
    world.pause(process);
    await holder.release("file:x");
    const grant = await next;
    expect(grant.waitedMs).toBeGreaterThan(5_000);
    expect(grant.waitedMs).toBeLessThan(10_000);
    world.resume(process);
    await enter(world, "agent:n").release("file:x");
    await late;
  });

  it("does not keep a holder of what is waited for from taking more", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("file:d/x");
    const waiting = enter(world, "agent:b").acquire("dir:d", { wait: { timeoutMs: 60_000 } });
    await turn();
    await a.acquire("file:d/y");
    await a.release("file:d/x");
    await a.release("file:d/y");
    expect((await waiting).leases[0]!.key).toBe("dir:d");
  });

  it("looks again every second where no notice comes, and for the death of a holder", async () => {
    const world = quietWorld(1, { watchDropProbability: 1 });
    const { party: holder, process } = enterAs(world, "agent:h");
    await holder.acquire("file:x", { bind: "process" });
    const waiting = enter(world, "agent:a").acquire("file:x", { wait: { timeoutMs: 60_000 } });
    await turn();
    world.kill(process);
    const grant = await waiting;
    expect(grant.ended).toMatchObject([{ how: "dead" }]);
    expect(grant.waitedMs).toBeLessThan(2_500);
  });

  it("has a limit", async () => {
    const world = quietWorld();
    const holder = enter(world, "agent:h");
    await holder.acquire("file:x");
    const a = enter(world, "agent:a");
    const now = a.store.now();
    for (const number of range(1_000))
      await a.store.queue.write({
        number: number + 1,
        agentId: a.actor.agentId,
        sessionId: a.actor.sessionId,
        worktreeId: a.actor.worktreeId,
        keys: [{ key: key("file:x"), reach: "repository" }],
        holder: a.actor.holder,
        joinedAt: now,
        expiresAt: { ...now, wallMs: now.wallMs + 60_000, monotonicMs: now.monotonicMs + 60_000 },
        freeSince: null,
      });
    const late = enter(world, "agent:late");
    const wait = { timeoutMs: 1_000 };
    expect(await codeOf(late.coordinator.acquire(acquireRequest(late, "file:x", { wait })))).toBe("E_LIMIT");
  });

  it("clears away tickets that nobody can read", async () => {
    const world = quietWorld();
    const holder = enter(world, "agent:h");
    await holder.acquire("file:x");
    world.disk.install(`${CONTROL}/queue/0000000001.json`, new Uint8Array(100));
    world.disk.install(`${CONTROL}/queue/notes.txt`, new Uint8Array(100));
    expect(await codeOf(enter(world, "agent:a").acquire("file:x"))).toBe("E_LOCK_CONFLICT");
    expect(world.disk.paths().filter((path) => path.includes("/queue/"))).toEqual([
      `${CONTROL}/queue/`,
      `${CONTROL}/queue/notes.txt`,
    ]);
  });
});
