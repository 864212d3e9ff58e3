import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { behindProxy, Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

const NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

describe("S62: two clones claim one issue at once", () => {
  it("exactly one gets it, the other exits 1 and names it", async () => {
    const { hub, ids } = await sharedIssues(1);
    const machines = ["a", "b"].map((name) => Machine.clone(hub, name));
    for (const id of ids) {
      const started = machines.map((machine) => machine.start(["claim", "acquire", id, "--json"], {}, true));
      for (const running of started) running.go();
      const ran = await Promise.all(started.map(({ done }) => done));
      const [winner, ...rest] = ran.filter(({ status }) => status === 0);
      expect(rest).toEqual([]);
      expect(winner!.data).toMatchObject({ offline: false, degraded: false, changed: true });
      const loser = ran.find(({ status }) => status !== 0)!;
      expectJsonRefused(loser, 1, "E_LOCK_CONFLICT");
      expect(loser.error.message).toContain(winner!.lease.agent_id);
      expect(loser.error.data.holders).toMatchObject([
        { agent_id: winner!.lease.agent_id, lease_id: winner!.lease.lease_id },
      ]);
      expect(hub.claim(id)).toMatchObject({
        status: "held",
        lease_id: winner!.lease.lease_id,
        fencing_token: winner!.lease.fencing_token,
        expires_at: winner!.lease.expires_at,
      });
      // Whoever lost has nothing left of it.
      const [here] = machines.filter(({ agent }) => agent !== winner!.lease.agent_id);
      const left = (await here!.askHere("claim", "list")).data.leases;
      expect(left.filter(({ issue_id }) => issue_id === id)).toEqual([]);
    }
  });

  it("tokens rise through release and claims on different machines", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [id, twin] = ids as [string, string];
    const second = Machine.clone(hub, "second");
    const tokens: number[] = [];
    // PROTOCOL 25: the same name on another machine is somebody else.
    await first.prepare("claim", "acquire", twin);
    expectJsonRefused(await second.as("first").askHere("claim", "acquire", twin), 1, "E_LOCK_CONFLICT");
    for (const machine of [first, second, first]) {
      tokens.push((await machine.prepare("claim", "acquire", id)).lease.fencing_token);
      expect((await machine.askHere("claim", "release", id)).data).toMatchObject({ offline: false });
      expect(hub.claim(id)).toMatchObject({ status: "released", fencing_token: tokens.at(-1) });
    }
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(tokens.length);
    expect(hub.history(id).map(({ status }) => status)).toEqual(tokens.flatMap(() => ["held", "released"]));
  });

  it("a claim from a new worktree is one for all machines, and moves along as one", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [fresh, own] = ids as [string, string];
    const second = Machine.clone(hub, "second");
    await first.prepare("claim", "acquire", own);
    const roots: string[] = [];
    for (const id of [fresh, own]) {
      const { lease, worktree } = await first.prepare("worktree", "create", "--issue", id, "--claim");
      roots.push((worktree as { root: string }).root);
      expect(hub.claim(id)).toMatchObject({ status: "held", fencing_token: lease.fencing_token });
      expectJsonRefused(await second.askHere("claim", "acquire", id), 1, "E_LOCK_CONFLICT");
    }
    const refused = await second.askHere("worktree", "create", "mine", "--issue", fresh, "--claim");
    expectJsonRefused(refused, 1, "E_LOCK_CONFLICT");

    // It is given back there with the worktree, also by whoever stands in it; or it is said that it is not.
    const inside = new Machine("first", TestRepo.of(roots[0]!), first.home);
    const removed = await inside.ask("worktree", "remove", ".");
    expect(removed.data["released"], String(removed)).toEqual([`issue:${fresh}`]);
    expect(hub.claim(fresh)).toMatchObject({ status: "released" });
    fs.renameSync(hub.path, `${hub.path}.away`);
    const away = await first.askHere("worktree", "remove", roots[1]!);
    expect(away.json.warnings!.join(), String(away)).toContain("others see the claim until it expires");
  });

  it("nobody is offered what another machine holds or has finished", async () => {
    const { hub, first, ids } = await sharedIssues(3);
    const [held, done, free] = ids as [string, string, string];
    const second = Machine.clone(hub, "second");
    await first.prepare("claim", "acquire", held);
    await first.prepare("claim", "acquire", done);
    await first.prepare("issue", "update", done, "--state", "done");
    await first.prepare("claim", "release", done);
    const next = await second.ask("claim", "next");
    expect(next.data.issue.id).toBe(free);
    const available = await second.askHere("query", "available");
    expect(available.data["issues"]).toEqual([]);
    const status = await second.askHere("claim", "status");
    expect(status.data["elsewhere"]).toMatchObject([{ issue_id: held, agent_id: "agent:first" }]);
    expect(status.data.leases).toMatchObject([{ issue_id: free, ledger: "confirmed" }]);
    expectJsonRefused(await second.askHere("claim", "acquire", done), 5, "E_TERMINAL_STATE");
    const text = (await second.runHere("claim", "status")).stdout;
    expect(text).toContain("ON OTHER MACHINES");
    expectJsonRefused(await second.askHere("claim", "next"), 4, "E_NOT_FOUND");
  });

  it("an issue that only the ledger has can be claimed at once, and is offered by its urgency", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const second = Machine.clone(hub, "second");
    const made = await first.prepare("issue", "create", "--title", "Only there", "--priority", "critical");
    const other = await first.prepare("issue", "create", "--title", "Also there");
    await first.prepare("sync");
    const named = await second.askHere("claim", "acquire", other.issue.short_id);
    expect(named.data, String(named)).toMatchObject({ offline: false });
    expect(second.issue(other.issue.id)).toMatchObject({ title: "Also there" });
    // Only that one was brought, and what was here is as it was.
    expect(fs.existsSync(second.issueFile(made.issue.id))).toBe(false);
    const next = await second.askHere("claim", "next");
    expect(next.data.issue.id).toBe(made.issue.id);
    expect(second.repo.git("status", "--porcelain", "--untracked-files=no").trim()).toBe("");
    const nobody = await second.askHere("claim", "acquire", NOBODY);
    expectJsonRefused(nobody, 4, "E_NOT_FOUND");
    expect(nobody.error.message).toContain("nor on the ledger");
    expect((await second.askHere("sync")).data).toMatchObject({ contradictions: [], kept: [] });
    expect(ids).toHaveLength(2);
  });

  it("evicting and stealing between machines need the right and a reason, and end the old claim", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [a, b] = ids as [string, string];
    const second = Machine.clone(hub, "second");
    for (const id of [a, b]) await first.prepare("claim", "acquire", id);
    expectJsonRefused(await second.askHere("claim", "force-evict", a, "--reason", "x"), 9, "E_POLICY");
    expectJsonRefused(await second.askHere("claim", "acquire", a, "--force", "--reason", "x"), 9, "E_POLICY");
    const person = second.as("person");
    const evicted = await person.ask(
      "claim",
      "force-evict",
      a,
      "--reason",
      "its machine is gone",
      "--agent-id",
      "human:eve",
    );
    expect(evicted.status).toBe(0);
    expect(hub.claim(a)).toMatchObject({ status: "released", ended: { how: "evicted", by: "human:eve" } });
    expect(hub.subjects(a).at(-1)).toContain("its machine is gone");
    const stolen = await person.ask(
      "claim",
      "acquire",
      b,
      "--force",
      "--reason",
      "urgent",
      "--agent-id",
      "human:eve",
    );
    expect(stolen.lease.agent_id).toBe("human:eve");
    // As a steal within one clone does, it says from whom; and why goes with the record.
    expect(stolen.lease["stole_from"]).toMatchObject([{ agent_id: "agent:first", why: "forced" }]);
    expect(hub.claim(b)).toMatchObject({ reason: "urgent", stole_from: [{ agent_id: "agent:first" }] });
    expect(hub.subjects(b).at(-1)).toMatch(/taken from agent:first: urgent/);
    const events = await person.askHere("events", "--type", "claim.acquired");
    expect(events.stdout).toContain('"why":"forced"');
    // The old holder still believes in its leases; the first contact tells it by whom they were ended, and why.
    const told = await first.askHere("sync");
    expect(told.status).toBe(1);
    const whys = (told.json.data!["conflicts"] as { why: string }[]).map(({ why }) => why).join("\n");
    expect(whys).toContain("human:eve: its machine is gone");
    expect(whys).toMatch(/human:eve.* took it over: urgent/);
    for (const id of [a, b]) {
      const update = await first.askHere("issue", "update", id, "--priority", "high");
      expectJsonRefused(update, 8, "E_FENCING_MISMATCH");
    }
  });

  it("asking again gives the same lease, and pushes nothing; a transfer keeps it in one hand, with a higher token", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const { lease } = await first.prepare("claim", "acquire", id);
    expect(lease.ttl_secs).toBe(3600);
    const before = hub.refs();
    const again = await first.ask("claim", "acquire", id);
    expect(again.lease).toEqual(lease);
    expect(again.data.changed).toBe(false);
    expect(hub.refs()).toEqual(before);
    const moved = await first.ask("claim", "transfer", id, "--to-agent", "agent:other", "--reason", "review");
    expect(moved.lease.fencing_token).toBeGreaterThan(lease.fencing_token);
    expect(hub.claim(id)).toMatchObject({
      status: "held",
      agent_id: "agent:other",
      lease_id: moved.lease.lease_id,
      fencing_token: moved.lease.fencing_token,
    });
    expect(hub.history(id).every(({ status }) => status === "held")).toBe(true);
  });

  it("waits for another machine's claim", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const second = Machine.clone(hub, "second");
    await first.prepare("claim", "acquire", id);
    const late = await second.askHere("claim", "acquire", id, "--wait", "--timeout", "1");
    expectJsonRefused(late, 12, "E_WAIT_TIMEOUT");
    const waiting = second.start(["claim", "acquire", id, "--wait", "--timeout", "100", "--json"]);
    await first.prepare("claim", "release", id);
    expect((await waiting.done).lease.agent_id).toBe("agent:second");
  });
});

describe("S63: two processes in one clone", () => {
  it("exactly one gets it", async () => {
    const { first, ids } = await sharedIssues(1);
    for (const id of ids) {
      const agents = ["x", "y", "z"].map((name) => first.as(name));
      const started = agents.map((machine) => machine.start(["claim", "acquire", id, "--json"], {}, true));
      for (const running of started) running.go();
      const ran = await Promise.all(started.map(({ done }) => done));
      expect(ran.filter(({ status }) => status === 0)).toHaveLength(1);
      for (const loser of ran.filter(({ status }) => status !== 0))
        expectJsonRefused(loser, 1, "E_LOCK_CONFLICT");
    }
  });

  it("two clones on one machine share its copy, and know of each other's claims offline, with the network or without", async () => {
    const { hub, first, ids } = await sharedIssues(4);
    const [held, fresh, before, raced] = ids as [string, string, string, string];
    const beside = Machine.clone(hub, "beside", { home: first.home });
    // The same place by another name: also once nothing is there any more.
    beside.repo.git("remote", "set-url", "origin", `${path.relative(beside.repo.root, hub.path)}/`);
    await first.prepare("claim", "acquire", held);
    // Known to be free, so that it is granted here before the remote is asked.
    await first.prepare("claim", "acquire", before);
    await first.prepare("claim", "release", before);
    expectJsonRefused(await beside.ask("claim", "acquire", held), 1, "E_LOCK_CONFLICT");
    await first.prepare("claim", "acquire", fresh, "--offline");
    const refused = await beside.askHere("claim", "acquire", fresh);
    expectJsonRefused(refused, 1, "E_LOCK_CONFLICT");
    expect(refused.error.message).toContain(`claimed offline by agent:first in ${first.repo.control}`);
    expect(hub.refs("refs/cotenant/claims/")).not.toHaveProperty(`refs/cotenant/claims/${fresh}`);

    fs.renameSync(hub.path, `${hub.path}.away`);
    expect((await first.askHere("claim", "acquire", before)).data).toMatchObject({ offline: true });
    expectJsonRefused(await beside.ask("claim", "acquire", before), 1, "E_LOCK_CONFLICT");
    // For as long as it is renewed, not only for its first term.
    const { lease } = await first.prepare("claim", "renew", before, "--ttl", "7200");
    expect(first.state.offline_claims).toContainEqual(
      expect.objectContaining({ issue_id: before, expires_at: lease.expires_at }),
    );
    const waited = await beside.askHere("claim", "acquire", before, "--wait", "--timeout", "1");
    expectJsonRefused(waited, 12, "E_WAIT_TIMEOUT");
    // Whoever was refused holds nothing, neither by name nor by taking what is next.
    expect((await beside.askHere("claim", "list")).data.leases).toEqual([]);
    const started = [first, beside].map((one) => one.start(["claim", "acquire", raced, "--json"], {}, true));
    for (const running of started) running.go();
    const ran = await Promise.all(started.map(({ done }) => done));
    expect(ran.map(({ status }) => status).sort()).toEqual([0, 1]);
    expectJsonRefused(await beside.askHere("claim", "next"), 4, "E_NOT_FOUND");
    const all = [first, beside].map(async (one) => (await one.askHere("claim", "list")).data.leases!);
    expect((await Promise.all(all)).flat().map(({ key }) => key)).toHaveLength(4);

    fs.renameSync(`${hub.path}.away`, hub.path);
    for (const one of [beside, first]) expect((await one.askHere("sync", "--reconcile")).status).toBe(0);
    expect(hub.claim(before)).toMatchObject({ status: "held", agent_id: "agent:first" });
    expect(fs.readdirSync(path.join(first.home, ".local/share/cotenant"))).toHaveLength(1);
  });

  it("a remote that two of them spell with and without .git is one, also while it is away", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const beside = Machine.clone(hub, "beside", { home: first.home, url: hub.path.replace(/\.git$/, "") });
    expect((await beside.askHere("sync")).status).toBe(0);
    fs.renameSync(hub.path, `${hub.path}.away`);
    await first.prepare("claim", "acquire", ids[0]!);
    expectJsonRefused(await beside.askHere("claim", "acquire", ids[0]!), 1, "E_LOCK_CONFLICT");
    expect(fs.readdirSync(path.join(first.home, ".local/share/cotenant"))).toHaveLength(1);
  });

  it("what a clone has claimed offline that was deleted since is free", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const beside = Machine.clone(hub, "beside", { home: first.home });
    await beside.prepare("claim", "acquire", ids[0]!, "--offline");
    fs.rmSync(beside.repo.root, { recursive: true });
    expect((await first.askHere("claim", "acquire", ids[0]!)).status).toBe(0);
  });
});

describe("S64: the ways in which it ends", () => {
  it("persistent rejection: exit 2, with the retries", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    hub.hook("pre-receive", "exit 1");
    const ran = await first.askWith({ COTENANT_SYNC_CLAIM_RETRIES: "2" }, "claim", "acquire", ids[0]!);
    expectJsonRefused(ran, 2, "E_RETRIES_EXHAUSTED");
    expect(ran.error.data).toMatchObject({ retries: 2 });
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
  });

  it("not configured: exit 3; without a ledger claims are as they always were", async () => {
    const { first, ids } = await sharedIssues(1, { setUp: false });
    expectJsonRefused(await first.ask("claim", "acquire", ids[0]!), 3, "E_LEDGER_NOT_CONFIGURED");
    const off = { COTENANT_SYNC_LEDGER_BRANCH: undefined };
    expectJsonRefused(await first.askHereWith(off, "sync"), 3, "E_LEDGER_NOT_CONFIGURED");
    const local = await first.askHereWith(off, "claim", "acquire", ids[0]!, "--offline");
    expect(local.lease.ttl_secs).toBe(600);
    expect(local.data).not.toHaveProperty("offline");
    // Set in a committed file, and nobody has trusted it: said as what it is.
    first.repo.write(".cotenant/config.toml", '[sync]\nledger_branch = "cotenant-sync"\n');
    const unheard = await first.askHereWith(off, "sync", "--setup-ledger");
    expectJsonRefused(unheard, 3, "E_LEDGER_NOT_CONFIGURED");
    expect(unheard.error.hint).toMatch(/'cotenant trust', then 'cotenant sync --setup-ledger'/);
  });

  it("no such remote: exit 3; missing: exit 4; closed: exit 5", async () => {
    const { first, ids } = await sharedIssues(1);
    const nowhere = { COTENANT_SYNC_REMOTE: "nowhere" };
    const ran = await first.askWith(nowhere, "claim", "acquire", ids[0]!);
    expectJsonRefused(ran, 3, "E_LEDGER_NOT_CONFIGURED");
    expectJsonRefused(await first.askHere("claim", "acquire", NOBODY), 4, "E_NOT_FOUND");
    await first.prepare("claim", "acquire", ids[0]!);
    await first.prepare("issue", "update", ids[0]!, "--state", "done");
    await first.prepare("claim", "release", ids[0]!);
    expectJsonRefused(await first.askHere("claim", "acquire", ids[0]!), 5, "E_TERMINAL_STATE");
  });

  it("remote down: exit 10, never 1, also for what somebody else had when it was last seen", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [a, b] = ids as [string, string];
    const fail = { COTENANT_SYNC_OFFLINE_MODE: "fail" };
    const second = Machine.clone(hub, "second");
    await second.prepare("claim", "acquire", b);
    expectJsonRefused(await first.askHere("claim", "acquire", b), 1, "E_LOCK_CONFLICT");
    fs.renameSync(hub.path, `${hub.path}.away`);
    expectJsonRefused(await first.askWith(fail, "claim", "acquire", a), 10, "E_REMOTE_UNREACHABLE");
    expectJsonRefused(await first.askHere("claim", "acquire", b), 10, "E_REMOTE_UNREACHABLE");
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
    expectJsonRefused(await first.askHere("sync"), 10, "E_REMOTE_UNREACHABLE");
    expectJsonRefused(await first.askHere("sync", "--setup-ledger"), 10, "E_REMOTE_UNREACHABLE");
  });

  it("a remote that never answers: exit 10 after network_timeout", async () => {
    const { proxy, first, ids } = await behindProxy(1);
    proxy.weather = { silent: true };
    const env = { COTENANT_SYNC_OFFLINE_MODE: "fail", COTENANT_SYNC_NETWORK_TIMEOUT: "1" };
    expectJsonRefused(await first.askWith(env, "claim", "acquire", ids[0]!), 10, "E_GIT_TIMEOUT");
  });
});
