import { describe, expect, it } from "vitest";
import {
  CONTROL,
  codeOf,
  enter,
  enterAs,
  freshId,
  logLines,
  type Party,
  quietWorld,
  range,
} from "../store/stage";

const turn = () => new Promise((resolve) => setImmediate(resolve));
const tickets = (party: Party) => party.coordinator.waiters();
const inQueue = (world: ReturnType<typeof quietWorld>) =>
  world.disk.paths().filter((path) => path.startsWith(`${CONTROL}/queue/`) && !path.endsWith("/"));

async function held(name = "file:x", ttlSecs = 600, seed = 1, options = {}) {
  const world = quietWorld(seed, options);
  const { party: holder, process } = enterAs(world, "agent:h");
  await holder.acquire(name, { ttlSecs });
  return { world, holder, process };
}

describe("a waiter wakes", () => {
  it("at the holder's expiry, to the millisecond, although nothing happens then", async () => {
    const { world } = await held("file:x", 3, 1, { watchDropProbability: 1 });
    const grant = await enter(world, "agent:a").acquire("file:x", { wait: { timeoutMs: 60_000 } });
    expect(grant.ended).toMatchObject([{ how: "expired" }]);
    expect(grant.waitedMs).toBeGreaterThan(2_900);
    expect(grant.waitedMs).toBeLessThan(3_100);
  });

  it("at once when the lease is given back, and not a second later", async () => {
    const { world, holder } = await held();
    const waiting = enter(world, "agent:a").acquire("file:x", { wait: { timeoutMs: 60_000 } });
    await turn();
    await holder.release("file:x");
    expect((await waiting).waitedMs).toBeLessThan(500);
  });

  it("when the lease is evicted, and when it is stopped for too long", async () => {
    for (const end of ["evicted", "stopped"]) {
      const { world, holder } = await held();
      const waiting = enter(world, "agent:a").acquire("file:x", { wait: { timeoutMs: 120_000 } });
      await turn();
      if (end === "stopped") await holder.session.stop();
      else
        await enter(world, "human:h").session.evict([{ key: "file:x" as never, leaseId: null }], {
          reason: "r",
        });
      const grant = await waiting;
      expect(grant.leases[0]!.agentId, end).toBe("agent:a");
      expect(grant.waitedMs, end).toBeLessThan(end === "stopped" ? 33_000 : 2_000);
    }
  });
});

describe("a waiter that gives up", () => {
  it("names who holds it by then, not who did when it began", async () => {
    const { world, holder } = await held();
    const first = enter(world, "agent:1").acquire("file:x", { wait: { timeoutMs: 60_000 } });
    await turn();
    const second = enter(world, "agent:2").acquire("file:x", { wait: { timeoutMs: 20_000 } });
    await turn();
    await holder.release("file:x");
    await first;
    await expect(second).rejects.toMatchObject({
      code: "E_WAIT_TIMEOUT",
      message: expect.stringMatching(/number 1 in the queue: file:x is held by agent:1/),
      data: { position: 1, holders: [{ agent_id: "agent:1" }] },
    });
  });

  it("is told of one that waits for what it holds itself", async () => {
    const { world, holder } = await held("file:x");
    const other = enter(world, "agent:a");
    await other.acquire("file:y");
    const waiting = holder.acquire("file:y", { wait: { timeoutMs: 60_000 } });
    await turn();
    await expect(other.acquire("file:x", { wait: { timeoutMs: 2_000 } })).rejects.toMatchObject({
      message: expect.stringContaining("agent:h waits for file:y, which you hold: neither goes on"),
      data: { deadlock: { agent_id: "agent:h", holds: "file:x", waits_for: "file:y" } },
    });
    await other.release("file:y");
    await waiting;
  });
});

describe("a waiter's place", () => {
  it("is shown when it is taken, and whenever it changes", async () => {
    const { world, holder } = await held();
    const places: number[] = [];
    const first = enter(world, "agent:1").acquire("file:x", { wait: { timeoutMs: 60_000 } });
    await turn();
    const onWait = ({ ahead, message }: { ahead: number; message: string }) => {
      places.push(ahead);
      expect(message).not.toBe("");
    };
    const second = enter(world, "agent:2").acquire("file:x", { wait: { timeoutMs: 60_000, onWait } });
    await turn();
    expect(places).toEqual([1]);
    await holder.release("file:x");
    await first;
    world.advance(2_000);
    await turn();
    await enter(world, "agent:1").release("file:x");
    await second;
    expect(places.at(-1)).toBe(0);
    expect(new Set(places).size).toBe(places.length);
  });

  it("binds whoever does not wait, and only for what it waits for", async () => {
    const { world, holder } = await held("file:d/x");
    const waiting = enter(world, "agent:a").acquire("dir:d", { wait: { timeoutMs: 60_000 } });
    await turn();
    const other = enter(world, "agent:b");
    expect(await codeOf(other.acquire("file:d/new"))).toBe("E_QUEUED");
    await other.acquire("file:e");
    await holder.release("file:d/x");
    await waiting;
  });

  it("is void when its time is up, although its process is stopped and cannot leave", async () => {
    const { world, holder } = await held();
    const { party: stopped, process } = enterAs(world, "agent:s");
    const late = stopped.acquire("file:x", { wait: { timeoutMs: 2_000 } }).catch((error: unknown) => error);
    await turn();
    world.pause(process);
    world.advance(2_500);
    await holder.release("file:x");
    await enter(world, "agent:n").acquire("file:x");
    expect(inQueue(world)).toEqual([]);
    world.resume(process);
    expect(await late).toMatchObject({ code: "E_WAIT_TIMEOUT" });
  });

  it("survives the damage of another's ticket, and is lost with its own", async () => {
    const { world, holder } = await held();
    const [first, second] = ["agent:1", "agent:2"].map((name) => enter(world, name));
    const one = first!.acquire("file:x", { wait: { timeoutMs: 60_000 } });
    await turn();
    const two = second!.acquire("file:x", { wait: { timeoutMs: 60_000 } });
    await turn();
    world.disk.install(`${CONTROL}/queue/0000000001.json`, new Uint8Array(10));
    await holder.release("file:x");
    expect((await two).leases[0]!.agentId).toBe("agent:2");
    await second!.release("file:x");
    expect((await one).leases[0]!.agentId).toBe("agent:1");
  });

  it("starts its five seconds over when its keys are taken again meanwhile", async () => {
    const { world, holder } = await held();
    const { party: slow, process } = enterAs(world, "agent:s");
    const late = slow.acquire("file:x", { wait: { timeoutMs: 600_000 } });
    await turn();
    world.pause(process);
    await holder.release("file:x");
    const refused = () => codeOf(enter(world, "agent:b").acquire("file:x"));
    expect(await refused()).toBe("E_QUEUED");
    world.advance(4_000);
    // Somebody with the right to do so goes first, for a moment.
    const human = enter(world, "human:h");
    await human.acquire("file:x", { steal: true, reason: "urgent" });
    expect(await refused()).toBe("E_LOCK_CONFLICT");
    await human.release("file:x");
    expect(await refused()).toBe("E_QUEUED");
    world.advance(4_000);
    expect(await refused()).toBe("E_QUEUED");
    world.resume(process);
    expect((await late).leases[0]!.agentId).toBe("agent:s");
  });
});

describe("a wait ends", () => {
  it("with its position when the time is up, and leaves no ticket", async () => {
    const { world, holder } = await held();
    void enter(world, "agent:1")
      .acquire("file:x", { wait: { timeoutMs: 60_000 } })
      .catch(() => {});
    await turn();
    const second = enter(world, "agent:2").acquire("file:x", { wait: { timeoutMs: 1_500 } });
    await expect(second).rejects.toMatchObject({ code: "E_WAIT_TIMEOUT", data: { position: 2 } });
    expect((await tickets(holder)).map(({ agentId }) => agentId)).toEqual(["agent:1"]);
  });

  it("when its caller has had enough, at once, and leaves no ticket", async () => {
    const { world, holder } = await held();
    const enough = new AbortController();
    const waiting = enter(world, "agent:a").acquire("file:x", {
      wait: { timeoutMs: 600_000, signal: enough.signal },
    });
    const ended = codeOf(waiting);
    await turn();
    expect((await tickets(holder)).length).toBe(1);
    const beforeMs = world.monotonicMs;
    enough.abort();
    expect(await ended).toBe("E_INTERRUPTED");
    expect(world.monotonicMs - beforeMs).toBeLessThan(1_000);
    expect(inQueue(world)).toEqual([]);
  });

  it("before it begins, when its caller had enough already", async () => {
    const { world } = await held();
    const signal = AbortSignal.abort();
    expect(
      await codeOf(enter(world, "agent:a").acquire("file:x", { wait: { timeoutMs: 60_000, signal } })),
    ).toBe("E_INTERRUPTED");
    expect(inQueue(world)).toEqual([]);
  });

  it("with a time of zero at the first refusal", async () => {
    const { world } = await held();
    expect(await codeOf(enter(world, "agent:a").acquire("file:x", { wait: { timeoutMs: 0 } }))).toBe(
      "E_WAIT_TIMEOUT",
    );
    expect(inQueue(world)).toEqual([]);
  });

  it("with E_DISK when there is no room for its ticket, whole or in part, and leaves nothing behind", async () => {
    for (const seed of range(12)) {
      const { world, holder } = await held("file:x", 600, seed);
      const fault = world.faults.add({
        code: "ENOSPC",
        operations: ["writeAt"],
        path: (path) => path.includes("/queue/"),
      });
      const a = enter(world, "agent:a");
      expect(await codeOf(a.acquire("file:x", { wait: { timeoutMs: 60_000 } })), `seed ${seed}`).toBe(
        "E_DISK",
      );
      expect(fault.struck).toBeGreaterThan(0);
      world.faults.clear();
      expect(await tickets(holder)).toEqual([]);
      await holder.release("file:x");
      await a.acquire("file:x");
      expect(inQueue(world), `seed ${seed}`).toEqual([]);
    }
  });
});

describe("a wait with a request id", () => {
  it("is done once, however often it is asked", async () => {
    const { world, holder } = await held();
    const a = enter(world, "agent:a");
    const requestId = freshId(a.platform);
    const waiting = a.acquire("file:x", { requestId, wait: { timeoutMs: 60_000 } });
    await turn();
    await holder.release("file:x");
    const { leases } = await waiting;
    const again = await enter(world, "agent:a").acquire("file:x", { requestId, wait: { timeoutMs: 60_000 } });
    expect(again).toMatchObject({ replayed: true, leases: [{ leaseId: leases[0]!.leaseId }] });
    expect(logLines(world).filter((line) => line!["event_type"] === "claim.acquired").length).toBe(2);
  });

  it("that timed out is not remembered: it may be asked again", async () => {
    const { world, holder } = await held();
    const a = enter(world, "agent:a");
    const requestId = freshId(a.platform);
    expect(await codeOf(a.acquire("file:x", { requestId, wait: { timeoutMs: 1_000 } }))).toBe(
      "E_WAIT_TIMEOUT",
    );
    await holder.release("file:x");
    expect((await a.acquire("file:x", { requestId })).changed).toBe(true);
  });
});

describe("a session that is only ever refused", () => {
  it("does not keep every secret it has made", async () => {
    const { world } = await held("file:x", 86_400);
    let most = 0;
    const a = enter(world, "agent:a");
    for (const i of range(300)) {
      expect(await codeOf(a.acquire("file:x"))).toBe("E_LOCK_CONFLICT");
      most = Math.max(most, await a.secrets.count());
      // As long as it may take to be granted, a secret is kept.
      if (i % 10 === 0) world.advance(5_000);
    }
    expect(most).toBeGreaterThan(200);
    expect(most).toBeLessThan(250);
  });
});
