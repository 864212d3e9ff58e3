import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { parentAsHolder, whoIs } from "../../src/features/guard/who";
import { isReaper, isWrapper } from "../../src/features/guard/wrappers";
import { nodeGit } from "../../src/platform/git-node";
import { nodePlatform } from "../../src/platform/node/node";

describe("who stands between a harness and its hook", () => {
  it.each([
    ["/bin/sh", "-c", "cotenant guard check"],
    ["bash", "-lc", "cotenant guard check"],
    ["zsh", "-ic", "x"],
    ["C:\\Windows\\System32\\cmd.exe", "/d", "/s", "/c", "x"],
    ["pwsh", "-NoProfile", "-Command", "x"],
    ["/usr/bin/env", "node", "x"],
    ["timeout", "5", "x"],
    ["node", "/usr/bin/npx", "cotenant"],
    ["/usr/local/bin/node", "/usr/lib/node_modules/npm/bin/npm-cli.js", "exec"],
  ])("%s %s: is passed over", (...words) => {
    expect(isWrapper(words)).toBe(true);
  });

  it.each([
    ["claude"],
    ["node", "/usr/bin/claude", "-c"],
    ["bash", "agent.sh"],
    ["-zsh"],
    ["bash"],
    ["codex", "-c", "x=y"],
    [],
  ])("%s %s: is not", (...words) => {
    expect(isWrapper(words)).toBe(false);
  });
});

describe("whoever takes in orphans", () => {
  const at = (session: number, ...words: string[]) => ({ parentPid: 0, session, words });
  const hook = at(77, "node", "cotenant");

  it.each([
    [1, at(1, "/sbin/init")],
    [1, at(1, "/usr/lib/systemd/systemd", "--system")],
    [1422, at(1422, "/usr/lib/systemd/systemd", "--user")],
    [7, at(1, "/usr/bin/tini", "-s", "--", "claude")],
    [1, at(0, "/vm-agent", "--listen")],
  ])("%s %j is no harness", (pid, parent) => {
    expect(isReaper(pid, parent, hook)).toBe(true);
  });

  it.each([
    [1, at(1, "node", "/usr/bin/claude"), hook],
    [1, at(77, "my-agent"), hook],
    [4711, at(4711, "my-agent"), hook],
    [4711, null, hook],
  ])("%s %j may be one", (pid, parent, self) => {
    expect(isReaper(pid, parent, self)).toBe(false);
  });
});

describe("what a script asks for", () => {
  const { processes } = nodePlatform();

  it("is bound to the script", async () => {
    expect(await parentAsHolder(processes, process.pid)).toEqual(processes.self());
  });

  it("is nobody's once the script is dead, whoever has taken its children in", async () => {
    const init = { parentPid: 0, session: 1, words: ["/sbin/init"] };
    const orphaned = { ...processes, self: () => processes.self(), identify: () => processes.self() };
    const holder = await parentAsHolder({ ...orphaned, ancestry: () => init } as typeof processes, 1);
    expect(processes.liveness(holder)).toBe("dead");
    const { pid } = spawnSync(process.execPath, ["--version"]);
    expect(processes.liveness(await parentAsHolder(processes, pid))).toBe("dead");
  });
});

describe("who an event is about", () => {
  const world = {
    platform: nodePlatform(),
    git: nodeGit(),
    env: {} as Record<string, string>,
    home: null,
    cwd: "/",
    parentPid: process.pid,
    harnessPid: null,
  };
  const claude = { harness: "claude", sessionId: "0123456789abcdef", subagent: null } as const;

  it("is the harness's session, in the process that started the hook", async () => {
    const who = await whoIs(world, claude);
    expect(who).toMatchObject({ agentId: "agent:claude-01234567", sessionId: "0123456789abcdef" });
    expect(who.holder).toEqual(world.platform.processes.self());
  });

  it("is an agent of its own for a subagent", async () => {
    const who = await whoIs(world, { ...claude, subagent: "fedcba9876543210" });
    expect(who).toMatchObject({
      agentId: "agent:claude-01234567.fedcba98",
      mainAgentId: "agent:claude-01234567",
      sessionId: "0123456789abcdef",
    });
  });

  it("is whom the environment names, but never a person", async () => {
    const env = { COTENANT_AGENT_ID: "agent:ada", COTENANT_SESSION_ID: "run-1" };
    expect(await whoIs({ ...world, env }, claude)).toMatchObject({
      agentId: "agent:ada",
      sessionId: "run-1",
    });
    for (const id of ["human:ada", "admin:root", "nonsense", ""])
      expect((await whoIs({ ...world, env: { COTENANT_AGENT_ID: id } }, claude)).agentId).toBe(
        "agent:claude-01234567",
      );
  });

  it("is told apart by process where there is no session, and by hash where its name is none", async () => {
    const nameless = await whoIs(world, { ...claude, sessionId: null });
    expect(nameless.sessionId).toContain(`pid-${process.pid}`);
    const odd = await whoIs(world, { ...claude, sessionId: "a b/c\u{1f600}" });
    expect(odd.agentId).toMatch(/^agent:claude-[0-9a-f]{8}$/);
  });

  it("is bound to nobody where the harness died before its hook looked", async () => {
    const { processes } = world.platform;
    const first = { parentPid: 0, session: 0, words: ["/sbin/init"] };
    const asOrphan = Object.assign(Object.create(processes) as typeof processes, {
      ancestry: (pid: number) => (pid === 1 ? first : processes.ancestry(pid)),
      identify: (pid: number) => processes.identify(pid),
      self: () => processes.self(),
    });
    const who = await whoIs(
      { ...world, parentPid: 1, platform: { ...world.platform, processes: asOrphan } },
      claude,
    );
    expect(processes.liveness(who.holder)).toBe("dead");
  });

  it("is bound to a process that is not there any more only until somebody looks", async () => {
    const who = await whoIs({ ...world, harnessPid: 2 ** 22 + 1 }, claude);
    expect(world.platform.processes.liveness(who.holder)).toBe("dead");
  });
});
