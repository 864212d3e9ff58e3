import { beforeEach, describe, expect } from "vitest";
import { Hub } from "../support/hub";
import { behindProxy, clockOff, Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import type { Ran } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { ulid } from "../support/ulid";

const it = oneIn(4);

/** Publishes a file that only this clone has leased: what other machines know of is the claim. */
function publish(machine: Machine, ...more: string[]): Promise<Ran> {
  return machine.ask("publish", ...prepared(machine, more));
}

/** The same without a process. */
function publishHere(machine: Machine, ...more: string[]): Promise<Ran> {
  return machine.askHere("publish", ...prepared(machine, more));
}

function prepared(machine: Machine, more: readonly string[]): string[] {
  machine.repo.write("src/a.ts", `${more.join(" ")}\n`);
  return ["--branch", "topic/a", "--message", "Work", "--from-worktree", "src/a.ts", ...more];
}

const branches = (hub: Hub) => hub.refs("refs/heads/topic/");
const local = (machine: Machine) => machine.repo.git("for-each-ref", "refs/heads/topic/").trim();

describe("S64a: publishing under a claim is fenced at the remote", () => {
  let hub: Hub;
  let first: Machine;
  let id: string;

  beforeEach(async () => {
    const shared = await sharedIssues(1);
    [hub, first, id] = [shared.hub, shared.first, shared.ids[0]!];
    await first.prepare("lock", "acquire", "src/a.ts");
  });

  it("goes through, and beats the claim with each push", async () => {
    await first.prepare("claim", "acquire", id);
    for (const [n, round] of ["one", "two"].entries()) {
      const ran = await publish(first, "--push", "--message", round);
      expect(ran.data, String(ran)).toMatchObject({ push: { result: "pushed", remote: "origin" } });
      expect(branches(hub)).toEqual({ "refs/heads/topic/a": ran.data["commit"] });
      expect(hub.history(id)).toHaveLength(n + 2);
      expect(hub.subjects(id).at(-1)).toContain(`Publish under ${id} by agent:first`);
    }
    expect((await first.askHere("claim", "list")).data.leases).toMatchObject([{ ledger: "confirmed" }]);
    // Without a push, nobody is asked.
    hub.hook("pre-receive", "exit 1");
    expect((await publishHere(first, "--message", "three")).data).toMatchObject({
      push: null,
      changed: true,
    });
  });

  it("a machine that slept past its claim, which another took: its push is refused whole", async () => {
    const { lease } = await first.prepare("claim", "acquire", id);
    // It sleeps. Another machine, whose clock has moved on, takes the claim; it wakes, and believes in its lease.
    const second = Machine.clone(hub, "second");
    const taken = await second.askWith(clockOff("+2h"), "claim", "acquire", id);
    expect(taken.lease.fencing_token).toBeGreaterThan(lease.fencing_token);
    const request = ulid(Date.now());
    const ran = await publish(first, "--push", "--request-id", request);
    expectJsonRefused(ran, 8, "E_FENCING_MISMATCH");
    expect(ran.error.message).toContain("agent:second");
    expect(ran.error.hint).not.toContain("git push");
    expect(branches(hub)).toEqual({});
    expect(hub.claim(id)).toMatchObject({ agent_id: "agent:second", lease_id: taken.lease.lease_id });
    // Its lease here has ended with it, and asking again with the same id does not get around that.
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
    const again = await publishHere(first, "--push", "--request-id", request);
    expectJsonRefused(again, 8, "E_FENCING_MISMATCH");
    expect(branches(hub)).toEqual({});
  });

  it("what was written under a claim that has ended is published when nobody has had the issue since", async () => {
    // Done and given back: nobody can claim it again, and nobody has to.
    const { lease } = await first.prepare("claim", "acquire", id);
    const old = (await publishHere(first)).data["commit"] as string;
    expect(first.repo.git("log", "-1", "--format=%B", old)).toContain(`Cotenant-Lease: ${lease.lease_id}`);
    await first.prepare("issue", "update", id, "--state", "done", "--release");
    const done = await publishHere(first, "--push", "--message", "done");
    expect(done.data, String(done)).toMatchObject({ push: { result: "pushed" } });
    // Fenced like any other: the end of the claim is repeated, and stays what it was.
    expect(hub.subjects(id).at(-1)).toContain(`Publish under ${id} by agent:first`);
    expect(hub.claim(id)).toEqual(hub.history(id).at(-2));
    expect(hub.claim(id)).toMatchObject({ status: "released", ended: { how: "released" } });
    // What the remote has needs no claim any more.
    const free = await publishHere(first, "--push", "--message", "without a claim");
    expect(free.data, String(free)).toMatchObject({ push: { result: "pushed" } });
  });

  it("one that is over here only is given back with the push; one that somebody has ended covers nothing", async () => {
    await first.prepare("claim", "acquire", id);
    await publishHere(first);
    // Over here, and the remote has not heard of it: as it is when a claim runs out.
    first.repo.git("remote", "set-url", "origin", `${hub.path}.away`);
    await first.prepare("claim", "release", id);
    first.repo.git("remote", "set-url", "origin", hub.path);
    const over = await publishHere(first, "--push", "--message", "over");
    expect(over.data, String(over)).toMatchObject({ push: { result: "pushed" } });
    expect(hub.claim(id)).toMatchObject({ status: "released", ended: { how: "withdrawn" } });

    const { lease } = await first.prepare("claim", "acquire", id);
    await publishHere(first, "--message", "to be ended");
    const boss = Machine.clone(hub, "boss", { env: { COTENANT_AGENT_ID: "human:boss" } });
    await boss.prepare("claim", "force-evict", id, "--reason", "not now");
    expect((await first.askHere("sync")).status).toBe(1);
    const refused = await publishHere(first, "--push", "--message", "next");
    expectJsonRefused(refused, 8, "E_FENCING_MISMATCH");
    expect(refused.error.message).toContain(lease.lease_id);
    expect(refused.error.hint).toContain(`cotenant claim acquire ${id}`);
    await first.prepare("claim", "acquire", id);
    const covered = await publishHere(first, "--push", "--message", "claimed again");
    expect(covered.data, String(covered)).toMatchObject({ push: { result: "pushed" } });
  });

  it("another machine's claim in between is never made up for, however it ended", async () => {
    await first.prepare("claim", "acquire", id);
    await publishHere(first);
    await first.prepare("claim", "release", id);
    const second = Machine.clone(hub, "second");
    await second.prepare("claim", "acquire", id);
    await second.prepare("claim", "release", id);
    await first.prepare("claim", "acquire", id);
    const ran = await publishHere(first, "--push", "--message", "claimed again");
    expectJsonRefused(ran, 8, "E_FENCING_MISMATCH");
    expect(ran.error.message).toMatch(/agent:second on .* has had it since/);
    expect(branches(hub)).toEqual({});
  });

  it("a claim that was handed over within the clone covers what was written under it", async () => {
    await first.prepare("claim", "acquire", id);
    await publishHere(first);
    const worktree = (await first.askHere("worktree", "info")).data["worktree"] as { worktree_id: string };
    await first.prepare(
      ...["claim", "transfer", id, "--to-agent", "agent:other", "--to-worktree", worktree.worktree_id],
      ...["--reason", "done here"],
    );
    const ran = await publishHere(first, "--push", "--message", "handed over");
    expect(ran.data, String(ran)).toMatchObject({ push: { result: "pushed" } });
  });

  it("a provisional claim is refused before anything is written, and let through once it is confirmed", async () => {
    await first.prepare("claim", "acquire", id, "--offline");
    for (const more of [[], ["--push"]]) {
      const ran = await publishHere(first, ...more);
      expectJsonRefused(ran, 9, "E_PROVISIONAL");
      expect(ran.error.hint).toContain("sync --reconcile");
    }
    expect((await publishHere(first, "--dry-run")).json.data!["checks"]).toContainEqual(
      expect.objectContaining({ name: "leases", passed: false, code: "E_PROVISIONAL" }),
    );
    expect([local(first), branches(hub)]).toEqual(["", {}]);
    await first.prepare("sync", "--reconcile");
    expect((await publish(first, "--push")).data).toMatchObject({ push: { result: "pushed" } });
  });

  it("another remote is refused before anything is written, unless that is allowed", async () => {
    const other = new Hub();
    first.repo.git("remote", "add", "elsewhere", other.path);
    await first.prepare("claim", "acquire", id);
    const elsewhere = ["--push", "--remote", "elsewhere"];
    const ran = await publish(first, ...elsewhere);
    expectJsonRefused(ran, 9, "E_POLICY");
    expect(ran.error.hint).toContain("publish.unfenced_remote");
    expect([local(first), branches(other)]).toEqual(["", {}]);
    first.env = { COTENANT_PUBLISH_UNFENCED_REMOTE: "true" };
    const allowed = await publishHere(first, ...elsewhere);
    expect(allowed.json.warnings!.join()).toContain("not fenced");
    expect(branches(other)).toHaveProperty("refs/heads/topic/a");
    // The same one by another name is the same one.
    first.env = {};
    first.repo.git("remote", "add", "same", hub.path);
    expect((await publishHere(first, "--push", "--remote", "same")).status).toBe(0);
    expect(hub.history(id)).toHaveLength(2);
  });

  it("a remote that knows no atomic push is refused, unless that is allowed", async () => {
    hub.git("config", "receive.advertiseAtomic", "false");
    await first.prepare("claim", "acquire", id);
    const ran = await publish(first, "--push");
    expectJsonRefused(ran, 9, "E_POLICY");
    expect(ran.error.hint).toContain("publish.unfenced_remote");
    expect(branches(hub)).toEqual({});
    first.env = { COTENANT_PUBLISH_UNFENCED_REMOTE: "true" };
    expect((await publishHere(first, "--push")).data).toMatchObject({ push: { result: "pushed" } });
  });

  it("a branch that is refused takes the beat with it, and the claim stays as it was", async () => {
    await first.prepare("claim", "acquire", id);
    const before = hub.refs("refs/cotenant/");
    hub.hook("update", 'test "$1" != refs/heads/topic/a');
    const ran = await publish(first, "--push");
    expectJsonRefused(ran, 1, "E_PUSH_REJECTED");
    expect(ran.error.message).toContain("hook declined");
    expect(hub.refs("refs/cotenant/")).toEqual(before);
    expect((await first.askHere("claim", "list")).data.leases).toMatchObject([{ ledger: "confirmed" }]);
  });

  it("whoever holds no claim publishes as ever", async () => {
    const other = first.as("other");
    await first.prepare("claim", "acquire", id, "--offline");
    await other.prepare("lock", "acquire", "src/b.ts");
    other.repo.write("src/b.ts");
    const args = ["--branch", "topic/b", "--message", "x", "--from-worktree", "src/b.ts", "--push"];
    expect((await other.ask("publish", ...args)).data).toMatchObject({ push: { result: "pushed" } });
  });
});

describe("S68: the connection drops while a publish is pushed", () => {
  it("the outcome is read from the remote; where it cannot be asked, nothing is claimed", async () => {
    const { hub, proxy, first, ids } = await behindProxy(1);
    await first.prepare("lock", "acquire", "src/a.ts");
    await first.prepare("claim", "acquire", ids[0]!);
    proxy.weather = { losesAnswer: true };
    const ran = await publish(first, "--push");
    expect(proxy.lost).toBe(1);
    expect(ran.data, String(ran)).toMatchObject({ push: { result: "verified" } });
    expect(branches(hub)).toEqual({ "refs/heads/topic/a": ran.data["commit"] });
    // Pushed without an answer, and nobody there to be asked: the next one finds the beat, and goes on from it.
    proxy.weather = { losesAnswer: true, thenDown: true };
    first.repo.write("src/a.ts", "two\n");
    const args = [
      "--branch",
      "topic/a",
      "--message",
      "two",
      "--from-worktree",
      "src/a.ts",
      "--push",
      "--json",
    ];
    expectJsonRefused(await first.start(["publish", ...args]).done, 10, "E_REMOTE_UNREACHABLE");
    expect(hub.history(ids[0]!)).toHaveLength(3);
    proxy.weather = {};
    expect((await publishHere(first, "--push", "--message", "three")).data).toMatchObject({
      push: { result: "pushed" },
    });
    expect((await first.askHere("claim", "list")).data.leases).toMatchObject([{ ledger: "confirmed" }]);
  });
});
