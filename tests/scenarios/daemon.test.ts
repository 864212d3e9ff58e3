import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { shortId } from "../../src/features/issues/short-id";
import type { Ulid } from "../../src/kernel/ids";
import {
  type DaemonRecordJson,
  looksAfterDaemon,
  RawClient,
  recordFile,
  recordOf,
  startDaemon,
} from "../support/daemon";
import { Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { start, until } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(5);

type Answer = { result: Record<string, unknown>; error?: { code: number; data: Record<string, unknown> } };

let next = 1;
async function request(client: RawClient, method: string, params: object): Promise<Answer> {
  return (await client.ask(next++, method, params)) as unknown as Answer;
}

function client(record: DaemonRecordJson): RawClient {
  const made = new RawClient(record.socket);
  made.hello(record);
  return made;
}

describe("seed 004, phase 7: claims through the daemon", () => {
  let repo: TestRepo;
  let issue: string;
  let record: DaemonRecordJson;
  let me: RawClient;
  beforeEach(async () => {
    repo = TestRepo.make();
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    issue = await repo.issue();
    record = await startDaemon(repo);
    me = client(record);
  });
  const claim = (more: object = {}) =>
    request(me, "claim", { repo_path: repo.root, atom_id: issue, agent_id: "agent:a", ...more });

  const held = async () =>
    (await repo.askHere("agent:x", "claim", "list")).data.leases.map(({ agent_id }) => agent_id);

  it("are the agent's own: its commands prove them, and it may ask again", async () => {
    const { result } = await claim();
    expect(result).toMatchObject({ success: true, error: null, claimed_by: "agent:a", retries: 0 });
    expect((await claim()).result).toMatchObject({ success: true, lease_id: result["lease_id"] });
    const updated = await repo.ask("agent:a", "issue", "update", issue, "--priority", "high");
    expect(updated.status).toBe(0);
    expect((await repo.ask("agent:a", "claim", "release", issue)).status).toBe(0);
  });

  it("are refused with whoever has it", async () => {
    await claim();
    const { result } = await claim({ agent_id: "agent:b" });
    expect(result).toMatchObject({
      success: false,
      claimed_by: "agent:a",
      retries: 0,
      error: { code: "E_LOCK_CONFLICT" },
    });
  });

  it("are one for each issue, however many ask at once over however many connections", async () => {
    const all = await Promise.all(
      [...Array(12).keys()].map((at) =>
        request(client(record), "claim", {
          repo_path: repo.root,
          atom_id: issue,
          agent_id: `agent:n${at}`,
        }),
      ),
    );
    expect(all.filter(({ result }) => result["success"] === true)).toHaveLength(1);
  });

  it("of an unknown repository say how to begin; of a short id, or none, what is meant", async () => {
    const nowhere = await claim({ repo_path: path.join(scratch(), "none") });
    expect(nowhere.result).toMatchObject({ success: false, error: { code: "repo_not_found" } });
    expect((nowhere.result["error"] as { hint: string }).hint).toContain("cotenant init");
    expect((await claim({ atom_id: shortId(issue as Ulid, [issue as Ulid]) })).result).toMatchObject({
      success: true,
    });
    expect((await claim({ atom_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" })).result).toMatchObject({
      success: false,
      error: { code: "E_NOT_FOUND" },
    });
  });

  it("that are asked for again follow the agent into its new process", async () => {
    const [old, fresh] = [
      start(["sleep", "600"], { cwd: repo.root }),
      start(["sleep", "600"], { cwd: repo.root }),
    ];
    const { result } = await claim({ pid: old.pid });
    expect(result).toMatchObject({ success: true });
    old.kill("SIGKILL");
    await old.done;
    const again = await claim({ pid: fresh.pid });
    expect(again.result).toMatchObject({ success: true, lease_id: result["lease_id"] });
    const { leases } = (await repo.askHere("agent:x", "claim", "list")).data as unknown as {
      leases: { holder: { pid: number } }[];
    };
    expect(leases.map(({ holder }) => holder.pid)).toEqual([fresh.pid]);
    fresh.kill("SIGKILL");
  });

  it("with arguments that nobody knows are refused, and programs of other builds are told what is theirs", async () => {
    const { error } = await request(me, "claim", {
      ...{ repo_path: repo.root, atom_id: issue, agent_id: "agent:a" },
      ...{ ttl_secs: 60, pid: "x" },
    });
    expect(error).toMatchObject({
      code: -32602,
      data: {
        fields: expect.arrayContaining([
          { field: "ttl_secs", problem: "is not known here" },
          { field: "pid", problem: 'must be number, not "x"' },
        ]),
      },
    });
    for (const method of ["acquire", "release"])
      expect((await request(me, method, {})).error).toMatchObject({
        message: expect.stringContaining("only for programs of the daemon's own build"),
      });
  });

  it("with malformed arguments name each field", async () => {
    const { error } = await request(me, "claim", { repo_path: "here", atom_id: 7, agent_id: "human:eve" });
    expect(error).toMatchObject({ code: -32602 });
    const { fields } = error!.data as { fields: { field: string }[] };
    expect(fields.map(({ field }) => field).sort()).toEqual(["agent_id", "atom_id", "repo_path"]);
    const unknown = await claim({ pid: 2_000_000_000 });
    expect(unknown.result).toMatchObject({ success: false, error: { code: "E_USAGE" } });
  });

  it("stand though whoever asked has gone away", async () => {
    me.send(1, "claim", { repo_path: repo.root, atom_id: issue, agent_id: "agent:a" });
    me.socket.end();
    await until("it is claimed", async () => (await held()).includes("agent:a"));
  });

  it("are safe to ask for again when the daemon dies in the middle", async () => {
    for (let round = 0; round < 3; round++) {
      const now = round === 0 ? record : await startDaemon(repo);
      const asking = client(now);
      asking.send(1, "claim", { repo_path: repo.root, atom_id: issue, agent_id: "agent:a" });
      await new Promise((resolve) => setTimeout(resolve, 10 * round));
      process.kill(now.pid, "SIGKILL");
      await until("it is gone", () => asking.isClosed);
    }
    me = client(await startDaemon(repo));
    expect((await claim()).result).toMatchObject({ success: true, claimed_by: "agent:a" });
    expect((await claim({ agent_id: "agent:b" })).result).toMatchObject({ success: false });
  });

  it("go to repositories of others, which are forgotten when there are too many", async () => {
    const others = [...Array(18).keys()].map(() => TestRepo.make());
    for (const other of others)
      expect((await claim({ repo_path: other.root, atom_id: "x" })).result).toMatchObject({ success: false });
    const { result } = await request(me, "status", {});
    expect(result["other_repositories"]).toBe(16);
    const log = fs.readFileSync(recordFile(repo).replace(/json$/, "log"), "utf8");
    expect(log.match(/"message":"first use"/g)).toHaveLength(18);
  });

  it("end with their time where nobody says whose process they are for", async () => {
    repo.write(".cotenant/config.toml", "[coordination]\nauto_renew_leases = true\ndefault_ttl_secs = 2\n");
    expect((await repo.ask("human:me", "trust")).status).toBe(0);
    await claim();
    await until("it has run out", async () => (await held()).length === 0);
    const kept = await claim({ pid: process.pid });
    expect(kept.result).toMatchObject({ success: true });
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    expect(await held()).toEqual(["agent:a"]);
  });
});

describe("seed 004, phase 7: the ledger through the daemon", () => {
  it("is set up, fetched, sent and looked at", async () => {
    const { hub, ids } = await sharedIssues(1);
    const [one, two] = [Machine.clone(hub, "a"), Machine.clone(hub, "b")];
    const { repo, home } = one;
    // The daemon takes over no settings of whoever starts it.
    fs.mkdirSync(path.join(home, ".config/cotenant"), { recursive: true });
    fs.writeFileSync(
      path.join(home, ".config/cotenant/config.toml"),
      '[sync]\nledger_branch = "cotenant-sync"\n',
    );
    looksAfterDaemon(repo);
    expect((await one.start(["daemon", "start"]).done).status).toBe(0);
    const me = client(recordOf(repo)!);
    const sync = async (action: string) =>
      (await request(me, "ledger_sync", { repo_path: repo.root, action })).result;
    for (const action of ["setup", "status", "pull", "push", "reconcile"])
      expect(await sync(action), action).toMatchObject({ success: true, error: null, action });
    const claimed = await request(me, "claim", {
      repo_path: repo.root,
      atom_id: ids[0],
      agent_id: "agent:a",
    });
    expect(claimed.result).toMatchObject({ success: true, is_offline: false });
    const refused = await two.ask("claim", "acquire", ids[0]!);
    expect(refused.error).toMatchObject({ code: "E_LOCK_CONFLICT" });
    expect(refused.error.message).toContain("agent:a");
    const { error } = await request(me, "ledger_sync", { repo_path: repo.root, action: "destroy" });
    expect(error).toMatchObject({ code: -32602 });
  });

  it("keeps and ends claims of agents who ask by the program, and are their authors", async () => {
    const { hub, ids } = await sharedIssues(2);
    const [one, two] = [Machine.clone(hub, "a"), Machine.clone(hub, "b")];
    fs.mkdirSync(path.join(one.home, ".config/cotenant"), { recursive: true });
    fs.writeFileSync(
      path.join(one.home, ".config/cotenant/config.toml"),
      '[sync]\nledger_branch = "cotenant-sync"\n',
    );
    expect((await one.ask("sync", "--setup-ledger")).status).toBe(0);
    looksAfterDaemon(one.repo);
    expect((await one.start(["daemon", "start"]).done).status).toBe(0);
    for (const id of ids) {
      const claimed = await one.start(["claim", "acquire", id]).done;
      expect(claimed.status, String(claimed)).toBe(0);
      expect((await two.ask("claim", "acquire", id)).error).toMatchObject({ code: "E_LOCK_CONFLICT" });
    }
    const authors = hub.git("log", "--format=%an", `refs/cotenant/claims/${ids[0]}`);
    expect(String(authors).trim()).toBe("agent:a");
    // A claim that could wait goes without the daemon; these do not.
    for (const word of ["renew", "release"]) {
      const done = await one.start(["claim", word, ids[0]!]).done;
      expect(done.status, String(done)).toBe(0);
    }
    expect((await two.ask("claim", "acquire", ids[0]!)).status).toBe(0);
  });

  it("is not configured where there is none", async () => {
    const repo = TestRepo.make();
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    const me = client(await startDaemon(repo));
    const { result } = await request(me, "ledger_sync", { repo_path: repo.root, action: "pull" });
    expect(result).toMatchObject({
      success: false,
      action: "pull",
      error: { code: "E_LEDGER_NOT_CONFIGURED" },
    });
  });
});

describe("a holder that loses its lease", () => {
  it("is told at once, by whom and why", async () => {
    const repo = TestRepo.make();
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    const record = await startDaemon(repo);
    const held = (await repo.ask("agent:a", "lock", "acquire", "a.txt")).lease;
    const me = client(record);
    await request(me, "follow_losses", { refs: [{ key: null, lease_id: held.lease_id }] });
    const evicted = await repo.ask("human:eve", "lock", "steal", "a.txt", "--reason", "it hangs");
    expect(evicted.status).toBe(0);
    const told = await until("it is told", () => me.heard.find(({ method }) => method === "lost") ?? false);
    expect(told["params"]).toMatchObject({ lease_id: held.lease_id, key: "file:a.txt", by: "human:eve" });
  });
});
