import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import type { Hub } from "../support/hub";
import { behindProxy, clockOff, Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { expectJsonRefused } from "../support/refusals";

const it = oneIn(5);

describe("S65: an offline claim, then reconcile", () => {
  it("is local and provisional, written down before it is reported, and confirmed when the remote is back", async () => {
    const { hub, proxy, first, ids } = await behindProxy(1);
    const [id] = ids as [string];
    proxy.weather = { down: true };
    const claimed = await first.ask("claim", "acquire", id);
    expect(claimed.data).toMatchObject({ offline: true, degraded: true, claimed_by: "agent:first" });
    expect(claimed.json.warnings!.join()).toContain("provisional");
    expect(first.state.offline_claims).toMatchObject([
      { issue_id: id, lease_id: claimed.lease.lease_id, agent_id: "agent:first", clone: first.repo.control },
    ]);
    // Shown as such everywhere.
    for (const args of [["claim", "list"], ["claim", "status"], ["status"]])
      expect((await first.askHere(...args)).data.leases, args.join(" ")).toMatchObject([
        { ledger: "provisional" },
      ]);
    for (const args of [["claim", "acquire", id], ["claim", "status"], ["status"], ["issue", "show", id]])
      expect((await first.runHere(...args)).stdout, args.join(" ")).toContain("provisional");
    expect((await first.askHere("status")).data["needs_a_person"]).toMatchObject([
      { code: "claims_provisional" },
    ]);
    const status = await first.askHere("sync", "--status");
    expect(status.data).toMatchObject({ online: false, set_up: true, offline_claims: [{ issue_id: id }] });
    expectJsonRefused(await first.askHere("sync", "--reconcile"), 10, "E_REMOTE_UNREACHABLE");

    proxy.weather = {};
    const reconciled = await first.ask("sync", "--reconcile");
    expect(reconciled.data).toMatchObject({
      confirmed: [
        { issue_id: id, lease_id: claimed.lease.lease_id, fencing_token: claimed.lease.fencing_token },
      ],
      conflicts: [],
    });
    expect(hub.claim(id)).toMatchObject({ status: "held", lease_id: claimed.lease.lease_id });
    expect(first.state.offline_claims).toEqual([]);
    expect((await first.askHere("claim", "list")).data.leases).toMatchObject([{ ledger: "confirmed" }]);
    expect((await first.askHere("sync", "--reconcile")).data).toMatchObject({ confirmed: [], conflicts: [] });
  });

  it("is listed as a conflict when another machine was first, and ends here", async () => {
    const { hub, proxy, first, ids } = await behindProxy(2);
    const [taken, passed] = ids as [string, string];
    const second = Machine.clone(hub, "second");
    proxy.weather = { down: true };
    for (const id of [taken, passed]) await first.prepare("claim", "acquire", id);
    await second.prepare("claim", "acquire", taken);
    // Here somebody had it meanwhile, and has given it back.
    await second.prepare("claim", "acquire", passed);
    await second.prepare("claim", "release", passed);
    proxy.weather = {};
    const ran = await first.ask("sync", "--reconcile");
    expect(ran.status).toBe(1);
    expect(ran.json.data!["conflicts"]).toMatchObject([
      {
        issue_id: taken,
        agent_id: "agent:first",
        claimed_by: "agent:second",
        why: expect.stringContaining("has it"),
      },
      { issue_id: passed, why: expect.stringContaining("had it meanwhile") },
    ]);
    expect(hub.claim(taken)).toMatchObject({ agent_id: "agent:second" });
    expect(first.state.offline_claims).toEqual([]);
    // Nobody evicted it: the next write says who was first, as the reconcile did.
    for (const [id, who] of [
      [taken, "agent:second on .+ has it now"],
      [passed, "agent:second on .+ had it meanwhile"],
    ] as const) {
      const refused = await first.askHere("issue", "update", id, "--priority", "high");
      expectJsonRefused(refused, 8, "E_FENCING_MISMATCH");
      expect(refused.error.message).toMatch(
        new RegExp(`^that lease on issue:${id} is no more: the ledger did not confirm it: ${who}$`),
      );
    }
    expect(first.repo.log().map(({ event_type }) => event_type)).toContain("sync.conflict");
  });

  it("survives the death of its process at any later moment, and a lost state file", async () => {
    const { hub, proxy, first, ids } = await behindProxy(2);
    proxy.weather = { down: true };
    for (const id of ids) await first.prepare("claim", "acquire", id);
    fs.rmSync(path.join(first.ledger, "state.json"));
    proxy.weather = {};
    expect((await first.ask("sync", "--reconcile")).data["confirmed"]).toHaveLength(2);
    for (const id of ids) expect(hub.claim(id)).toMatchObject({ status: "held" });
  });

  it("given back before anybody heard of it: nothing is pushed; given back while the remote is away: told later", async () => {
    const { hub, proxy, first, ids } = await behindProxy(2);
    const [never, told] = ids as [string, string];
    await first.prepare("claim", "acquire", told);
    proxy.weather = { down: true };
    await first.prepare("claim", "acquire", never);
    await first.prepare("claim", "release", never);
    const released = await first.ask("claim", "release", told);
    expect(released.data).toMatchObject({ offline: true, degraded: true });
    const { expires_at } = hub.claim(told);
    expect(hub.claim(told)).toMatchObject({ status: "held" });
    const waiting = await first.askHere("sync", "--status");
    expect(waiting.data).toMatchObject({
      offline_claims: [],
      give_backs: expect.arrayContaining([{ issue_id: told, lease_id: released.lease.lease_id, expires_at }]),
    });
    const { stdout } = await first.runHere("sync", "--status");
    expect(stdout).toContain(
      `waits to be given back: issue ${told}; others may see it claimed until ${expires_at}`,
    );
    expect(stdout).not.toContain("nothing waits");
    expect((await first.runHere("doctor")).stdout).toContain("ended here, and the ledger has not heard of");
    proxy.weather = {};
    expect((await first.ask("sync", "--reconcile")).data).toMatchObject({ confirmed: [], withdrawn: [told] });
    expect(hub.claim(told)).toMatchObject({ status: "released" });
    expect(hub.refs("refs/cotenant/claims/")).not.toHaveProperty(`refs/cotenant/claims/${never}`);
    expect((await first.askHere("sync", "--status")).data).toMatchObject({ give_backs: [] });
    expect((await first.runHere("sync", "--status")).stdout).toContain(
      "nothing waits to be confirmed or given back",
    );
  });

  it("what is claimed again while the remote is away does not wait to be given back", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    await first.prepare("claim", "acquire", ids[0]!);
    fs.renameSync(hub.path, `${hub.path}.away`);
    await first.prepare("claim", "release", ids[0]!);
    await first.prepare("claim", "acquire", ids[0]!);
    expect((await first.askHere("sync", "--status")).data).toMatchObject({
      offline_claims: [{ issue_id: ids[0] }],
      give_backs: [],
    });
  });

  it("with --offline nobody is asked, and with auto_claim_push = false neither", async () => {
    const { hub, first, ids } = await sharedIssues(3);
    const [a, b, c] = ids as [string, string, string];
    expect((await first.askHere("claim", "acquire", a, "--offline")).data).toMatchObject({
      offline: true,
      degraded: false,
    });
    const off = { COTENANT_SYNC_AUTO_CLAIM_PUSH: "false" };
    expect((await first.askHereWith(off, "claim", "acquire", b)).data).toMatchObject({
      offline: true,
      degraded: false,
    });
    expect(hub.refs("refs/cotenant/claims/")).toEqual({});
    // The next claim that reaches the remote confirms them in passing.
    const ran = await first.ask("claim", "acquire", c);
    expect(ran.json.warnings!.join()).toContain("2 provisional claims were confirmed");
    for (const id of ids) expect(hub.claim(id)).toMatchObject({ status: "held", agent_id: "agent:first" });
  });

  it("made at once by several processes, each is written down; at 1,000 new ones are refused", async () => {
    const { first, ids } = await sharedIssues(4);
    const [a, b, ...more] = ids as [string, string, string, string];
    await first.prepare("claim", "acquire", a, "--offline");
    const started = more.map((id) => first.start(["claim", "acquire", id, "--offline", "--json"], {}, true));
    for (const running of started) running.go();
    for (const { done } of started) expect((await done).status).toBe(0);
    expect(first.state.offline_claims.map((claim) => claim["issue_id"]).sort()).toEqual([a, ...more].sort());
    const file = path.join(first.ledger, "state.json");
    const state = first.state;
    const [entry] = state.offline_claims;
    const many = Array.from({ length: 999 }, (_, n) => ({
      ...entry,
      lease_id: `01ARZ3NDEKTSV4RRFFQ6${String(n).padStart(6, "0")}`,
      issue_id: `01ARZ3NDEKTSV4RRFFQ7${String(n).padStart(6, "0")}`,
    }));
    fs.writeFileSync(file, JSON.stringify({ ...state, offline_claims: [entry, ...many] }));
    expectJsonRefused(await first.askHere("claim", "acquire", b, "--offline"), 9, "E_LIMIT");
    // It was granted in this clone by then, and is given up again.
    const { leases } = (await first.askHere("claim", "list")).data;
    expect(leases!.map(({ key }) => key)).not.toContain(`issue:${b}`);
    expect((await first.askHere("claim", "acquire", a, "--offline")).status).toBe(0);
  });
});

describe("S68: the connection drops in mid-push", () => {
  it("the answer is lost after the push was done: the outcome is read from the remote", async () => {
    const { hub, proxy, first, ids } = await behindProxy(2);
    const [id, slow] = ids as [string, string];
    proxy.weather = { losesAnswer: true };
    const ran = await first.ask("claim", "acquire", id);
    expect(proxy.lost).toBeGreaterThan(0);
    expect(ran.data).toMatchObject({ offline: false, claimed_by: "agent:first" });
    expect(hub.claim(id)).toMatchObject({ lease_id: ran.lease.lease_id });
    expect(hub.history(id)).toHaveLength(1);
    expect((await first.askHere("claim", "list")).data.leases).toMatchObject([{ ledger: "confirmed" }]);
    // And a slow one is waited for.
    proxy.weather = { delayMs: 100 };
    expect((await first.askHere("claim", "acquire", slow)).data).toMatchObject({ offline: false });
    expect(hub.claim(slow)).toMatchObject({ status: "held" });
  });

  // The verify layer cuts anywhere; these are before the push, and in the middle of it.
  it("cut after some bytes: it is held by exactly one, or by nobody", async () => {
    const cuts = [60, 600];
    const { hub, proxy, first, ids, url } = await behindProxy(cuts.length);
    const second = Machine.clone(hub, "second", { url });
    for (const [n, cutAfter] of cuts.entries()) {
      const id = ids[n]!;
      proxy.weather = { cutAfter };
      const env = { COTENANT_SYNC_OFFLINE_MODE: "fail", COTENANT_SYNC_CLAIM_RETRIES: "1" };
      const ran = await first.askWith(env, "claim", "acquire", id);
      expect([0, 2, 10], String(ran)).toContain(ran.status);
      proxy.weather = {};
      const other = await second.askHere("claim", "acquire", id);
      const holders = [ran, other].filter(({ status }) => status === 0);
      if (ran.status === 0) expectJsonRefused(other, 1, "E_LOCK_CONFLICT");
      // What may have landed without an answer is taken back with the next contact.
      await first.askHere("sync", "--reconcile");
      expect(holders.length).toBeLessThanOrEqual(1);
      expect((await second.askHere("claim", "acquire", id)).status).toBe(ran.status === 0 ? 1 : 0);
    }
  });

  it("giving up on an unclear push: the next contact adopts the claim, or takes it back", async () => {
    const { hub, proxy, first, ids } = await behindProxy(3);
    const [kept, dropped, late] = ids as [string, string, string];
    for (const [id, mode] of [
      [kept, "local"],
      [dropped, "fail"],
    ] as const) {
      proxy.weather = { losesAnswer: true, thenDown: true };
      const before = proxy.lost;
      const running = first.start(["claim", "acquire", id, "--json"], { COTENANT_SYNC_OFFLINE_MODE: mode });
      await until("the answer is lost", () => proxy.lost > before);
      const ran = await running.done;
      expect(ran.status, String(ran)).toBe(mode === "local" ? 0 : 10);
      await until("the push has landed", () => id in byIssue(hub));
      expect(first.repo.log().map(({ event_type }) => event_type)).toContain("sync.unsettled");
    }
    proxy.weather = {};
    const ran = await first.askHere("sync", "--reconcile");
    expect(ran.data).toMatchObject({ confirmed: [{ issue_id: kept }], withdrawn: [dropped] });
    expect(hub.claim(kept)).toMatchObject({ status: "held" });
    expect(hub.claim(dropped)).toMatchObject({ status: "released" });

    // The same of one that was offline first: given back before the next contact, it is taken back there as well.
    await first.prepare("claim", "acquire", late, "--offline");
    proxy.weather = { losesAnswer: true, thenDown: true };
    const before = proxy.lost;
    const running = first.start(["sync", "--reconcile", "--json"]);
    await until("the answer is lost", () => proxy.lost > before);
    expectJsonRefused(await running.done, 10, "E_REMOTE_UNREACHABLE");
    await until("the push has landed", () => late in byIssue(hub));
    await first.prepare("claim", "release", late);
    proxy.weather = {};
    expect((await first.askHere("sync", "--reconcile")).data).toMatchObject({ withdrawn: [late] });
    expect(hub.claim(late)).toMatchObject({ status: "released" });
  });
});

function byIssue(hub: Hub): Record<string, string> {
  return Object.fromEntries(
    Object.entries(hub.refs("refs/cotenant/claims/")).map(([ref, oid]) => [ref.split("/").at(-1)!, oid]),
  );
}

describe("S70: claims past their time", () => {
  it("a claim past claim_timeout_hours is released by a commit that names its owner; a heartbeat prevents it", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [lost, kept] = ids as [string, string];
    const second = Machine.clone(hub, "second", { env: { COTENANT_SYNC_CLAIM_TIMEOUT_HOURS: "2" } });
    first.env = { COTENANT_SYNC_CLAIM_TIMEOUT_HOURS: "2" };
    for (const id of [lost, kept])
      await first.prepare("claim", "acquire", id, "--ttl", "0", "--reason", "long work");
    expect(hub.claim(lost)).toMatchObject({ expires_at: null });
    await first.askWith(clockOff("+90m"), "claim", "heartbeat", kept);
    expect(hub.history(kept)).toHaveLength(2);
    const early = { ...clockOff("+100m") };
    expect((await second.askWith(early, "sync")).data["stale_released"]).toEqual([]);
    // Unset: never.
    const never = { ...clockOff("+300d"), COTENANT_SYNC_CLAIM_TIMEOUT_HOURS: undefined };
    expect((await second.askWith(never, "sync")).data["stale_released"]).toEqual([]);
    expectJsonRefused(await second.askWith(never, "claim", "acquire", lost), 1, "E_LOCK_CONFLICT");
    // Two find it at once: one of them is second, and sees it done.
    const third = Machine.clone(hub, "third", { env: { COTENANT_SYNC_CLAIM_TIMEOUT_HOURS: "2" } });
    const late = [second, third].map((machine) => machine.start(["sync", "--json"], clockOff("+150m"), true));
    for (const running of late) running.go();
    const released = (await Promise.all(late.map(({ done }) => done))).map(
      (one) => one.data["stale_released"],
    );
    expect(released).toContainEqual([{ issue_id: lost, agent_id: "agent:first" }]);
    expect(hub.history(lost).map(({ status }) => status)).toEqual(["held", "released"]);
    expect(hub.subjects(lost).at(-1)).toBe(`Auto-release stale claim on ${lost} (was: agent:first)`);
    expect(hub.claim(lost)).toMatchObject({
      status: "released",
      ended: { how: "stale", by: expect.stringMatching(/^agent:(second|third)$/) },
    });
    // Whoever was only slow hears of it with the next word.
    expectJsonRefused(
      await first.askWith(clockOff("+150m"), "claim", "heartbeat", lost),
      8,
      "E_FENCING_MISMATCH",
    );
    expect(hub.claim(kept)).toMatchObject({ status: "held" });
    expectJsonRefused(
      await second.askWith(clockOff("+150m"), "claim", "acquire", kept),
      1,
      "E_LOCK_CONFLICT",
    );
  });

  it("an expired one is anybody's, after the clocks' difference; renewals are pushed at most every third", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const second = Machine.clone(hub, "second");
    const { lease } = await first.prepare("claim", "acquire", id);
    await first.prepare("claim", "renew", id);
    expect(hub.history(id)).toHaveLength(1);
    await first.askWith(clockOff("+25m"), "claim", "renew", id);
    expect(hub.history(id)).toHaveLength(2);
    const renewed = Date.parse(String(hub.claim(id)["expires_at"]));
    expect(renewed).toBeGreaterThan(Date.parse(lease.expires_at!));
    expectJsonRefused(await second.askWith(clockOff("+70m"), "claim", "acquire", id), 1, "E_LOCK_CONFLICT");
    const taken = await second.askWith(clockOff("+90m"), "claim", "acquire", id);
    expect(taken.lease.fencing_token).toBeGreaterThan(lease.fencing_token);
  });
});
