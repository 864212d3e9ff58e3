import { afterEach, describe, expect, it } from "vitest";
import type { AcquireRequest, Coordinator, Grant, LoggedEvent, Wait } from "../../src/coordinator/contract";
import type { Actor, LeaseRef } from "../../src/kernel/commands";
import { makeUlid, type Ulid, type WorktreeId } from "../../src/kernel/ids";
import { type LeaseKey, parseKey } from "../../src/kernel/keys";
import type { Lease, Reach } from "../../src/kernel/lease";
import type { Policy } from "../../src/kernel/policy";
import { isRefusal } from "../../src/kernel/refusal";
import type { Platform } from "../../src/platform/platform";

/**
 * What every engine must do, whatever it keeps its state in. An engine joins by handing `describeCoordinator`
 * a function that makes a new, empty one.
 */
export interface Engine {
  /** Connects one agent, as a process of its own would. */
  open(agent: string, options?: ConnectOptions): Connection;
  /** Lets so much time pass, for the engine and for all who are connected. */
  pass(ms: number): Promise<void>;
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly session?: string;
  readonly worktree?: string;
}

export interface Connection {
  readonly coordinator: Coordinator;
  readonly actor: Actor;
  readonly platform: Pick<Platform, "clock" | "random" | "digest">;
}

export type MakeEngine = (policy: Partial<Policy>) => Engine;

const WT1 = "wt:00000001";
const WT2 = "wt:00000002";
const ISSUE = "issue:01ARZ3NDEKTSV4RRFFQ69G5FAV";

export function describeCoordinator(name: string, makeEngine: MakeEngine): void {
  describe(`${name} keeps the contract:`, () => {
    const engines: Engine[] = [];
    afterEach(async () => {
      for (const engine of engines.splice(0)) await engine.close();
    });
    const start = (policy: Partial<Policy> = {}) => {
      const engine = makeEngine(policy);
      engines.push(engine);
      const connect = (agent: string, options: ConnectOptions = {}) =>
        new Holder(engine.open(agent, options));
      return { engine, connect };
    };

    describe("acquire", () => {
      it("grants what is free, with everything that a lease has", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const grant = await a.take("file:src/a.ts", { ttlSecs: 600, note: "a note", reason: "a reason" });
        expect(grant).toMatchObject({
          changed: true,
          replayed: false,
          ended: [],
          waitedMs: expect.any(Number),
        });
        const [lease] = grant.leases;
        expect(lease).toMatchObject({
          key: "file:src/a.ts",
          agentId: "agent:a",
          sessionId: "default",
          worktreeId: WT1,
          holder: a.actor.holder,
          ttlSecs: 600,
          maxTotalSecs: 86_400,
          secretHash: expect.stringMatching(/^[0-9a-f]{64}$/),
          reason: "a reason",
          note: "a note",
          stopIdleAt: null,
          bind: "ttl",
          reach: "repository",
          stoleFrom: [],
        });
        expect(lease!.expiresAt!.wallMs - lease!.acquiredAt.wallMs).toBe(600_000);
        expect(await a.coordinator.list()).toMatchObject([
          { lease, standing: "valid", stale: false, remainingMs: expect.any(Number) },
        ]);
      });

      it("refuses what somebody else holds, and says who and until when", async () => {
        const { connect } = start();
        const [{ leaseId }] = (await connect("agent:a").take("file:x")).leases as [Lease];
        await expect(connect("agent:b").take("file:x")).rejects.toMatchObject({
          code: "E_LOCK_CONFLICT",
          data: { holders: [{ lease_id: leaseId, agent_id: "agent:a", expires_at: expect.any(String) }] },
        });
      });

      it.each([
        ["file:a/b", "dir:a", true],
        ["dir:a", "file:a/b", true],
        ["dir:a", "dir:a/b/c", true],
        ["dir:a/b/c", "dir:a", true],
        ["dir:.", "file:x", true],
        ["file:x", "dir:.", true],
        ["file:a/b", "file:a/c", false],
        ["dir:a/b", "dir:a/c", false],
        ["dir:a", "file:ab", false],
        ["file:a", "file:a/b", false],
        ["resource:a", "file:a", false],
        ["ref:refs/heads/a", "ref:refs/heads/a/b", false],
      ])("%s and %s: a conflict is %s", async (first, second, isConflict) => {
        const { connect } = start();
        await connect("agent:a").take(first);
        const taking = connect("agent:b").take(second);
        if (isConflict) await expect(taking).rejects.toMatchObject({ code: "E_LOCK_CONFLICT" });
        else await taking;
      });

      it("keeps to one worktree what is taken for one", async () => {
        const { connect } = start();
        const narrow = { reach: "worktree" as const };
        await connect("agent:a").take("file:x", narrow);
        await connect("agent:b", { worktree: WT2 }).take("file:x", narrow);
        expect(await code(connect("agent:c").take("file:x", narrow))).toBe("E_LOCK_CONFLICT");
        expect(await code(connect("agent:c").take("file:x"))).toBe("E_LOCK_CONFLICT");
        expect(await code(connect("agent:c").take("dir:."))).toBe("E_LOCK_CONFLICT");
      });

      it("takes all keys or none", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const b = connect("agent:b");
        await a.take("resource:two");
        expect(await code(b.take(["resource:one", "resource:two", "resource:three"]))).toBe(
          "E_LOCK_CONFLICT",
        );
        expect((await a.coordinator.list()).length).toBe(1);
        const { leases } = await b.take(["resource:one", "resource:three", "resource:one"]);
        expect(leases.map(({ key }) => key)).toEqual(["resource:one", "resource:three"]);
      });

      it("gives the same holder the same lease again, and writes nothing", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const first = await a.take("file:x");
        const again = await a.take("file:x");
        expect(again).toMatchObject({ changed: false, replayed: false });
        expect(again.leases).toEqual(first.leases);
        expect((await a.history()).length).toBe(1);
        expect(await code(connect("agent:a", { session: "other" }).take("file:x"))).toBe("E_LOCK_CONFLICT");
        expect(await code(connect("agent:a", { worktree: WT2 }).take("file:x"))).toBe("E_LOCK_CONFLICT");
        // The same party in another process, which cannot show the secret, gets the lease with a new one.
        const elsewhere = connect("agent:a");
        const [mine] = (await elsewhere.take("file:x")).leases;
        expect(mine!.leaseId).toBe(first.leases[0]!.leaseId);
        expect(mine!.secretHash).not.toBe(first.leases[0]!.secretHash);
        await elsewhere.release("file:x");
      });

      it("lets one holder have a directory and what is in it", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        await a.take("file:d/x");
        await a.take("dir:d");
        await a.take("file:d/y");
        expect((await a.coordinator.list()).length).toBe(3);
      });

      it("takes over what has expired, in one line, with a higher token", async () => {
        const { engine, connect } = start();
        const [old] = (await connect("agent:a").take("file:x", { ttlSecs: 1 })).leases as [Lease];
        await engine.pass(1_100);
        const b = connect("agent:b");
        const grant = await b.take("dir:.");
        expect(grant.ended).toMatchObject([{ leaseId: old.leaseId, how: "expired" }]);
        const [lease] = grant.leases as [Lease];
        expect(lease.fencingToken).toBeGreaterThan(old.fencingToken);
        expect(lease.stoleFrom).toEqual([{ leaseId: old.leaseId, agentId: "agent:a", why: "expired" }]);
        expect((await b.history()).map(({ type }) => type)).toEqual(["claim.acquired", "claim.acquired"]);
      });

      it("steals what is live only for those who may, with a reason, and never a writer lock", async () => {
        const { connect } = start();
        const [old] = (await connect("agent:a").take("file:x")).leases as [Lease];
        const writer = "worktree:wt:00000009";
        await connect("agent:a").take(writer);
        const human = connect("human:h");
        const why = { steal: true, reason: "mine" };
        expect(await code(connect("agent:b").take("file:x", why))).toBe("E_POLICY");
        expect(await code(human.take("file:x", { steal: true }))).toBe("E_USAGE");
        expect(await code(human.take(writer, why))).toBe("E_LOCK_CONFLICT");
        const grant = await human.take("file:x", why);
        expect(grant.ended).toMatchObject([{ leaseId: old.leaseId, how: "forced" }]);
        expect(grant.leases[0]!.fencingToken).toBeGreaterThan(old.fencingToken);
      });

      it("limits TTLs, leases without expiry, and keys", async () => {
        const { connect } = start({ maxIndefinitePerAgent: 1 });
        const a = connect("agent:a");
        const forever = { ttlSecs: 0, reason: "for good" };
        expect(await code(a.take("file:x", { ttlSecs: 86_401 }))).toBe("E_LIMIT");
        expect(await code(a.take("file:x", { ttlSecs: -1 }))).toBe("E_USAGE");
        expect(await code(a.take("file:x", { ttlSecs: 1.5 }))).toBe("E_USAGE");
        expect(await code(a.take(ISSUE, { ttlSecs: 0 }))).toBe("E_POLICY");
        expect(await code(a.take("file:x", forever))).toBe("E_POLICY");
        expect((await a.take(ISSUE, forever)).leases[0]).toMatchObject({
          expiresAt: null,
          maxTotalSecs: null,
        });
        expect(await code(a.take("scope:config", forever))).toBe("E_LIMIT");
        expect(await code(a.take([]))).toBe("E_USAGE");
        expect(await code(a.take([...Array(1_001).keys()].map((i) => `file:f${i}`)))).toBe("E_LIMIT");
        expect(await code(a.take("file:x", { reason: "x".repeat(1_001) }))).toBe("E_LIMIT");
        expect((await a.coordinator.list()).length).toBe(1);
      });

      it("binds a lease to its process where it is asked to", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const { leases } = await a.take("file:x", { bind: "process" });
        expect(leases[0]).toMatchObject({ bind: "process", expiresAt: null, maxTotalSecs: null, ttlSecs: 0 });
        expect(await code(connect("agent:b").take("file:x"))).toBe("E_LOCK_CONFLICT");
      });
    });

    describe("held", () => {
      it("answers with the leases while more than half of their time is left, and with null otherwise", async () => {
        const { engine, connect } = start();
        const a = connect("agent:a");
        const { leases } = await a.take(["file:x", "file:y"], { ttlSecs: 200 });
        expect(await a.held("file:x", "file:y")).toEqual(leases);
        expect(await a.held("file:x", "file:z")).toBe(null);
        expect(await connect("agent:b").held("file:x")).toBe(null);
        expect(await connect("agent:a").held("file:x")).toBe(null);
        await engine.pass(120_000);
        expect(await a.held("file:x")).toBe(null);
      });
    });

    describe("renew", () => {
      it("extends, and never shortens", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const [before] = (await a.take("file:x")).leases as [Lease];
        const [longer] = (await a.renew("file:x", 900)).leases as [Lease];
        // The two clocks of a machine drift against each other by a millisecond now and then.
        expect(longer.expiresAt!.wallMs - before.expiresAt!.wallMs).toBeGreaterThan(299_990);
        const [after] = (await a.renew("file:x", 60)).leases as [Lease];
        expect(after.expiresAt!.wallMs).toBeGreaterThan(longer.expiresAt!.wallMs - 10);
        expect(after).toMatchObject({ leaseId: before.leaseId, fencingToken: before.fencingToken });
      });

      it("is the holder's alone, before the end, and within the lifetime", async () => {
        const { engine, connect } = start({ maxTotalSecs: 700 });
        const a = connect("agent:a");
        await a.take("file:x");
        const b = connect("agent:b");
        expect(await code(b.renew("file:x"))).toBe("E_LOCK_NOT_HELD");
        expect(await code(a.renew("file:x", 800))).toBe("E_LIMIT");
        expect(await code(a.renew("file:x", 800, { overrideMax: true }))).toBe("E_USAGE");
        await a.renew("file:x", 800, { overrideMax: true, reason: "a long night" });
        expect(await code(a.renew("file:none"))).toBe("E_NOT_FOUND");
        await a.take("file:short", { ttlSecs: 1 });
        await engine.pass(1_100);
        expect(await code(a.renew("file:short"))).toBe("E_LOCK_EXPIRED");
      });

      it("renews several or none", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        await a.take(["file:x", "file:y"]);
        const leases = async () => (await a.coordinator.list()).map(({ lease }) => lease).sort(byToken);
        const before = await leases();
        expect(await code(a.renewAll(["file:x", "file:none"]))).toBe("E_NOT_FOUND");
        expect(await leases()).toEqual(before);
        expect((await a.renewAll(["file:x", "file:y"])).leases.length).toBe(2);
      });
    });

    it("heartbeat moves the last beat and nothing else", async () => {
      const { engine, connect } = start();
      const a = connect("agent:a");
      const [before] = (await a.take("file:x")).leases as [Lease];
      await engine.pass(50);
      const { leases, changed } = await a.beat("file:x");
      expect(changed).toBe(true);
      expect(leases[0]!.lastBeat.monotonicMs).toBeGreaterThan(before.lastBeat.monotonicMs);
      expect({ ...leases[0]!, lastBeat: before.lastBeat }).toEqual(before);
      expect(await code(connect("agent:b").beat("file:x"))).toBe("E_LOCK_NOT_HELD");
    });

    describe("release", () => {
      it("frees the key at once; the next token is higher", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const [old] = (await a.take("file:x")).leases as [Lease];
        expect(await a.release("file:x")).toMatchObject({
          changed: true,
          leases: [{ leaseId: old.leaseId }],
        });
        const [next] = (await connect("agent:b").take("file:x")).leases as [Lease];
        expect(next.fencingToken).toBeGreaterThan(old.fencingToken);
        expect(await code(a.release({ key: old.key, leaseId: old.leaseId }))).toBe("E_NOT_FOUND");
      });

      it("cannot end a successor's lease", async () => {
        const { engine, connect } = start();
        const a = connect("agent:a");
        const [old] = (await a.take("file:x", { ttlSecs: 1 })).leases as [Lease];
        await engine.pass(1_100);
        const b = connect("agent:b");
        await b.take("file:x");
        expect(await code(a.release({ key: old.key, leaseId: old.leaseId }))).toBe("E_FENCING_MISMATCH");
        expect(await code(a.release("file:x"))).toBe("E_LOCK_NOT_HELD");
        expect((await b.coordinator.list()).length).toBe(1);
      });

      it("of what has expired and nobody took is fine", async () => {
        const { engine, connect } = start();
        const a = connect("agent:a");
        await a.take("file:x", { ttlSecs: 1 });
        await engine.pass(1_100);
        await a.release("file:x");
        expect(await a.coordinator.list({ lapsed: true })).toEqual([]);
      });
    });

    describe("transfer", () => {
      it("hands the key over without an instant in which it is free", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const b = connect("agent:b", { worktree: WT2 });
        const [old] = (await a.take("file:x")).leases as [Lease];
        const [moved] = (await a.transfer("file:x", "agent:b", WT2)).leases as [Lease];
        expect(moved).toMatchObject({ agentId: "agent:b", worktreeId: WT2, secretHash: null, bind: "ttl" });
        expect(moved.fencingToken).toBeGreaterThan(old.fencingToken);
        expect(await code(connect("agent:c").take("file:x"))).toBe("E_LOCK_CONFLICT");
        expect(await code(a.renew({ key: old.key, leaseId: old.leaseId }))).toBe("E_FENCING_MISMATCH");
        expect(await code(connect("agent:b").renew("file:x"))).toBe("E_LOCK_NOT_HELD");
        // The first call of the new holder from that worktree makes it its own.
        const [adopted] = (await b.renew("file:x")).leases as [Lease];
        expect(adopted).toMatchObject({ leaseId: moved.leaseId, fencingToken: moved.fencingToken });
        expect(adopted.secretHash).not.toBe(null);
        await b.release("file:x");
      });

      it("needs a reason, the holder, and nothing of the giver's in the way", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        await a.take("file:d/x");
        await a.take("dir:d");
        expect(await code(a.transfer("dir:d", "agent:b", WT2, null))).toBe("E_USAGE");
        expect(await code(connect("agent:c").transfer("dir:d", "agent:b", WT2))).toBe("E_LOCK_NOT_HELD");
        expect(await code(a.transfer("dir:d", "agent:b", WT2))).toBe("E_LOCK_CONFLICT");
        await a.release("file:d/x");
        await a.transfer("dir:d", "agent:b", WT2);
      });
    });

    describe("evict", () => {
      it("is for those who may, with a reason, and its victim is told", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const human = connect("human:h");
        const [lease] = (await a.take("file:x")).leases as [Lease];
        expect(await code(connect("agent:b").evict("file:x", "enough"))).toBe("E_POLICY");
        expect(await code(human.evict("file:x", null))).toBe("E_USAGE");
        expect(await code(human.evict("file:none", "enough"))).toBe("E_NOT_FOUND");
        await human.evict("file:x", "enough");
        expect(await a.coordinator.list({ lapsed: true })).toEqual([]);
        const ref = { key: lease.key, leaseId: lease.leaseId };
        expect(await code(a.renew(ref))).toBe("E_FENCING_MISMATCH");
        expect(await a.coordinator.endings([ref])).toMatchObject([{ leaseId: lease.leaseId, how: "forced" }]);
        const last = (await a.history()).at(-1)!;
        expect(last).toMatchObject({
          type: "claim.evicted",
          actor: { agentId: "human:h" },
          payload: { reason: "enough", ended: [{ lease_id: lease.leaseId, cause: "forced" }] },
        });
      });

      it("of what has lapsed is everybody's, and names the true cause", async () => {
        const { engine, connect } = start();
        const a = connect("agent:a");
        const [lease] = (await a.take("file:x", { ttlSecs: 1 })).leases as [Lease];
        await engine.pass(1_100);
        await connect("agent:b").evict("file:x", "enough");
        expect(await code(a.renew({ key: lease.key, leaseId: lease.leaseId }))).toBe("E_LOCK_EXPIRED");
      });
    });

    describe("stop and upkeep", () => {
      it("a stopped session's leases end by themselves, unless it shows life", async () => {
        const { engine, connect } = start({ stopIdleSecs: 100 });
        const a = connect("agent:a");
        await a.take(["file:x", "file:y"], { bind: "process" });
        expect(await a.stop("file:x", "file:y")).toMatchObject({ changed: true });
        await a.upkeep("file:y");
        await engine.pass(110_000);
        const standing = new Map(
          (await a.coordinator.list({ lapsed: true })).map((s) => [s.lease.key as string, s.standing]),
        );
        expect(standing).toEqual(
          new Map([
            ["file:x", "stop_idle"],
            ["file:y", "valid"],
          ]),
        );
        await connect("agent:b").take("file:x");
        expect(await code(connect("agent:b").take("file:y"))).toBe("E_LOCK_CONFLICT");
      });

      it("upkeep renews what is below half of its time, and only that", async () => {
        const { engine, connect } = start();
        const a = connect("agent:a");
        await a.take("file:short", { ttlSecs: 200 });
        await a.take("file:long");
        expect(await a.upkeep("file:short", "file:long")).toMatchObject({ changed: false });
        await engine.pass(120_000);
        const { leases } = await a.upkeep("file:short", "file:long");
        expect(leases.map(({ key }) => key)).toEqual(["file:short"]);
        await engine.pass(120_000);
        expect((await a.coordinator.list()).length).toBe(2);
      });
    });

    it("gc logs the end of what has lapsed, once", async () => {
      const { engine, connect } = start();
      const a = connect("agent:a");
      await a.take(["file:x", "file:y"], { ttlSecs: 1 });
      await a.take("file:z");
      await engine.pass(1_100);
      expect((await a.coordinator.list()).map(({ lease }) => lease.key)).toEqual(["file:z"]);
      expect((await a.coordinator.list({ lapsed: true })).length).toBe(3);
      const swept = await a.coordinator.gc({ actor: a.actor });
      expect(swept).toMatchObject({ changed: true });
      expect(swept.leases.map(({ key }) => key).sort()).toEqual(["file:x", "file:y"]);
      expect(await a.coordinator.gc({ actor: a.actor })).toMatchObject({ changed: false, leases: [] });
      expect((await a.coordinator.list({ lapsed: true })).length).toBe(1);
    });

    it("find answers by key and by id, and leaves out what is not there", async () => {
      const { connect } = start();
      const a = connect("agent:a");
      const { leases } = await a.take(["file:x", "dir:y"]);
      const byId = leases.map(({ leaseId }) => ({ key: null, leaseId }));
      const keys = async (refs: LeaseRef[]) =>
        (await a.coordinator.find(refs)).map(({ lease }) => lease.key as string).sort();
      expect(await keys(byId)).toEqual(["dir:y", "file:x"]);
      expect(await keys([ref("file:x"), ref("file:none")])).toEqual(["file:x"]);
      expect(await keys([{ key: key("file:x"), leaseId: leases[1]!.leaseId }])).toEqual([]);
      expect(await keys([])).toEqual([]);
    });

    describe("waiting", () => {
      it("serves those who wait in the order in which they came", async () => {
        const { engine, connect } = start();
        const a = connect("agent:a");
        await a.take("file:x");
        const order: string[] = [];
        const places: number[] = [];
        const wait = async (agent: string) => {
          const waiter = connect(agent);
          const onWait = ({ ahead }: { ahead: number }) => void places.push(ahead);
          const grant = await waiter.take("file:x", { wait: { timeoutMs: 20_000, onWait } });
          order.push(agent);
          await waiter.release("file:x");
          return grant;
        };
        const waiting: Promise<Grant>[] = [];
        for (const agent of ["agent:b", "agent:c"]) {
          waiting.push(wait(agent));
          for (let looks = 0; looks < 400; looks++) {
            if ((await a.coordinator.waiters()).length === waiting.length) break;
            await engine.pass(20);
          }
        }
        // Whoever does not wait is not served before them; who holds it may ask for more.
        expect(await code(connect("agent:d").take("dir:."))).toMatch(/^E_(LOCK_CONFLICT|QUEUED)$/);
        expect((await a.coordinator.waiters()).map((t) => t.agentId)).toEqual(["agent:b", "agent:c"]);
        await a.release("file:x");
        const grants = await Promise.all(waiting);
        expect(order).toEqual(["agent:b", "agent:c"]);
        expect(places).toContain(0);
        expect(places).toContain(1);
        for (const { waitedMs } of grants) expect(waitedMs).toBeGreaterThan(0);
        expect(await a.coordinator.waiters()).toEqual([]);
      });

      it("gives up after its time, or when it is told to, and leaves the queue", async () => {
        const { engine, connect } = start();
        const a = connect("agent:a");
        await a.take("file:x");
        const timedOut = connect("agent:b").take("file:x", { wait: { timeoutMs: 100 } });
        await expect(timedOut).rejects.toMatchObject({ code: "E_WAIT_TIMEOUT", data: { position: 1 } });
        const controller = new AbortController();
        const wait: Wait = { timeoutMs: 60_000, signal: controller.signal };
        const aborted = code(connect("agent:c").take("file:x", { wait }));
        await engine.pass(30);
        controller.abort();
        expect(await aborted).toBe("E_INTERRUPTED");
        expect(await a.coordinator.waiters()).toEqual([]);
      });

      it("ends with the expiry of what is in the way", async () => {
        const { connect } = start();
        const { leases } = await connect("agent:a").take("file:x", { ttlSecs: 1 });
        const grant = await connect("agent:b").take("dir:.", { wait: { timeoutMs: 10_000 } });
        expect(grant.ended).toMatchObject([{ how: "expired" }]);
        expect(grant.leases[0]!.acquiredAt.monotonicMs).toBeGreaterThanOrEqual(
          leases[0]!.expiresAt!.monotonicMs,
        );
      });

      it("is not needed where nothing is in the way, and cures only what waiting can cure", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        await a.take("file:x", { wait: { timeoutMs: 10_000 } });
        const bad = a.take("file:y", { ttlSecs: -1, wait: { timeoutMs: 10_000 } });
        expect(await code(bad)).toBe("E_USAGE");
        expect(await a.coordinator.waiters()).toEqual([]);
      });
    });

    describe("request ids", () => {
      it("make a retry have the effect of doing it once", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const requestId = a.ulid();
        const first = await a.take("file:x", { requestId });
        const again = await a.take("file:x", { requestId });
        expect(again).toMatchObject({ changed: false, replayed: true, leases: first.leases });
        await a.release("file:x");
        expect(await a.take("file:x", { requestId })).toMatchObject({ replayed: true });
        expect(await a.coordinator.list()).toEqual([]);
        expect(await code(a.take("file:other", { requestId }))).toBe("E_USAGE");
        expect(await code(connect("agent:b").take("file:x", { requestId }))).toBe("E_USAGE");
      });

      it("are refused when they are too old to be remembered", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const requestId = a.ulid(-25 * 3_600_000);
        expect(await code(a.take("file:x", { requestId }))).toBe("E_LIMIT");
      });
    });

    describe("history and watch", () => {
      it("have everything, in one order, with actor and reason, and no secret", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        await a.take("file:x", { reason: "to begin" });
        await a.renew("file:x", 700);
        await a.beat("file:x");
        await a.transfer("file:x", "agent:b", WT2);
        await connect("agent:b", { worktree: WT2 }).release("file:x");
        const events = await a.history();
        expect(events.map(({ type }) => type)).toEqual([
          "claim.acquired",
          "claim.renewed",
          "claim.heartbeat",
          "claim.transferred",
          "claim.released",
        ]);
        expect(events.map(({ actor }) => actor.agentId)).toEqual([...Array(4).fill("agent:a"), "agent:b"]);
        expect(events[0]!.payload).toMatchObject({ reason: "to begin", leases: [{ key: "file:x" }] });
        const sequences = events.map(({ sequence }) => sequence);
        expect([...sequences].sort((x, y) => x - y)).toEqual(sequences);
        const text = JSON.stringify(events);
        for (const secret of a.secrets) expect(text).not.toContain(secret);
        const about = async (filter: Parameters<Coordinator["history"]>[0]) =>
          (await a.history(filter)).map(({ type }) => type);
        expect(await about({ key: key("file:none") })).toEqual([]);
        expect((await about({ agentId: "agent:b" as never })).length).toBe(1);
      });

      it("tell of every event from now on until closed", async () => {
        const { engine, connect } = start();
        const a = connect("agent:a");
        await a.take("file:before");
        const seen: LoggedEvent[] = [];
        const subscription = await connect("agent:w").coordinator.watch((event) => seen.push(event));
        await a.take("file:x");
        await a.release("file:x");
        for (let i = 0; i < 40 && seen.length < 2; i++) await engine.pass(50);
        subscription.close();
        expect(seen.map(({ type }) => type)).toEqual(["claim.acquired", "claim.released"]);
        await a.take("file:after");
        await engine.pass(100);
        expect(seen.length).toBe(2);
      });
    });

    describe("many at once", () => {
      it("one winner", async () => {
        const { connect } = start();
        const holders = [...Array(32).keys()].map((i) => connect(`agent:a${i}`));
        const results = await Promise.allSettled(holders.map((holder) => holder.take("file:x")));
        const refused = results.flatMap((r) =>
          r.status === "rejected" ? [r.reason as { code: string }] : [],
        );
        expect(refused.length).toBe(31);
        expect(new Set(refused.map((error) => error.code))).toEqual(new Set(["E_LOCK_CONFLICT"]));
      });

      it("everyone gets what nobody else wants, each with a token of its own", async () => {
        const { connect } = start();
        const a = connect("agent:a");
        const grants = await Promise.all([...Array(50).keys()].map((i) => a.take(`file:f${i}`)));
        const tokens = grants.map(({ leases }) => leases[0]!.fencingToken);
        expect(new Set(tokens).size).toBe(50);
        expect((await a.coordinator.list()).length).toBe(50);
        await Promise.all([...Array(50).keys()].map((i) => a.release(`file:f${i}`)));
        expect(await a.coordinator.list()).toEqual([]);
      });

      it("never two holders, however they come and go", async () => {
        const { connect } = start();
        let inside = 0;
        let most = 0;
        const turns = [...Array(8).keys()].map(async (i) => {
          const holder = connect(`agent:a${i}`);
          for (let round = 0; round < 3; round++) {
            await holder.take("resource:door", { wait: { timeoutMs: 30_000 } });
            most = Math.max(most, ++inside);
            await Promise.resolve();
            inside--;
            await holder.release("resource:door");
          }
        });
        await Promise.all(turns);
        expect(most).toBe(1);
      }, 40_000);
    });
  });
}

type Asked = string | LeaseRef;
type TakeOptions = Partial<Omit<AcquireRequest, "keys" | "actor" | "leaseIds">> & { readonly reach?: Reach };

/** A client that makes its secrets, shows all of them, and says things in few words. */
class Holder {
  readonly coordinator: Coordinator;
  readonly actor: Actor;
  readonly secrets: string[] = [];
  readonly #platform: Connection["platform"];

  constructor(connection: Connection) {
    this.coordinator = connection.coordinator;
    this.actor = connection.actor;
    this.#platform = connection.platform;
  }

  ulid(offsetMs = 0): Ulid {
    return makeUlid(this.#platform.clock.wallMs() + offsetMs, this.#platform.random.bytes(10));
  }

  take(names: string | readonly string[], options: TakeOptions = {}): Promise<Grant> {
    const { reach = "repository", ...rest } = options;
    const all = (typeof names === "string" ? [names] : names).map((name) => ({ key: key(name), reach }));
    return this.coordinator.acquire({
      keys: all,
      leaseIds: all.map(() => this.ulid()),
      ttlSecs: 600,
      bind: "ttl",
      reason: null,
      note: null,
      steal: false,
      wait: null,
      ...this.#showing(),
      ...rest,
    });
  }

  held(...names: string[]) {
    const keys = names.map((name) => ({ key: key(name), reach: "repository" as const }));
    return this.coordinator.held({
      actor: this.actor,
      keys,
      secrets: this.secrets,
      ttlSecs: 60,
      bind: "ttl",
    });
  }

  renew(name: Asked, ttlSecs = 600, more: { overrideMax?: boolean; reason?: string } = {}) {
    const { overrideMax = false, reason = null } = more;
    return this.coordinator.renew({ ...this.#naming(name), ttlSecs, overrideMax, reason });
  }

  renewAll(names: readonly string[]) {
    return this.coordinator.renew({
      ...this.#naming(...names),
      ttlSecs: 600,
      overrideMax: false,
      reason: null,
    });
  }

  beat(name: Asked) {
    return this.coordinator.heartbeat(this.#naming(name));
  }

  release(...names: Asked[]) {
    return this.coordinator.release({ ...this.#naming(...names), reason: null });
  }

  transfer(name: Asked, toAgent: string, toWorktree: string, reason: string | null = "yours") {
    const { leases, ...rest } = this.#naming(name);
    return this.coordinator.transfer({
      ...rest,
      lease: leases[0]!,
      newLeaseId: this.ulid(),
      toAgent: toAgent as never,
      toWorktree: toWorktree as WorktreeId,
      toBranch: null,
      reason,
    });
  }

  evict(name: Asked, reason: string | null) {
    const { actor, leases, requestId } = this.#naming(name);
    return this.coordinator.evict({ actor, leases, requestId, reason });
  }

  stop(...names: string[]) {
    const { actor, leases, secrets } = this.#naming(...names);
    return this.coordinator.stop({ actor, leases, secrets });
  }

  upkeep(...names: string[]) {
    const { actor, leases, secrets } = this.#naming(...names);
    return this.coordinator.upkeep({ actor, leases, secrets });
  }

  async history(filter: Parameters<Coordinator["history"]>[0] = {}): Promise<LoggedEvent[]> {
    const events: LoggedEvent[] = [];
    for await (const event of this.coordinator.history(filter)) events.push(event);
    return events;
  }

  #naming(...names: Asked[]) {
    return { ...this.#showing(), leases: names.map((name) => (typeof name === "string" ? ref(name) : name)) };
  }

  /** PROTOCOL 14: the caller makes the secret and has it before it asks; only the hash travels. */
  #showing() {
    const { random, digest } = this.#platform;
    const secret = [...random.bytes(16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const secrets = [...this.secrets];
    this.secrets.push(secret);
    return { actor: this.actor, secrets, secretHash: digest.sha256(secret), requestId: null };
  }
}

function key(text: string): LeaseKey {
  const parsed = parseKey(text);
  if (isRefusal(parsed)) throw new Error(`bad key in a test: ${parsed.message}`);
  return parsed;
}

function byToken(a: Lease, b: Lease): number {
  return a.fencingToken - b.fencingToken;
}

function ref(name: string): LeaseRef {
  return { key: key(name), leaseId: null };
}

async function code(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return String((error as { code?: unknown }).code ?? error);
  }
  throw new Error("expected a refusal");
}
