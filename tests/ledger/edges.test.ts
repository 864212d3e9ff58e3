import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { Workspace } from "../../src/coordinator/workspace";
import { ledgerInFront } from "../../src/features/ledger/in-front";
import { openRepository } from "../../src/index";
import type { LeaseKey } from "../../src/kernel/keys";
import { thisMachine } from "../../src/platform/node/this-machine";
import { behindProxy, Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { type Ran, until } from "../support/program";
import { expectJsonRefused } from "../support/refusals";

const it = oneIn(4);

interface Finding {
  readonly check: string;
  readonly level: string;
  readonly message: string;
  readonly data: { readonly code?: string };
}

function ledgerFindings(doctor: Ran): Finding[] {
  const { findings } = doctor.json.data as unknown as { findings: Finding[] };
  return findings.filter(({ check }) => check === "ledger");
}

describe("doctor", () => {
  it("says how the ledger stands", async () => {
    const { hub, first, ids } = await sharedIssues(1, { setUp: false });
    expect(ledgerFindings(await first.ask("doctor"))).toMatchObject([
      { level: "warning", message: expect.stringContaining("no copy") },
    ]);
    await first.prepare("sync", "--setup-ledger");
    expect(ledgerFindings(await first.askHere("doctor"))).toMatchObject([{ level: "ok" }]);
    fs.renameSync(hub.path, `${hub.path}.away`);
    await first.prepare("claim", "acquire", ids[0]!);
    expect(ledgerFindings(await first.askHere("doctor"))).toMatchObject([
      { level: "warning", message: expect.stringContaining("1 claim not confirmed") },
      { level: "note", message: expect.stringContaining("remote unreachable") },
    ]);
    fs.rmSync(path.join(first.ledger, "ledger.git/objects"), { recursive: true });
    expect(
      ledgerFindings(await first.askHere("doctor"))
        .map(({ message }) => message)
        .join(),
    ).toContain("damaged");
    fs.writeFileSync(path.join(first.ledger, "state.json"), '{"schema_version": 9}');
    expect(ledgerFindings(await first.askHere("doctor"))).toMatchObject([
      { level: "error", data: { code: "E_SCHEMA_NEWER" } },
    ]);
    first.env = { COTENANT_SYNC_LEDGER_BRANCH: undefined };
    fs.rmSync(path.join(first.repo.root, ".git/cotenant/joined-ledger.json"));
    expect(ledgerFindings(await first.askHere("doctor"))).toMatchObject([
      { level: "ok", message: expect.stringContaining("no ledger") },
    ]);
  });
});

describe("settings", () => {
  it("names that Git would refuse are refused before anything is done", async () => {
    const { hub, first } = await sharedIssues(1, { setUp: false });
    const wrong = [
      ...["a..b", "x.lock", "@{u}"].map((name) => ({ COTENANT_SYNC_LEDGER_BRANCH: name })),
      { COTENANT_SYNC_CLAIMS_PREFIX: "refs/heads/cotenant-sync/" },
      { COTENANT_SYNC_OFFLINE_MODE: "maybe" },
      { COTENANT_SYNC_CLAIM_RETRIES: "0" },
      { COTENANT_SYNC_CLAIM_RETRIES: "101" },
    ];
    const before = hub.refs();
    for (const env of wrong) {
      const ran = await first.askHereWith(env, "sync", "--setup-ledger");
      expectJsonRefused(ran, 10, "E_CONFIG");
      expect(ran.error.message, JSON.stringify(env)).toMatch(/sync\.\w+/);
    }
    expect(hub.refs()).toEqual(before);
  });

  it("two things at once, or nothing that is known, is a usage error", async () => {
    const { first } = await sharedIssues(1, { setUp: false });
    for (const args of [["--status", "--reconcile"], ["extra"]])
      expectJsonRefused(await first.ask("sync", ...args), 64, "E_USAGE");
  });
});

describe("interrupted", () => {
  it("Ctrl-C in the middle of an exchange ends it at once, and leaves nothing in the way", async () => {
    const { hub, proxy, first, ids } = await behindProxy(1);
    proxy.weather = { silent: true };
    const before = proxy.connections;
    const running = first.start(["claim", "acquire", ids[0]!, "--json"]);
    await until("it is talking to the remote", () => proxy.connections > before);
    running.kill("SIGINT");
    const ended = await running.done;
    expect(ended.status).not.toBe(0);
    expect(ended.stderr).toContain(`interrupted: the claim on issue ${ids[0]} was given up`);
    proxy.weather = {};
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
    const ran = await first.ask("claim", "acquire", ids[0]!);
    expect(ran.data).toMatchObject({ offline: false });
    expect(hub.claim(ids[0]!)).toMatchObject({ lease_id: ran.lease.lease_id });
  });
});

describe("interrupted after the push has arrived", () => {
  it("it says that it may be there, holds nothing, and the next contact takes it back", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const [arrived, go] = [path.join(hub.room, "arrived"), path.join(hub.room, "go")];
    hub.hook("post-receive", `touch ${arrived}\nwhile [ ! -e ${go} ]; do sleep 0.05; done`);
    const running = first.start(["claim", "acquire", id, "--json"]);
    await until("the remote has it", () => fs.existsSync(arrived));
    running.kill("SIGINT");
    const ended = await running.done;
    fs.writeFileSync(go, "");
    expect(ended.status).not.toBe(0);
    expect(ended.stderr).toContain("if it has reached the remote, the next contact takes it back");
    expect(hub.claim(id)).toMatchObject({ status: "held" });
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
    const synced = await first.askHere("sync");
    expect(synced.data["withdrawn"]).toEqual([id]);
    expect(hub.claim(id)).toMatchObject({ status: "released" });
  });
});

describe("an interrupt after the claim", () => {
  it("takes nothing back: it was meant for something else", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const surroundings = {
      ...thisMachine(),
      ...{ cwd: first.repo.root, env: first.libraryEnv({}), isTerminal: false },
    };
    const workspace = await Workspace.open(surroundings, { agentId: "agent:a", engine: ledgerInFront });
    const session = await workspace.session("write");
    const stop = new AbortController();
    const keys = [{ key: `issue:${id}` as LeaseKey, reach: "repository" as const }];
    await session.acquire(keys, { ttlSecs: 600, interrupted: stop.signal });
    stop.abort();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await session.mine()).map(({ standing }) => standing)).toEqual(["valid"]);
    expect(hub.claim(id)).toMatchObject({ status: "held" });
  });
});

describe("offline claims", () => {
  it("many are confirmed in batches, with progress", async () => {
    const { hub, first, ids } = await sharedIssues(21);
    const offline = { COTENANT_SYNC_AUTO_CLAIM_PUSH: "false" };
    const repository = await openRepository({
      cwd: first.repo.root,
      agentId: "agent:a",
      env: first.libraryEnv(offline),
    });
    for (const issue of ids) await repository.acquire({ issue });
    const ran = await first.ask("sync", "--reconcile");
    expect(ran.data["confirmed"]).toHaveLength(21);
    expect(ran.stderr).toMatch(/settling claims: 21 of 21/);
    expect(Object.keys(hub.refs("refs/cotenant/claims/"))).toHaveLength(21);
  });

  it("of an issue that was deleted meanwhile is dropped, and said", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    await first.prepare("claim", "acquire", id, "--offline");
    // By somebody who needs no claim for it, so that this one stays.
    const loose = { COTENANT_WORKTREE_ENFORCE_LEASES: "off", COTENANT_AGENT_ID: "human:h" };
    await first.askHereWith(loose, "issue", "delete", id);
    const ran = await first.ask("sync", "--reconcile");
    expect(ran.json.data!["conflicts"]).toMatchObject([
      { issue_id: id, why: expect.stringContaining("deleted") },
    ]);
    expect(hub.refs("refs/cotenant/claims/")).toEqual({});
    expect(first.state.offline_claims).toEqual([]);
  });

  it("claim next goes on with what was last heard", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const second = Machine.clone(hub, "second");
    await second.prepare("claim", "acquire", ids[0]!);
    await first.prepare("sync");
    fs.renameSync(hub.path, `${hub.path}.away`);
    const ran = await first.ask("claim", "next");
    expect(ran.data.issue.id).toBe(ids[1]);
    expect(ran.data).toMatchObject({ offline: true, degraded: true });
  });

  it("an issue is written down and claimed in one, on all machines", async () => {
    const { hub, first } = await sharedIssues(1);
    const made = await first.ask("claim", "create", "--title", "New here");
    expect(made.data).toMatchObject({ offline: false });
    expect(hub.claim(made.data.issue.id)).toMatchObject({ status: "held", agent_id: "agent:first" });
  });
});

it("a claim that is renewed for much longer is told to others at once; a usual renewal is not", async () => {
  const { hub, first, ids } = await sharedIssues(2);
  const [id, other] = ids as [string, string];
  const expiry = (of = id) => Date.parse(String(hub.claim(of)["expires_at"]));
  await first.prepare("claim", "acquire", id);
  const before = expiry();
  await first.prepare("claim", "renew", id);
  expect(expiry()).toBe(before);
  await first.prepare("claim", "renew", id, "--ttl", "28800");
  expect(expiry()).toBeGreaterThan(before + 6 * 3_600_000);
  await first.prepare("claim", "acquire", other);
  await first.prepare("claim", "acquire", other, "--ttl", "28800");
  expect(expiry(other)).toBeGreaterThan(before + 6 * 3_600_000);
});

it("what is done here is done where the ledger's remote has another name now, with a warning; its branch is nobody's to publish to", async () => {
  const { hub, first, ids } = await sharedIssues(3);
  const [done, given, kept] = ids as [string, string, string];
  for (const id of ids) await first.prepare("claim", "acquire", id);
  first.repo.git("remote", "rename", "origin", "up");
  for (const args of [
    ["issue", "update", done, "--state", "done", "--release"],
    ["claim", "release", given],
    ["claim", "renew", kept, "--ttl", "7200"],
  ]) {
    const ran = await first.askHere(...args);
    expect(ran.status, `${ran}`).toBe(0);
    expect(JSON.stringify(ran.json)).toContain("others were not told");
  }
  expect(hub.claim(given)["status"]).toBe("held");
  first.repo.git("remote", "rename", "up", "origin");
  expect((await first.askHere("sync")).status).toBe(0);
  for (const id of [done, given]) expect(hub.claim(id)["status"]).not.toBe("held");
  first.repo.write("z.txt", "z\n");
  await first.prepare("lock", "acquire", "z.txt");
  const publish = ["publish", "--branch", "cotenant-sync", "--message", "z", "--from-worktree", "z.txt"];
  expect((await first.askHere(...publish)).error).toMatchObject({ code: "E_PROTECTED_REF" });
});

it("what was changed by hand does not reach whoever has claimed the issue, and is sent once the claim is over", async () => {
  const { hub, first, ids } = await sharedIssues(1);
  const [id] = ids as [string];
  await first.prepare("claim", "acquire", id);
  const second = Machine.clone(hub, "second");
  await second.prepare("sync", "--setup-ledger");
  await second.prepare("sync");
  const byHand = fs
    .readFileSync(second.issueFile(id), "utf8")
    .replace(/"title": "[^"]*"/, '"title": "By hand"');
  fs.writeFileSync(second.issueFile(id), byHand);
  fs.mkdirSync(path.join(second.repo.root, ".cotenant/gates/results"), { recursive: true });
  fs.writeFileSync(path.join(second.repo.root, `.cotenant/gates/results/${id}.jsonl`), "{}\n");
  const passed = (await second.askHere("sync")).data;
  expect(passed).toMatchObject({ pushed: [], kept: [] });
  expect(passed["unreadable"]).toEqual([
    { issue_id: id, why: expect.stringContaining("agent:first has claimed it") },
  ]);
  await first.prepare("issue", "update", id, "--description", "by whoever has it");
  expect((await first.askHere("sync")).data).toMatchObject({ pushed: [id], written: [] });
  expect(first.issue(id)["title"]).not.toBe("By hand");
  await first.prepare("claim", "release", id);
  fs.rmSync(path.join(second.repo.root, `.cotenant/gates/results/${id}.jsonl`));
  expect((await second.askHere("sync")).data).toMatchObject({ pushed: [id], unreadable: [] });
  await first.prepare("sync");
  expect(first.issue(id)).toMatchObject({ title: "By hand", description: "by whoever has it" });
});
