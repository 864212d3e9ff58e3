import { describe, expect, it } from "vitest";
import type { LoggedEvent } from "../../src/coordinator/contract";
import { Statistics, spreadOf, Timeline } from "../../src/coordinator/statistics";

const T0 = Date.parse("2026-01-01T00:00:00.000Z");
const at = (secs: number) => new Date(T0 + secs * 1000).toISOString();
let sequence = 0;

interface Lease {
  readonly id: string;
  readonly key: string;
  readonly agent: string;
  readonly acquired: number;
  readonly expires?: number;
}

function lease({ id, key, agent, acquired, expires }: Lease): Record<string, unknown> {
  const expiresAt = expires === undefined ? null : at(expires);
  return { lease_id: id, key, agent_id: agent, acquired_at: at(acquired), expires_at: expiresAt };
}

function ended(of: Lease, cause: string, successor: string | null = null): Record<string, unknown> {
  return { lease_id: of.id, key: of.key, agent_id: of.agent, cause, successor };
}

function event(type: string, secs: number, payload: Record<string, unknown>): LoggedEvent {
  const actor = { agentId: "agent:x", sessionId: "s", worktreeId: "wt:00000000", host: "h", pid: 1 };
  return {
    schemaVersion: 1,
    sequence: ++sequence,
    type,
    timestamp: at(secs),
    actor,
    payload: { leases: [], ended: [], ...payload },
  };
}

const A: Lease = { id: "A", key: "file:a", agent: "agent:a", acquired: 0, expires: 10 };
const B: Lease = { id: "B", key: "file:a", agent: "agent:b", acquired: 60, expires: 600 };
const C: Lease = { id: "C", key: "file:a", agent: "human:c", acquired: 70, expires: 600 };

describe("statistics of a log", () => {
  it("count grants, renewals and every way to end", () => {
    const stats = new Statistics();
    stats.take(event("claim.acquired", 0, { leases: [lease(A)] }));
    stats.take(event("claim.renewed", 2, { leases: [lease(A)] }));
    stats.take(event("claim.heartbeat", 3, { leases: [lease(A)] }));
    stats.take(
      event("claim.acquired", 60, { leases: [lease(B)], ended: [ended(A, "expired", "B")], waited_ms: 900 }),
    );
    stats.take(event("claim.acquired", 70, { leases: [lease(C)], ended: [ended(B, "forced", "C")] }));
    stats.take(event("claim.released", 75, { ended: [ended(C, "released")] }));
    expect(stats.totals).toMatchObject({
      ...{
        acquired: 3,
        waited: 1,
        renewed: 1,
        heartbeats: 1,
        released: 1,
        expired: 1,
        taken_over: 1,
        stolen: 1,
      },
      ...{ evicted: 0, dead: 0, transferred: 0 },
    });
    expect(stats.agents.get("agent:b")).toMatchObject({ acquired: 1, waited: 1, stolen: 1, released: 0 });
    expect(stats.keys.get("file:a")).toMatchObject({ changedHands: 2, waitsMs: [900] });
    // The expired one was held until it expired, not until somebody noticed.
    expect(stats.holdsMs).toEqual([10_000, 10_000, 5_000]);
  });

  it("know from a checkpoint, or from events before the stretch, since when a lease was held", () => {
    const stats = new Statistics();
    stats.take(event("log.checkpoint", 100, { leases: [lease(B)] }));
    stats.prepare(event("claim.acquired", 101, { leases: [lease({ ...C, key: "dir:d", acquired: 101 })] }));
    expect(stats.events).toBe(0);
    stats.take(event("claim.released", 110, { ended: [ended(B, "released"), ended(C, "dead")] }));
    expect(stats.holdsMs).toEqual([50_000, 9_000]);
    expect(stats.totals).toMatchObject({ acquired: 0, released: 1, dead: 1, taken_over: 0 });
  });

  it("do not take a lease that was answered with again for a new one", () => {
    const stats = new Statistics();
    stats.take(event("claim.acquired", 0, { leases: [lease(A)] }));
    stats.take(event("claim.acquired", 1, { leases: [lease(A), lease({ ...B, key: "file:b" })] }));
    expect(stats.totals).toMatchObject({ acquired: 2, renewed: 1 });
  });

  it("tell an eviction from a steal, and count a transfer as a change of hands", () => {
    const stats = new Statistics();
    stats.take(event("claim.acquired", 0, { leases: [lease(A)] }));
    stats.take(event("claim.evicted", 1, { ended: [ended(A, "forced")] }));
    stats.take(event("claim.acquired", 60, { leases: [lease(B)] }));
    stats.take(event("claim.transferred", 61, { leases: [lease(C)], ended: [ended(B, "transferred", "C")] }));
    expect(stats.totals).toMatchObject({ evicted: 1, stolen: 0, transferred: 1, acquired: 2 });
    expect(stats.keys.get("file:a")?.changedHands).toBe(2);
  });
});

describe("a spread", () => {
  it("is null of nothing, and has the usual figures of many", () => {
    expect(spreadOf([])).toBeNull();
    expect(spreadOf([7])).toEqual({ count: 1, min: 7, median: 7, p95: 7, max: 7 });
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
    expect(spreadOf(hundred)).toEqual({ count: 100, min: 1, median: 50, p95: 95, max: 100 });
  });
});

describe("a timeline", () => {
  it("stays short however long the time, and loses nothing", () => {
    const line = new Timeline();
    for (let i = 0; i < 10_000; i++) line.add(T0 + i * 60_000);
    expect(line.counts.length).toBeLessThanOrEqual(60);
    expect(line.counts.reduce((sum, n) => sum + n, 0)).toBe(10_000);
    expect(line.counts.length * line.bucketMs).toBeGreaterThanOrEqual(9_999 * 60_000);
  });

  it("puts what a clock that was set back says into the first stretch", () => {
    const line = new Timeline();
    line.add(T0);
    line.add(T0 - 86_400_000);
    expect(line.counts).toEqual([2]);
  });
});
