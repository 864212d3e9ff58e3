import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { PROGRAM, run } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import { ulid } from "../support/ulid";

const it = oneIn(8);

let repo: TestRepo;
let id: string;
beforeEach(async () => {
  repo = TestRepo.make();
  id = await repo.issue();
});

/** The issue's file with something changed, as an editor or a merge would. */
function edit(change: (issue: Record<string, unknown>) => void, to = id): void {
  const folder = path.join(repo.root, ".cotenant/issues");
  const issue = JSON.parse(fs.readFileSync(path.join(folder, id, "issue.json"), "utf8"));
  change(issue);
  fs.mkdirSync(path.join(folder, to), { recursive: true });
  fs.writeFileSync(path.join(folder, to, "issue.json"), JSON.stringify(issue));
}

describe("claims on issues", () => {
  it.each(["done", "rejected", "archived"])("that are %s exit with 5", async (state) => {
    edit((issue) => {
      issue["state"] = state;
    });
    expectRefused(await repo.run("agent:a", "claim", "acquire", id), 5, "E_TERMINAL_STATE");
    expectJsonRefused(await repo.ask("agent:a", "claim", "acquire", id), 5, "E_TERMINAL_STATE");
  });

  it("that are not ready are refused with --if-ready only", async () => {
    edit((issue) => {
      issue["state"] = "backlog";
    });
    expectJsonRefused(await repo.ask("agent:a", "claim", "acquire", id, "--if-ready"), 9, "E_POLICY");
    expect((await repo.ask("agent:a", "claim", "acquire", id)).status).toBe(0);
  });

  it("named by too little of an id list the candidates", async () => {
    const twin = id.slice(0, 24) + (id.endsWith("00") ? "11" : "00");
    edit((issue) => {
      issue["id"] = twin;
    }, twin);
    const ran = await repo.ask("agent:a", "claim", "acquire", id.slice(10, 16));
    expectJsonRefused(ran, 4, "E_AMBIGUOUS_ID");
    expect(ran.error.data["candidates"]).toEqual([id, twin].sort());
    expect((await repo.ask("agent:a", "claim", "acquire", id.slice(10))).lease.issue_id).toBe(id);
  });

  it("that cannot be read say why", async () => {
    fs.writeFileSync(path.join(repo.root, `.cotenant/issues/${id}/issue.json`), "{");
    for (const command of ["claim acquire", "issue show"]) {
      const ran = await repo.run("agent:a", ...command.split(" "), id);
      expectRefused(ran, 4, "E_NOT_FOUND");
      expect(ran.stderr).toContain("cannot be read");
    }
    expect((await repo.ask("agent:a", "issue", "list")).data["broken"]).toHaveLength(1);
  });

  it("that are gone can still be given back", async () => {
    await repo.prepare("agent:a", "claim", "acquire", id);
    fs.rmSync(path.join(repo.root, ".cotenant/issues"), { recursive: true });
    expect((await repo.ask("agent:a", "claim", "release", id)).lease.issue_id).toBe(id);
  });

  it("are found in the main worktree and in HEAD", async () => {
    const feature = repo.addWorktree("feature");
    expect((await feature.ask("agent:a", "claim", "acquire", id)).lease.issue_id).toBe(id);
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "issues");
    fs.rmSync(path.join(repo.root, ".cotenant/issues"), { recursive: true });
    expectJsonRefused(await repo.ask("agent:b", "claim", "acquire", id), 1, "E_LOCK_CONFLICT");
    expect((await repo.ask("agent:b", "issue", "show", id)).data["layer"]).toBe("HEAD");
  });

  it("answer to the names of earlier tools", async () => {
    const { short_id } = (await repo.ask("agent:a", "issue", "show", id)).data.issue;
    expect((await repo.ask("agent:a", "claim", short_id)).lease.issue_id).toBe(id);
    expect((await repo.ask("human:ada", "claim", "evict", id, "--reason", "r")).status).toBe(0);
    expect((await repo.ask("agent:a", "lock", "list")).data.leases).toEqual([]);
  });

  it("can be taken by force by those whom the policy allows", async () => {
    const { lease } = await repo.ask("agent:a", "claim", "acquire", id);
    const force = ["claim", "acquire", id, "--force"];
    expectJsonRefused(await repo.ask("human:ada", ...force), 64, "E_USAGE");
    expectJsonRefused(await repo.ask("agent:b", ...force, "--reason", "r"), 9, "E_POLICY");
    const taken = (await repo.ask("human:ada", ...force, "--reason", "urgent")).lease;
    expect(taken.stole_from).toEqual([{ lease_id: lease.lease_id, agent_id: "agent:a", why: "forced" }]);
    expect(repo.log().at(-1)).toMatchObject({
      actor: { agent_id: "human:ada" },
      payload: { reason: "urgent" },
    });
    expectJsonRefused(await repo.ask("agent:a", "claim", "renew", id), 8, "E_FENCING_MISMATCH");
  });

  it("are reached as git cotenant, too", async () => {
    const folder = scratch();
    fs.symlinkSync(PROGRAM, path.join(folder, "git-cotenant"));
    const env = { PATH: `${folder}:${process.env["PATH"]}`, COTENANT_AGENT_ID: "agent:a" };
    const ran = await run(["git", "cotenant", "claim", "acquire", id, "--json"], { cwd: repo.root, env });
    expect(ran.lease.issue_id).toBe(id);
  });
});

describe("a claim of one's own", () => {
  it("from another worktree is called so, and the command that is offered brings it here", async () => {
    await repo.prepare("agent:a", "claim", "acquire", id);
    const other = repo.addWorktree("other");
    let offered = "";
    for (const words of [
      ["claim", "acquire", id],
      ["claim", "renew", id],
      ["claim", "release", id],
      ["issue", "update", id, "--priority", "high"],
    ]) {
      const { error } = await other.askHere("agent:a", ...words);
      expect(error.message, words.join(" ")).toMatch(/is held by you from wt:/);
      offered = / bring it here: cotenant (.*)$/.exec(error.hint)![1]!;
    }
    const [, reason] = /--reason "(.*)"$/.exec(offered)!;
    await other.prepare("agent:a", ...offered.replace(/ --reason.*/, "").split(" "), "--reason", reason!);
    await other.prepare("agent:a", "issue", "update", id, "--priority", "high");
    expect((await repo.askHere("agent:b", "claim", "acquire", id)).error.message).toContain(
      "is held by agent:a",
    );
  });

  it("and a secret that is not its own: that is what is wrong, not who asks", async () => {
    await repo.prepare("agent:a", "claim", "acquire", id);
    repo.write("wrong", "x".repeat(43));
    const { error } = await repo.askHere("agent:a", "claim", "renew", id, "--secret-file", "wrong");
    expect(error.message).toContain("is held by you, but no secret that was shown is its own");
  });
});

describe("a TTL", () => {
  it("that nobody asked for is never over what the policy allows", async () => {
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    repo.write(".cotenant/config.toml", "[policy]\nmax_ttl_secs = { agent = 120 }\n");
    const other = await repo.issue();
    for (const words of [
      ["claim", "acquire", id],
      ["claim", "next"],
      ["lock", "acquire", "a.ts"],
      ["worktree", "lock"],
      ["worktree", "create", "--issue", other, "--claim"],
    ])
      expect((await repo.prepare("agent:a", ...words)).lease.ttl_secs, words.join(" ")).toBe(120);
    expectJsonRefused(await repo.askHere("agent:a", "lock", "acquire", "b.ts", "--ttl", "600"), 9, "E_LIMIT");
  });

  it("of 0 is judged after the words around it", async () => {
    for (const wrong of [
      ["--timeout", "3"],
      ["--request-id", "x"],
    ])
      for (const words of [
        ["claim", "acquire", id],
        ["claim", "next"],
        ["lock", "acquire", "a.ts"],
        ["worktree", "lock"],
      ])
        expectJsonRefused(await repo.askHere("agent:a", ...words, "--ttl", "0", ...wrong), 64, "E_USAGE");
  });
});

describe("a data plane that leads elsewhere", () => {
  it.each([
    ["init", 9],
    ["issue create --title t", 9],
    ["config set worktree.copy .env --agent-id human:h", 9],
    ["lock acquire a.ts", 0],
    ["worktree init", 0],
  ])("as a whole: %s exits with %d and writes nothing there", async (command, status) => {
    const outside = scratch();
    const linked = TestRepo.make();
    fs.symlinkSync(outside, path.join(linked.root, ".cotenant"));
    const ran = await linked.run("agent:a", ...command.split(" "));
    if (status === 9) expectRefused(ran, 9, "E_PATH_ESCAPE");
    else expect(ran.status).toBe(0);
    expect(fs.readdirSync(outside)).toEqual([]);
  });

  it("in its issues: issue create exits with 9 and writes nothing there", async () => {
    const outside = scratch();
    const linked = TestRepo.make();
    fs.mkdirSync(path.join(linked.root, ".cotenant"));
    fs.symlinkSync(outside, path.join(linked.root, ".cotenant/issues"));
    expectRefused(await linked.run("agent:a", "issue", "create", "--title", "t"), 9, "E_PATH_ESCAPE");
    expect(fs.readdirSync(outside)).toEqual([]);
  });
});

describe("secrets on the command line", () => {
  it("--print-secret with --quiet prints it and nothing else; a script can use it later", async () => {
    const ran = await repo.run("agent:a", "lock", "acquire", "a.ts", "--print-secret", "--quiet");
    expect(ran.stdout).toMatch(/^[\w-]{43}\n$/);
    const again = await repo.run("agent:a", "lock", "acquire", "a.ts", "--print-secret", "--quiet");
    expect(again.stdout, "asked again, it is the same").toBe(ran.stdout);
    const { lease_id } = (await repo.ask("", "lock", "status")).data.leases[0]!;
    const env = { COTENANT_SECRET: ran.stdout.trim() };
    expect((await repo.askWith(env, "ci:script", "lock", "release", lease_id)).status).toBe(0);
  });

  it("--secret-file must be a file that can be read", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.ts");
    const release = (file: string) => repo.run("agent:a", "lock", "release", "a.ts", "--secret-file", file);
    for (const file of ["no-such-file", ".", ""]) expectRefused(await release(file), 64, "E_USAGE");
    repo.write("empty", "");
    expectRefused(await release("empty"), 6, "E_LOCK_NOT_HELD");
  });

  it("lost secrets are made again by the same agent's acquire", async () => {
    await repo.prepare("agent:a", "claim", "acquire", id);
    fs.rmSync(path.join(repo.control, "secrets"), { recursive: true });
    const ran = await repo.ask("agent:a", "claim", "renew", id);
    expectJsonRefused(ran, 6, "E_LOCK_NOT_HELD");
    expect(ran.error.hint).toContain("acquire");
    expect((await repo.ask("agent:a", "claim", "acquire", id)).status).toBe(0);
    expect((await repo.ask("agent:a", "claim", "renew", id)).status).toBe(0);
  });
});

describe("an empty directory of the control plane that a clean-up took away", () => {
  it.each([
    ["archive", "gc --compact"],
    ["heartbeat", "claim heartbeat ISSUE"],
    ["secrets", "lock acquire b.ts"],
    ["locks", "lock acquire b.ts"],
    ["index", "lock acquire b.ts"],
  ])("%s is made again: %s", async (directory, command) => {
    await repo.prepare("agent:a", "claim", "acquire", id);
    fs.rmSync(path.join(repo.control, directory), { recursive: true });
    const ran = await repo.ask("agent:a", ...command.replace("ISSUE", id).split(" "));
    expect(ran.status, `${ran}`).toBe(0);
    expect(fs.existsSync(path.join(repo.control, directory))).toBe(true);
  });

  it("queue is made again by a waiter", async () => {
    await repo.prepare("agent:a", "claim", "acquire", id);
    fs.rmSync(path.join(repo.control, "queue"), { recursive: true });
    const ran = await repo.ask("agent:b", "claim", "acquire", id, "--wait", "--timeout", "0");
    expectJsonRefused(ran, 12, "E_WAIT_TIMEOUT");
  });
});

describe("claim create", () => {
  it("writes an issue down and claims it, in one", async () => {
    const repo = TestRepo.make();
    const { data } = await repo.ask("agent:a", "claim", "create", "--title", "Fix the login", "--ttl", "300");
    expect(data.lease).toMatchObject({ issue_id: data.issue.id, agent_id: "agent:a", ttl_secs: 300 });
    expect((await repo.ask("agent:b", "claim", "acquire", data.issue.id)).status).toBe(1);
    const { stdout } = await repo.run("agent:a", "claim", "create", "--title", "Another");
    expect(stdout).toMatch(/^created \w{4,}: Another\nacquired issue:/);
  });

  it("is marked in the list of whoever made it", async () => {
    const repo = TestRepo.make();
    await repo.prepare("agent:a", "claim", "create", "--title", "Mine");
    const marks = async (agent: string) => (await repo.run(agent, "claim", "list")).stdout.includes("* ");
    expect([await marks("agent:a"), await marks("agent:b")]).toEqual([true, false]);
  });

  it("writes nothing down when it cannot be claimed", async () => {
    const repo = TestRepo.make();
    const ran = await repo.run("agent:a", "claim", "create", "--title", "Too long", "--ttl", "99999999");
    expect(ran.status).toBe(9);
    expect((await repo.ask("agent:a", "issue", "list")).data["issues"]).toEqual([]);
    // Nor where only the store can tell.
    const limit = { COTENANT_COORDINATION_MAX_INDEFINITE_LEASES_PER_AGENT: "1" };
    const endless = (title: string) =>
      repo.askWith(limit, "agent:a", "claim", "create", "--title", title, "--ttl", "0", "--reason", "long");
    expect((await endless("First")).status).toBe(0);
    for (let round = 0; round < 2; round++) expectJsonRefused(await endless("Second"), 9, "E_LIMIT");
    expect((await repo.ask("agent:a", "issue", "list")).data["issues"]).toMatchObject([{ title: "First" }]);
    expect((await repo.ask("agent:a", "claim", "list")).data.leases).toHaveLength(1);
  });

  it("gives the claim back when the issue cannot be written", async () => {
    const repo = TestRepo.make();
    repo.write(".cotenant/issues", "in the way");
    const ran = await repo.ask("agent:a", "claim", "create", "--title", "Nowhere to go");
    expect(ran.status).not.toBe(0);
    expect((await repo.ask("agent:a", "claim", "list")).data.leases).toEqual([]);
  });

  it("makes one issue however often the same request is made", async () => {
    const repo = TestRepo.make();
    const create = ["claim", "create", "--title", "Once", "--request-id", ulid()];
    const first = await repo.ask("agent:a", ...create);
    const again = await repo.ask("agent:a", ...create);
    expect(again.data).toMatchObject({
      replayed: true,
      issue: { id: first.data.issue.id },
      lease: { lease_id: first.lease.lease_id },
    });
    expect((await repo.ask("agent:a", "issue", "list")).data["issues"]).toHaveLength(1);
    // Whoever died between the claim and the issue comes back, and finishes it.
    fs.rmSync(path.join(repo.root, ".cotenant/issues"), { recursive: true });
    expect((await repo.ask("agent:a", ...create)).data.issue.id).toBe(first.data.issue.id);
  });
});

describe("names of earlier tools", () => {
  it("are understood: claim <id>, in-progress, and help on an alias", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    expect((await repo.ask("agent:a", "claim", id)).lease.issue_id).toBe(id);
    const working = await repo.ask("agent:a", "issue", "list", "--state", "in-progress");
    expect(working.data["issues"]).toMatchObject([{ id, state: "in_progress" }]);
    expect((await repo.run("agent:a", "help", "lock", "list")).stdout).toMatch(
      /^usage: cotenant lock status/,
    );
  });
});
