import { beforeEach, describe, expect } from "vitest";
import { openRepository } from "../../src/index";
import { oneIn } from "../support/one-in";
import type { LeaseJson } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
let id: string;
let lease: LeaseJson;
const approvers = (count: number) => repo.write(".cotenant/config.toml", `[policy]\napprovers = ${count}\n`);
beforeEach(async () => {
  repo = TestRepo.make();
  id = await repo.issue();
  lease = (await repo.prepare("agent:a", "claim", "acquire", id)).lease;
  approvers(1);
});

const evict = (who = "human:ada", ...more: string[]) =>
  repo.askHere(who, "claim", "force-evict", id, "--reason", "its machine is gone", ...more);
const propose = async (who = "human:ada") => (await evict(who)).error.data["proposal_id"] as string;
const approve = (who: string, proposal: string) => repo.askHere(who, "claim", "approve", proposal);
const isHeld = async () => (await repo.askHere("agent:a", "claim", "renew", id)).status === 0;
const types = () => repo.log().map(({ event_type: type }) => type);
const open = async () => (await repo.prepare("agent:a", "claim", "proposals"))["proposals"] as unknown[];

describe("policy.approvers", () => {
  it("makes force-evict a proposal, which says that nothing has ended yet and what is to be run", async () => {
    const ran = await repo.run("human:ada", "claim", "force-evict", id, "--reason", "its machine is gone");
    expectRefused(ran, 11, "E_APPROVAL_NEEDED");
    expect(ran.stderr).toMatch(
      /nothing has ended yet: human:ada proposes to end the lease of agent:a on issue:\S+: its machine is gone; needs one more approval/,
    );
    const command = /runs: (cotenant claim approve [0-9A-Z]{26})/.exec(ran.stderr)?.[1];
    expect(await isHeld()).toBe(true);
    const listed = await repo.run("agent:a", "claim", "proposals");
    expect(listed.stdout).toContain(`next: ${command}`);
    const { needs_a_person: findings } = await repo.prepare("agent:a", "status");
    expect(findings).toMatchObject([{ code: "eviction_proposed", next: expect.stringContaining(command!) }]);

    const agreed = await repo.run("human:bob", ...command!.split(" ").slice(1));
    expect(agreed).toMatchObject({
      status: 0,
      stdout: `agreed, and ended the lease of agent:a on issue:${id}\n`,
    });
    expect(repo.log().at(-1)).toMatchObject({
      event_type: "claim.evicted",
      actor: { agent_id: "human:bob" },
      payload: {
        reason: "its machine is gone",
        proposed_by: "human:ada",
        approved_by: ["human:bob"],
        ended: [{ lease_id: lease.lease_id, agent_id: "agent:a", cause: "forced" }],
      },
    });
    expectJsonRefused(await repo.askHere("agent:a", "claim", "renew", id), 8, "E_FENCING_MISMATCH");
    expect(await open()).toEqual([]);
    expectJsonRefused(await approve("human:eve", command!.split(" ").at(-1)!), 4, "E_NOT_FOUND");
  });

  it("is agreed to by the id of the proposal, of the issue, or of the lease", async () => {
    approvers(3);
    const proposal = await propose();
    expect((await approve("human:bob", id)).data).toMatchObject({ proposal: { proposal_id: proposal } });
    await repo.prepare("human:eve", "claim", "approve", lease.lease_id);
    await repo.prepare("human:kim", "claim", "approve", proposal);
    expect(await isHeld()).toBe(false);
    expectJsonRefused(await approve("human:bob", id), 4, "E_NOT_FOUND");
  });

  it("proposing twice is the same proposal, whoever does it", async () => {
    const first = await propose();
    expect(await propose()).toBe(first);
    expect(await propose("human:bob")).toBe(first);
    expect(types().filter((type) => type.startsWith("eviction."))).toEqual(["eviction.proposed"]);
  });

  it("counts neither the proposer, nor another name of theirs, nor whom policy.evict does not allow", async () => {
    const proposal = await propose();
    expectJsonRefused(await approve("human:ada", proposal), 9, "E_POLICY");
    expectJsonRefused(await approve("admin:ada", proposal), 9, "E_POLICY");
    expectJsonRefused(
      await repo.askHere("human:ada", "claim", "approve", proposal, "--session", "other"),
      9,
      "E_POLICY",
    );
    expectJsonRefused(await approve("agent:b", proposal), 9, "E_POLICY");
    expect(await isHeld()).toBe(true);
    expect((await approve("human:bob", proposal)).data["evicted"]).toBe(true);
  });

  it("waits for as many as it says, each once", async () => {
    approvers(2);
    const proposal = await propose();
    const first = await approve("human:bob", proposal);
    expect(first.data).toMatchObject({
      evicted: false,
      proposal: { missing: 1, approved_by: ["human:bob"] },
    });
    expect((await approve("admin:bob", proposal)).data).toMatchObject({ evicted: false });
    const again = await repo.runHere("human:bob", "claim", "approve", proposal);
    expect(again.stdout).toBe("you have agreed already; nothing has ended yet: needs one more approval\n");
    for (const look of [["status"], ["claim", "proposals"]])
      expect((await repo.runHere("agent:a", ...look)).stdout).toContain(
        "(approved by human:bob, needs one more approval)",
      );
    expect(await isHeld()).toBe(true);
    expect((await approve("human:eve", proposal)).data).toMatchObject({
      evicted: true,
      leases: [{ lease_id: lease.lease_id }],
    });
    expect(types().filter((type) => type.startsWith("eviction."))).toEqual([
      "eviction.proposed",
      "eviction.approved",
      "eviction.approved",
    ]);
  });

  it("holds for lock steal, claim acquire --force and a transfer as well", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.txt");
    const steal = await repo.askHere("human:ada", "lock", "steal", "a.txt", "--reason", "r");
    expectJsonRefused(steal, 11, "E_APPROVAL_NEEDED");
    expect(steal.error.hint).toMatch(/^propose it: cotenant claim force-evict [0-9A-Z]{26} --reason <why>/);
    const force = await repo.askHere("human:ada", "claim", "acquire", id, "--force", "--reason", "r");
    expectJsonRefused(force, 11, "E_APPROVAL_NEEDED");
    const args = ["claim", "transfer", id, "--to-agent", "agent:b", "--reason", "r"];
    expectJsonRefused(await repo.askHere("human:ada", ...args), 11, "E_APPROVAL_NEEDED");
    // Once it is proposed, nobody is told to propose it.
    const proposal = await propose();
    const approving = `cotenant claim approve ${proposal}`;
    const forceAgain = await repo.askHere("human:ada", "claim", "acquire", id, "--force", "--reason", "r");
    expect(forceAgain.error.hint).toBe(
      `you have proposed to end it already; somebody else whom policy.evict allows runs: ${approving}`,
    );
    const byBob = await repo.askHere("human:bob", ...args);
    expect(byBob.error.hint).toBe(`human:ada has proposed to end it; if you agree: ${approving}`);
    // A lock is proposed and ended in the same way.
    const lock = (await repo.prepare("agent:a", "lock", "acquire", "a.txt")).lease;
    const ended = await repo.askHere("human:ada", "claim", "force-evict", lock.lease_id, "--reason", "r");
    await repo.prepare("human:bob", "claim", "approve", ended.error.data["proposal_id"] as string);
    await repo.prepare("agent:b", "lock", "acquire", "a.txt");
  });

  it("says where nothing is proposed, and how to propose it", async () => {
    const { error } = await approve("human:bob", id);
    expect(error).toMatchObject({
      code: "E_NOT_FOUND",
      message: `nobody has proposed to end the lease of agent:a on issue:${id}`,
      hint: `to propose it: cotenant claim force-evict ${id} --reason <why>`,
    });
    const bare = await repo.runHere("human:bob", "claim", "approve");
    expectRefused(bare, 64, "E_USAGE");
    expect(bare.stderr).toContain("'claim approve' needs a proposal, an issue or a lease");
  });

  it("takes a lock by its key, and says so to whoever types its path", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.txt", "noext");
    for (const [path, verb, more] of [
      ["a.txt", "force-evict", ["--reason", "r"]],
      ["noext", "force-evict", ["--reason", "r"]],
      ["a.txt", "transfer", ["--to-agent", "agent:b", "--reason", "r"]],
      ["a.txt", "approve", []],
    ] as const) {
      const { error } = await repo.askHere("human:ada", "claim", verb, path, ...more);
      expect(error.code).toBe("E_USAGE");
      expect(error.message).toBe(`"${path}" is no issue; a lock is named by its key, file:${path}`);
      expect(error.hint).toContain(`cotenant claim ${verb} file:${path}`);
    }
    const { error } = await repo.askHere("human:ada", "claim", "force-evict", "file:a.txt", "--reason", "r");
    expect(error.code).toBe("E_APPROVAL_NEEDED");
    expect((await approve("human:bob", "file:a.txt")).data).toMatchObject({ evicted: true });
    approvers(0);
    const moved = ["claim", "transfer", "file:noext", "--to-agent", "agent:b", "--reason", "r"];
    expect((await repo.askHere("human:ada", ...moved)).data.leases).toMatchObject([{ key: "file:noext" }]);
  });

  it("is not taken for an issue where a name is nobody's", async () => {
    const { error } = await approve("human:bob", "nosuch");
    expect(error.code).toBe("E_NOT_FOUND");
    expect(error.message).toContain("no open proposal nosuch");
    expect(error.hint).toContain("cotenant claim proposals");
  });

  it("is void once the lease has ended or changed hands, or an hour has passed", async () => {
    const proposal = await propose();
    await repo.prepare("agent:a", "claim", "release", id);
    expectJsonRefused(await approve("human:bob", proposal), 4, "E_NOT_FOUND");
    await repo.prepare("agent:b", "claim", "acquire", id, "--ttl", "86400");
    expectJsonRefused(await approve("human:bob", proposal), 4, "E_NOT_FOUND");
    const next = await propose();
    expect(next).not.toBe(proposal);
    const late = await repo.askAt(3_601, "human:bob", "claim", "approve", next);
    expectJsonRefused(late, 4, "E_NOT_FOUND");
    expect(await open()).toHaveLength(1);
    await repo.askAt(3_601, "agent:a", "gc");
    expect(await open()).toEqual([]);
    expect(types()).toContain("eviction.void");
  });

  it("asks nobody about what has run out, and survives compaction", async () => {
    const proposal = await propose();
    await repo.prepare("agent:a", "gc", "--compact");
    expect(await open()).toHaveLength(1);
    const late = ["claim", "force-evict", id, "--reason", "r"];
    expect((await repo.askAt(3_600, "human:ada", ...late)).status).toBe(0);
    expectJsonRefused(await approve("human:bob", proposal), 4, "E_NOT_FOUND");
  });

  it("is raised by a committed file, and lowered by none that nobody trusts", async () => {
    approvers(0);
    const env = { COTENANT_POLICY_APPROVERS: "1" };
    const args = ["claim", "force-evict", id, "--reason", "r"];
    expectJsonRefused(await repo.askWith(env, "human:ada", ...args), 11, "E_APPROVAL_NEEDED");
    approvers(1);
    const lower = { COTENANT_POLICY_APPROVERS: "0" };
    expectJsonRefused(await repo.askWith(lower, "human:ada", ...args), 11, "E_APPROVAL_NEEDED");
  });

  it("can be done by programs", async () => {
    const ada = await openRepository({ cwd: repo.root, agentId: "human:ada" });
    const bob = await openRepository({ cwd: repo.root, agentId: "human:bob" });
    await expect(ada.evict({ issue: id }, { reason: "r" })).rejects.toMatchObject({
      code: "E_APPROVAL_NEEDED",
    });
    const [proposal] = await bob.proposals();
    expect(await bob.approve(proposal!.id)).toMatchObject({ missing: 0, change: { changed: true } });
  });

  it("ends a lease once, however many agree at the same time", async () => {
    approvers(2);
    const proposal = await propose();
    const people = ["bob", "eve", "kim", "lee", "max", "zoe"];
    const ran = await Promise.all(
      people.map((name) => repo.start(`human:${name}`, ["claim", "approve", proposal, "--json"]).done),
    );
    for (const { status } of ran) expect([0, 4]).toContain(status);
    expect(ran.filter((one) => one.status === 0 && one.data["evicted"] === true)).toHaveLength(1);
    const lines = repo.log().filter(({ event_type: type }) => type === "claim.evicted");
    expect(lines).toHaveLength(1);
    const { approved_by: by } = lines[0]!.payload as unknown as { approved_by: string[] };
    expect(by.length).toBeGreaterThanOrEqual(2);
    expect(new Set(by).size).toBe(by.length);
  });

  it("is finished by whoever comes next when the last one died before it ended the lease", async () => {
    const proposal = await propose();
    approvers(2);
    await repo.prepare("human:bob", "claim", "approve", proposal);
    approvers(1);
    expect((await evict("human:ada")).status).toBe(0);
    expect(repo.log().at(-1)!.payload).toMatchObject({ approved_by: ["human:bob"] });
  });
});
