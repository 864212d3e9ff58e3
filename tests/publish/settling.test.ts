import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { Workspace } from "../../src/coordinator/workspace";
import { INTENT, intentName, intentToFact } from "../../src/features/publish/intents";
import { RefCommitter } from "../../src/features/publish/ref-committer";
import { settleIntents } from "../../src/features/publish/settlement";
import { RefWriter } from "../../src/git/refs";
import { openRepository } from "../../src/index";
import type { FactName } from "../../src/kernel/facts";
import { makeUlid } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import { nodePlatform } from "../../src/platform/node/node";
import { thisMachine } from "../../src/platform/node/this-machine";
import { Scene } from "../git/scene";
import { until } from "../support/program";

const REF = "refs/heads/topic/x";
const TAKEN_THERE = "taken:wt:00000000/0" as FactName;

async function workspaceOf(cwd: string, agentId: string): Promise<Workspace> {
  const machine = { ...thisMachine(), cwd, isTerminal: false };
  return Workspace.open(machine, { agentId, isLongLived: true });
}

/** Writes down, as a program does that goes on for long, what it is about to do; and then it is gone. */
async function intendAndDie(cwd: string, old: string | null, next: string): Promise<void> {
  const workspace = await workspaceOf(cwd, "agent:dead");
  const session = await workspace.session("write");
  const { processes, clock, random } = nodePlatform();
  const gone = { ...processes.self(), pid: spawnSync("true").pid, startTime: "1" };
  const intentId = makeUlid(clock.wallMs() as number, random.bytes(10) as Uint8Array);
  const intent = {
    intentId,
    publishId: intentId,
    requestId: null,
    noun: "publish" as const,
    ref: REF,
    old,
    new: next,
    agentId: "agent:dead",
    publisher: gone,
    git: gone,
    atMs: clock.wallMs() as number,
    claims: [],
    branchLease: null,
    facts: new Map([[TAKEN_THERE, { ref: REF }]]),
  };
  await session.write<true>([], {
    about: `publish ${REF}`,
    facts: [],
    isOnlyLogged: true,
    body: async () => ({
      type: "publish.intended",
      payload: { publish_id: intentId, ref: REF, old, new: next },
      facts: new Map([[intentName(intentId), intentToFact(intent)]]),
      answer: true,
    }),
  });
}

it("what a dead program was about to do is found in the log where the index does not know of it yet", async () => {
  const scene = new Scene();
  scene.write("a.txt", "one\n");
  const first = scene.commit();
  const repository = await openRepository({ cwd: scene.root, agentId: "agent:a" });
  try {
    await repository.acquire({ file: "a.txt" });
    const publish = (content: string) =>
      repository.publish({
        branch: "topic/x",
        message: "m",
        changes: [{ op: "put", path: "a.txt", content }],
      });
    const { commit } = await publish("two\n");
    await intendAndDie(scene.root, commit, first);
    const published = await publish("three\n");
    // Once it was in the way, and then it was settled.
    expect(published.retries).toBe(1);
    expect(published.parent).toBe(commit);
    const ends: unknown[] = [];
    for await (const { type, payload } of repository.history())
      if (type === "publish.abandoned") ends.push([payload["on_behalf_of"], payload["recovered"]]);
    expect(ends).toContainEqual(["agent:dead", true]);
  } finally {
    await repository.close();
  }
});

it("what two find at once is settled by one of them, and the other goes on", async () => {
  const scene = new Scene();
  scene.write("a.txt", "one\n");
  const first = scene.commit();
  scene.git("branch", "topic/x");
  await intendAndDie(scene.root, null, first);
  const [fast, slow] = [
    await workspaceOf(scene.root, "agent:fast"),
    await workspaceOf(scene.root, "agent:slow"),
  ];
  const seen = await slow.coordinator.facts({ kinds: [INTENT] });
  const settled = await settleIntents(fast, await fast.session("write"), new Set(), true);
  expect(settled.map(({ fate }) => fate)).toEqual(["committed"]);
  // What was to be so with it is so.
  expect([...(await fast.coordinator.facts({ kinds: ["taken"] })).keys()]).toEqual([TAKEN_THERE]);
  // It has looked a moment earlier.
  const coordinator = Object.create(slow.coordinator, { facts: { value: async () => seen } });
  const late = Object.create(slow, { coordinator: { value: coordinator } }) as Workspace;
  expect(await settleIntents(late, await slow.session("write"), new Set(), true)).toEqual([]);
});

it("removes no lock on the branch but the one that the dead program's own Git has left", async () => {
  const scene = new Scene();
  scene.write("a.txt", "one\n");
  const first = scene.commit();
  scene.write("a.txt", "two\n");
  const second = scene.commit();
  scene.git("branch", "topic/x", first);
  const lock = path.join(scene.root, ".git", `${REF}.lock`);
  const settle = async () => {
    await intendAndDie(scene.root, first, second);
    const workspace = await workspaceOf(scene.root, "agent:a");
    return settleIntents(workspace, await workspace.session("write"), new Set(), true);
  };
  // Somebody else's Git is at work there.
  fs.writeFileSync(lock, `${first}\n`);
  expect((await settle()).map(({ fate }) => fate)).toEqual(["abandoned"]);
  expect(fs.existsSync(lock)).toBe(true);
  // Empty, it may be anybody's who is about to write to it.
  fs.writeFileSync(lock, "");
  expect(await settle()).toEqual([]);
  expect(fs.existsSync(lock)).toBe(true);
  fs.writeFileSync(lock, `${second}\n`);
  expect((await settle()).map(({ fate }) => fate)).toEqual(["abandoned", "abandoned"]);
  expect(fs.existsSync(lock)).toBe(false);
});

it("where the branch is checked out, also the empty lock on HEAD goes, once it is too old to be anybody's", async () => {
  const scene = new Scene();
  scene.write("a.txt", "one\n");
  const first = scene.commit();
  scene.write("a.txt", "two\n");
  const second = scene.commit();
  scene.git("checkout", "--quiet", "-b", "topic/x", first);
  const lock = path.join(scene.root, ".git/HEAD.lock");
  const settle = async () => {
    await intendAndDie(scene.root, first, second);
    const workspace = await workspaceOf(scene.root, "agent:a");
    return settleIntents(workspace, await workspace.session("write"), new Set(), true);
  };
  const age = () => fs.utimesSync(lock, Date.now() / 1_000 - 60, Date.now() / 1_000 - 60);
  // Somebody switches branches there.
  fs.writeFileSync(lock, "ref: refs/heads/main\n");
  age();
  expect((await settle()).map(({ fate }) => fate)).toEqual(["abandoned"]);
  expect(fs.existsSync(lock)).toBe(true);
  fs.writeFileSync(lock, "");
  expect(await settle()).toEqual([]);
  expect(fs.existsSync(lock)).toBe(true);
  age();
  expect((await settle()).map(({ fate }) => fate)).toEqual(["abandoned", "abandoned"]);
  expect(fs.existsSync(lock)).toBe(false);
});

it("a Git that dies once the branch has moved leaves HEAD locked: that is settled once the lock is old", async () => {
  const scene = new Scene();
  scene.write("a.txt", "one\n");
  const first = scene.commit();
  scene.write("a.txt", "two\n");
  const second = scene.commit();
  scene.git("checkout", "--quiet", "-b", "topic/x", first);
  const lock = path.join(scene.root, ".git/HEAD.lock");
  const workspace = await workspaceOf(scene.root, "agent:a");
  const session = await workspace.session("write");
  const { platform, git } = workspace.surroundings;
  class Dying extends RefWriter {
    override async commit(): Promise<boolean> {
      await super.commit();
      await this.close();
      fs.writeFileSync(lock, "");
      return false;
    }
  }
  const { leases } = await session.acquire([{ key: `ref:${REF}` as LeaseKey, reach: "repository" }], {
    ...{ ttlSecs: 0, bind: "process", atMostSecs: 60 },
  });
  const ulid = makeUlid(Date.now(), platform.random.bytes(10) as Uint8Array);
  const committer = new RefCommitter(
    workspace,
    session,
    new Dying(platform, git, workspace.repository, "land"),
  );
  const attempt = await committer.attempt(
    {
      ...{ intentId: ulid, publishId: ulid, requestId: null, ref: REF, old: first, new: second, leases },
      ...{ payload: {}, result: {}, claims: [], secret: null, optimistic: [], edits: null },
      ...{ noun: "publish", mayMove: async () => {} },
      onCommitted: () => {},
    },
    { shown: Promise.resolve(), flushed: Promise.resolve() },
  );
  expect(attempt).toEqual({ kind: "moved", isBusy: true });
  expect(scene.git("rev-parse", "topic/x").trim()).toBe(second);
  const settle = async () =>
    (await settleIntents(workspace, session, committer.left, true)).map(({ fate }) => fate);
  expect(await settle()).toEqual([]);
  fs.utimesSync(lock, Date.now() / 1_000 - 60, Date.now() / 1_000 - 60);
  expect(await settle()).toEqual(["committed"]);
  expect(fs.existsSync(lock)).toBe(false);
});

it("a publisher that is stopped for too long does not keep the branch, and cannot commit after its successor", async () => {
  const scene = new Scene();
  scene.write("a.txt", "one\n");
  const first = scene.commit();
  scene.write("a.txt", "two\n");
  const second = scene.commit();
  scene.git("branch", "topic/x", first);
  const workspace = await workspaceOf(scene.root, "agent:stopped");
  const session = await workspace.session("write");
  const { platform, git } = workspace.surroundings;
  const { leases } = await session.acquire([{ key: `ref:${REF}` as LeaseKey, reach: "repository" }], {
    ...{ ttlSecs: 0, bind: "process", atMostSecs: 60 },
  });
  const ulid = makeUlid(Date.now() - 60_000, platform.random.bytes(10) as Uint8Array);
  const refs = new RefWriter(platform, git, workspace.repository, "publish");
  // It intends and prepares, and there it stops: its Git holds the branch.
  let goOn = () => {};
  const flushed = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const attempt = new RefCommitter(workspace, session, refs).attempt(
    {
      ...{ intentId: ulid, publishId: ulid, requestId: null, ref: REF, old: first, new: second, leases },
      ...{ payload: {}, result: {}, claims: [], secret: null, optimistic: [], edits: null },
      ...{ noun: "publish", mayMove: async () => {} },
      onCommitted: () => {},
    },
    { shown: Promise.resolve(), flushed },
  );
  const lock = path.join(scene.root, ".git", `${REF}.lock`);
  await until("its Git holds the branch", () => fs.existsSync(lock) && fs.statSync(lock).size > 0);
  // As its end does, without waiting for it.
  const human = await (await workspaceOf(scene.root, "human:h")).session("write");
  await human.evict([{ key: leases[0]!.key, leaseId: null }], { reason: "it is stopped" });
  const repository = await openRepository({ cwd: scene.root, agentId: "agent:next" });
  try {
    await repository.acquire({ file: "a.txt" });
    const changes = [{ op: "put", path: "a.txt", content: "three\n" }] as const;
    const { commit, parent } = await repository.publish({ branch: "topic/x", message: "m", changes });
    expect(parent).toBe(first);
    goOn();
    expect((await attempt).kind).not.toBe("committed");
    expect(scene.git("rev-parse", "topic/x").trim()).toBe(commit);
  } finally {
    await refs.close().catch(() => {});
    await repository.close();
  }
}, 60_000);
