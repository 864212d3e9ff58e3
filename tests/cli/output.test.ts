import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { PROGRAM, run } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

it("a file called --json asks for no document", async () => {
  const taken = await repo.start("agent:a", ["lock", "acquire", "--", "--json"]).done;
  expect(taken.stdout).toMatch(/^acquired file:--json /);
  const refused = await repo.start("agent:b", ["lock", "acquire", "--", "--json"]).done;
  expectRefused(refused, 1, "E_LOCK_CONFLICT");
});

it("a promise that fails while nobody waits for it is told like any other error", async () => {
  repo.write("stray.cjs", 'setImmediate(() => Promise.reject(new Error("left alone")));\n');
  const env = { NODE_OPTIONS: `--require=${path.join(repo.root, "stray.cjs")}` };
  await repo.prepare("agent:a", "lock", "acquire", "a.ts");
  const waiting = ["lock", "acquire", "a.ts", "--wait", "30s"];
  const told = await repo.start("agent:b", waiting, { env }).done;
  expect(told.status).toBe(70);
  expect(told.stderr).toMatch(/^cotenant: left alone \(E_INTERNAL\)\n {2}next: [^\n]+\n$(?!\n)/m);
  expectJsonRefused(await repo.askWith(env, "agent:b", ...waiting), 70, "E_INTERNAL");
});

describe("with --json, standard output is one document", () => {
  it("for every command that succeeds", async () => {
    const seen: string[] = [];
    const ask = async (agent: string, ...args: string[]) => {
      const ran = await repo.ask(agent, ...args);
      expect(ran.status, `${ran}`).toBe(0);
      expect(ran.json).toEqual({ ok: true, data: expect.any(Object) });
      expect(ran.stdout.endsWith("}\n")).toBe(true);
      expect(ran.stdout.split("\n")).toHaveLength(2);
      expect(ran.stderr).toBe("");
      seen.push(args.slice(0, 2).join(" "));
      return ran.data;
    };
    await ask("agent:a", "init");
    const { id } = (await ask("agent:a", "issue", "create", "--title", "t")).issue;
    expect((await ask("agent:a", "issue", "show", id)).issue.id).toBe(id);
    expect((await ask("agent:a", "issue", "list"))["issues"]).toHaveLength(1);
    expect((await ask("agent:a", "claim", "acquire", id)).lease.issue_id).toBe(id);
    expect((await ask("agent:a", "claim", "renew", id)).lease.issue_id).toBe(id);
    expect((await ask("agent:a", "claim", "heartbeat", id)).lease.issue_id).toBe(id);
    expect((await ask("agent:a", "claim", "status")).leases).toHaveLength(1);
    expect((await ask("agent:a", "claim", "list")).leases).toHaveLength(1);
    await ask("agent:a", "claim", "transfer", id, "--to-agent", "agent:b", "--reason", "r");
    await ask("human:ada", "claim", "force-evict", id, "--reason", "r");
    await ask("agent:a", "claim", "acquire", id);
    await ask("agent:a", "claim", "release", id);
    expect((await ask("agent:a", "lock", "acquire", "a.ts", "b.ts")).leases).toHaveLength(2);
    expect((await ask("agent:a", "lock", "acquire", "c.ts")).lease.key).toBe("file:c.ts");
    await ask("agent:a", "lock", "renew", "a.ts", "b.ts");
    await ask("human:ada", "lock", "steal", "b.ts", "--reason", "r");
    expect((await ask("agent:a", "lock", "status")).leases).toHaveLength(3);
    await ask("agent:a", "lock", "release", "a.ts");
    await ask("agent:a", "lock", "gc");
    expect((await ask("agent:a", "status")).leases).toHaveLength(2);
    expect((await ask("agent:a", "worktree", "info")).worktree.root).toBe(repo.root);
    expect((await ask("agent:a", "worktree", "list")).worktrees).toHaveLength(1);
    await ask("agent:a", "worktree", "init");
    await ask("agent:a", "recover");
    await ask("agent:a", "gc", "--compact");
    await ask("agent:a", "version");
    expect(new Set(seen).size).toBeGreaterThanOrEqual(24);
  });

  it("also with --json before the command, and with a warning", async () => {
    const ran = await repo.start("", ["--json", "--agent-id", "agent:a", "lock", "acquire", "a.ts"]).done;
    expect(ran.lease.agent_id).toBe("agent:a");
    const warned = await repo.ask("agent:a", "lock", "renew", "a.ts", "--token", "/dev/null");
    expectJsonRefused(warned, 6, "E_LOCK_NOT_HELD");
  });

  it("has one lease as data.lease and several as data.leases", async () => {
    const one = (await repo.ask("agent:a", "lock", "acquire", "a.ts")).data;
    expect(one.lease).toMatchObject({ key: "file:a.ts" });
    const two = (await repo.ask("agent:a", "lock", "release", "a.ts")).data;
    expect(two.lease).toMatchObject({ key: "file:a.ts" });
    const several = (await repo.ask("agent:a", "lock", "acquire", "a.ts", "b.ts")).data;
    expect(several.leases.map(({ key }) => key)).toEqual(["file:a.ts", "file:b.ts"]);
  });

  it("has no secret, no hash of one and no store's innards", async () => {
    const { lease } = await repo.ask("agent:a", "lock", "acquire", "a.ts");
    expect(Object.keys(lease).filter((name) => /secret|hash|_clock$/.test(name))).toEqual([]);
  });
});

describe("for people", () => {
  it("--quiet prints nothing on success but what was asked for", async () => {
    const short = (await repo.run("agent:a", "issue", "create", "--title", "t", "--quiet")).stdout.trim();
    expect(short).toMatch(/^[0-9a-z]{4,}$/);
    for (const args of [
      ["init"],
      ["claim", "acquire", short],
      ["claim", "renew", short],
      ["claim", "heartbeat", short],
      ["claim", "release", short],
      ["lock", "acquire", "a.ts"],
      ["lock", "renew", "a.ts"],
      ["lock", "release", "a.ts"],
      ["worktree", "init"],
      ["gc"],
    ]) {
      const ran = await repo.run("agent:a", ...args, "--quiet");
      expect({ status: ran.status, stdout: ran.stdout, stderr: ran.stderr }).toEqual({
        status: 0,
        stdout: "",
        stderr: "",
      });
    }
  });

  it("has no colour where there is no terminal", async () => {
    await repo.run("agent:a", "lock", "acquire", "a.ts");
    for (const args of [["status"], ["lock", "status"], ["claim", "status"]])
      expect((await repo.run("agent:a", ...args)).stdout).not.toContain("\x1b");
  });

  it("is aligned", async () => {
    await repo.run("agent:a", "lock", "acquire", "a.ts", "a-much-longer-name.ts");
    const [head, ...rows] = (await repo.run("agent:a", "lock", "status")).stdout.trimEnd().split("\n");
    const column = head!.indexOf("HOLDER");
    expect(column).toBeGreaterThan(0);
    for (const row of rows) expect(row.slice(column)).toMatch(/^agent:a/);
  });

  it("strips control and direction characters from what others wrote", async () => {
    const nasty = "\u001b[31mred\u202e reversed";
    await repo.run("agent:a", "lock", "acquire", "a.ts", "--reason", nasty);
    const { stdout } = await repo.run("agent:b", "lock", "status");
    expect(stdout).toContain("red");
    expect(stdout).not.toMatch(/[\u001b\u202e]/);
  });

  it("does not mind that the reader has gone", async () => {
    const script = '{ "$PROGRAM" help; echo "$?" >ended; } | true';
    const ran = await run(["/bin/sh", "-c", script], { cwd: repo.root, env: { PROGRAM } });
    expect(ran.stderr).toBe("");
    expect(fs.readFileSync(path.join(repo.root, "ended"), "utf8")).toBe("0\n");
  });
});
