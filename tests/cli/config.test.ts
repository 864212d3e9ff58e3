import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { openRepository } from "../../src/index";
import { oneIn } from "../support/one-in";
import { PROGRAM, run } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

let repo: TestRepo;
let home: string;
beforeEach(() => {
  repo = TestRepo.make();
  home = scratch();
});

const file = () => path.join(repo.root, ".cotenant/config.toml");
const cotenant = (agent: string, ...args: string[]) =>
  run([PROGRAM, ...args], {
    cwd: repo.root,
    env: { COTENANT_AGENT_ID: agent, HOME: home, XDG_CONFIG_HOME: undefined },
  });
const ask = async (agent: string, ...args: string[]) => (await cotenant(agent, ...args, "--json")).json;

interface Setting {
  readonly key: string;
  readonly value: unknown;
  readonly source: string;
  readonly place: string;
}
const shown = async (...args: string[]) =>
  (await ask("agent:a", "config", "show", ...args)).data!["settings"] as readonly Setting[];

describe("config", () => {
  it("sets, shows with its origin, gets and resets", async () => {
    await cotenant("agent:a", "init");
    const before = fs.readFileSync(file(), "utf8");
    expect((await cotenant("human:me", "config", "set", "coordination.default_ttl_secs", "300")).status).toBe(
      0,
    );
    expect(await shown("--changed")).toMatchObject([
      {
        key: "coordination.default_ttl_secs",
        value: 300,
        source: "worktree",
        place: fs.realpathSync(file()),
      },
    ]);
    expect((await cotenant("agent:a", "config", "get", "coordination.default_ttl_secs")).stdout).toBe(
      "300\n",
    );
    expect((await cotenant("agent:a", "config", "validate")).stdout).toContain("valid: ");
    expect((await ask("agent:a", "lock", "acquire", "x")).data!.lease.ttl_secs).toBe(300);
    await cotenant("agent:a", "config", "reset", "coordination.default_ttl_secs");
    expect(fs.readFileSync(file(), "utf8")).toBe(before);
    expect(await shown("--changed")).toEqual([]);
  });

  it("shows what agent.toml says as it shows the rest, and repeats what was typed without --global", async () => {
    const refused = await ask("human:me", "config", "set", "behavior.auto_heartbeat", "true");
    expect(refused.error!.hint).toBe(
      "add --global: cotenant config set --global behavior.auto_heartbeat true",
    );
    const reset = await ask("human:me", "config", "reset", "behavior.auto_heartbeat");
    expect(reset.error!.hint).toBe("add --global: cotenant config reset --global behavior.auto_heartbeat");
    const get = () => cotenant("human:me", "config", "get", "behavior.auto_heartbeat");
    expect(await get()).toMatchObject({ status: 0, stdout: "false\n" });
    await cotenant("human:me", "config", "set", "--global", "behavior.auto_heartbeat", "true");
    expect(await get()).toMatchObject({ status: 0, stdout: "true\n" });
    const place = path.join(home, ".config/cotenant/agent.toml");
    const setting = { key: "behavior.auto_heartbeat", value: true, source: "user", place, line: 2 };
    expect((await ask("human:me", "config", "get", "behavior.auto_heartbeat")).data!["setting"]).toEqual({
      ...setting,
      default: false,
    });
    expect(await shown("--changed")).toMatchObject([setting]);
    expect(await shown("behavior")).toHaveLength(2);
    expect(await shown("agent.id")).toMatchObject([{ value: null, source: "default" }]);
    expect((await shown()).map(({ key }) => key)).toContain("agent.description");
    const table = (await cotenant("human:me", "config", "show", "behavior")).stdout;
    expect(table).toMatch(/behavior\.auto_heartbeat +true +\S+agent\.toml:2/);
    const near = await ask("human:me", "config", "get", "behavior.auto_hartbeat");
    expect(near.error!.hint).toBe("did you mean behavior.auto_heartbeat?");
    fs.appendFileSync(place, "nonsense = 1\n");
    expect((await ask("agent:a", "config", "show")).data!["problems"]).toMatchObject([{ place, line: 3 }]);
    expect((await ask("agent:a", "config", "get", "agent.id")).error!.code).toBe("E_CONFIG");
  });

  it("keeps what is one's own in one's own files", async () => {
    await cotenant("agent:a", "config", "set", "--global", "agent.id", "agent:alice");
    await cotenant("agent:a", "config", "set", "--global", "agent.default_ttl_secs", "900");
    await cotenant("agent:a", "config", "set", "--global", "guard.retry_secs", "7");
    const agentToml = path.join(home, ".config/cotenant/agent.toml");
    expect(fs.readFileSync(agentToml, "utf8")).toBe('[agent]\nid = "agent:alice"\ndefault_ttl_secs = 900\n');
    expect(fs.statSync(agentToml).mode & 0o777).toBe(0o600);
    const ran = await run([PROGRAM, "lock", "acquire", "x", "--json"], {
      cwd: repo.root,
      env: { HOME: home },
    });
    expect(ran.lease).toMatchObject({ agent_id: "agent:alice", ttl_secs: 900 });
    expect(await shown("guard.retry_secs")).toMatchObject([{ value: 7, source: "user" }]);
    expect(fs.existsSync(file())).toBe(false);
  });

  it("says when something stronger stands above the new value", async () => {
    const env = { COTENANT_AGENT_ID: "agent:a", COTENANT_GUARD_RETRY_SECS: "5", HOME: home };
    const ran = await run([PROGRAM, "config", "set", "guard.retry_secs", "9"], { cwd: repo.root, env });
    expect(ran.stdout).toContain("COTENANT_GUARD_RETRY_SECS stands above it");
  });

  it("changes the repository's file only under the lease of its scope", async () => {
    const holder = await openRepository({ cwd: repo.root, agentId: "agent:holder", env: {} });
    await holder.acquire("scope:config");
    const { error } = await ask("agent:a", "config", "set", "guard.retry_secs", "9");
    expect(error!.code).toBe("E_LOCK_CONFLICT");
    expect(error!.data.holders).toMatchObject([{ agent_id: "agent:holder" }]);
    expect(fs.existsSync(file())).toBe(false);
    await holder.release("scope:config");
    expect((await ask("agent:a", "config", "set", "guard.retry_secs", "9")).ok).toBe(true);
    expect((await repo.ask("agent:a", "status")).data.leases).toEqual([]);
  });

  it.each([
    [["config", "get", "guard.retry_sec"], "E_USAGE", "guard.retry_secs"],
    [["config", "set", "guard.retry_secs", "soon"], "E_CONFIG", "whole number"],
    [["config", "set", "worktree.mode", "of"], "E_CONFIG", "did you mean off"],
    [["config", "set", "agent.id", "agent:a"], "E_USAGE", "--global"],
    [["config", "set", "--global", "agent.id", "alice"], "E_CONFIG", "agent id"],
    [["config", "set", "events.enable_sequences", "false"], "E_CONFIG", "only true"],
    [["config", "show", "nothing"], "E_USAGE", "config show"],
  ])("refuses %j", async (args, code, words) => {
    const { error } = await ask("agent:a", ...args);
    expect(error!.code).toBe(code);
    expect(`${error!.message} ${error!.hint}`).toContain(words);
  });

  it("is named with its place where it rules", async () => {
    await cotenant("agent:a", "init");
    await cotenant("agent:a", "config", "set", "policy.max_ttl_secs", "agent=60");
    const { error } = await ask("agent:a", "lock", "acquire", "x", "--ttl", "61");
    expect(error!.code).toBe("E_LIMIT");
    expect(error!.message).toMatch(/policy\.max_ttl_secs is set in .*\/\.cotenant\/config\.toml:\d+\)$/);
    const steal = await ask("agent:b", "lock", "acquire", "x", "--ttl", "0", "--reason", "r");
    expect(steal.error!.message).toMatch(/ \([\w.]+ is at its default\)$/);
    expect(steal.error!.data["ruled_by"]).toEqual({ source: "default", place: "default", line: null });
  });

  it("says all that is wrong in a broken file, and can mend a wrong value", async () => {
    await cotenant("agent:a", "init");
    fs.appendFileSync(file(), "\n[nonsense]\n");
    fs.writeFileSync(
      file(),
      `${fs.readFileSync(file(), "utf8").replace("# retry_secs = 180", 'retry_secs = "x"')}`,
    );
    const { error } = await ask("agent:a", "config", "validate");
    expect(error!.code).toBe("E_CONFIG");
    expect((error!.data["problems"] as { key: string }[]).map(({ key }) => key).sort()).toEqual([
      "guard.retry_secs",
      "nonsense",
    ]);
    expect((await ask("agent:a", "lock", "acquire", "x")).error!.code).toBe("E_CONFIG");
    expect((await cotenant("agent:a", "config", "set", "guard.retry_secs", "10")).status).toBe(0);
    expect(fs.readFileSync(file(), "utf8")).toContain("retry_secs = 10\n");
  });

  it("leaves a file alone that is not TOML, and says where it is broken", async () => {
    await cotenant("agent:a", "init");
    fs.writeFileSync(file(), "[guard\n");
    const { error } = await ask("agent:a", "config", "set", "guard.retry_secs", "10");
    expect(error!.code).toBe("E_CONFIG");
    expect(fs.readFileSync(file(), "utf8")).toBe("[guard\n");
    expect((await ask("agent:a", "config", "validate")).error!.message).toContain("config.toml:1");
  });
});

describe("trust", () => {
  const HOSTILE = '[policy]\nevict = ["*"]\n[worktree]\nsetup = "touch pwned"\n';

  it("is a person's to give: until then what loosens does not count, and every command says so", async () => {
    await cotenant("human:me", "init");
    fs.writeFileSync(file(), HOSTILE);
    await repo.prepare("agent:a", "lock", "acquire", "x");
    const refused = await cotenant("agent:b", "lock", "steal", "x", "--reason", "mine");
    expect(refused.status).toBe(9);
    expect((await cotenant("agent:b", "status")).stderr).toContain(
      "sets policy.evict, worktree.setup, which are not honoured before",
    );
    expect((await ask("agent:b", "trust")).error!.code).toBe("E_POLICY");
    const list = await ask("agent:b", "trust", "--list");
    expect((list.data!["waiting"] as Setting[]).map(({ key }) => key)).toEqual([
      "policy.evict",
      "worktree.setup",
    ]);
    expect((await cotenant("human:me", "trust")).stdout).toContain('setup = "touch pwned"');
    expect((await cotenant("agent:b", "status")).stderr).toBe("");
    expect((await cotenant("agent:b", "lock", "steal", "x", "--reason", "mine")).status).toBe(0);
    expect((await cotenant("human:me", "trust", "--revoke")).status).toBe(0);
    expect((await cotenant("agent:b", "lock", "steal", "x", "--reason", "mine")).status).not.toBe(9);
    expect((await cotenant("agent:c", "lock", "steal", "x", "--reason", "mine")).status).toBe(9);
  });

  it("holds for one clone and not for the next", async () => {
    await cotenant("human:me", "init");
    fs.writeFileSync(file(), HOSTILE);
    await cotenant("human:me", "trust");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "hostile");
    const clone = path.join(scratch(), "clone");
    repo.git("clone", "--quiet", repo.root, clone);
    const ran = await run([PROGRAM, "config", "get", "worktree.setup"], { cwd: clone, env: { HOME: home } });
    expect(ran.stdout.trim()).toBe("");
  });

  it("is on record: given, given by init, and taken back, with who did it", async () => {
    const recorded = () =>
      repo
        .log()
        .filter(({ event_type }) => event_type.startsWith("policy.") && event_type !== "policy.changed")
        .map(({ event_type, actor, payload }) => {
          const { subjects } = payload as unknown as { subjects: { subject: string }[] };
          return [event_type, actor.agent_id, subjects.map(({ subject }) => subject)];
        });
    await cotenant("agent:a", "init", "--enforce", "warn");
    const given = ["policy.trusted", "agent:a", ["config:worktree.enforce_leases"]];
    expect(recorded()).toEqual([given]);
    await cotenant("human:me", "config", "set", "policy.evict", "agent:lead");
    const set = ["policy.trusted", "human:me", ["config:policy.evict"]];
    expect(recorded()).toEqual([given, set]);
    await cotenant("human:me", "trust");
    expect(recorded()).toEqual([given, set]);
    await cotenant("human:me", "trust", "--revoke");
    const revoked = ["policy.distrusted", "human:me", [...given[2]!, ...set[2]!]];
    expect(recorded()).toEqual([given, set, revoked]);
    await cotenant("ci:build", "trust");
    expect(recorded().at(-1)).toEqual(["policy.trusted", "ci:build", expect.anything()]);
    await cotenant("human:me", "gate", "define", "tests", "--title", "Tests", "--command", "true");
    expect(recorded().at(-1)).toEqual(["policy.trusted", "human:me", ["gate:tests"]]);
    const shown = await cotenant("agent:a", "events", "--type", "policy.trusted", "--json");
    expect(shown.stdout.trim().split("\n")).toHaveLength(4);
  });

  it("comes with what init wrote, and with what a person sets", async () => {
    expect((await cotenant("agent:a", "init", "--enforce", "warn")).stderr).toBe("");
    expect((await cotenant("agent:a", "config", "get", "worktree.enforce_leases")).stdout).toBe("warn\n");
    const byPerson = await cotenant("human:me", "config", "set", "coordination.default_ttl_secs", "1200");
    expect(byPerson.stdout).toContain("this clone trusts it now");
    const byAgent = await cotenant("agent:a", "config", "set", "policy.evict", "agent:a");
    expect(byAgent.stdout).toContain("not honoured until a person runs 'cotenant trust'");
    expect((await cotenant("agent:a", "config", "get", "policy.evict")).stdout).toBe(
      '["human:*", "admin:*"]\n',
    );
  });
});

describe("a link in place of what is committed", () => {
  it("leads no writer out of the worktree, and nothing behind it is read in", async () => {
    const outside = scratch();
    const kept = path.join(outside, "config.toml");
    fs.writeFileSync(kept, "[guard]\nretry_secs = 5\n");
    const data = path.join(repo.root, ".cotenant");
    fs.symlinkSync(outside, data);
    const writers = [
      ["config", "set", "guard.retry_secs", "7"],
      ["config", "reset", "guard.retry_secs"],
      ["init", "--enforce", "warn"],
      ["issue", "create", "--title", "x"],
      ["gate", "define", "x"],
    ];
    const refusals = async (...some: (readonly string[])[]) => {
      for (const args of some)
        expect((await ask("human:me", ...args)).error?.code, args.join(" ")).toBe("E_PATH_ESCAPE");
    };
    await refusals(...writers);
    expect(fs.readdirSync(outside)).toEqual(["config.toml"]);
    expect(fs.readFileSync(kept, "utf8")).toContain("retry_secs = 5");
    fs.rmSync(data);
    fs.mkdirSync(data);
    for (const [name, ...some] of [
      ["config.toml", writers[0]!, writers[1]!, writers[2]!],
      [".gitignore", ["init"]],
      [".gitattributes", ["init"]],
    ] as const) {
      const link = path.join(data, name);
      fs.symlinkSync(kept, link);
      await refusals(...some);
      expect(fs.readlinkSync(link)).toBe(kept);
      fs.rmSync(link);
    }
  });

  it("leaves no half-written file where the first change makes the store", async () => {
    await cotenant("human:me", "config", "set", "guard.retry_secs", "7");
    expect(fs.readdirSync(path.dirname(file())).sort()).toEqual([".gitignore", "config.toml"]);
  });
});
