import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { cacheEnvironment, ownerName, TOOL_CACHES } from "../../src/features/exec/caches";
import { until } from "../support/program";
import { expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const A = "agent:ada";
const cacheOf = (repo: TestRepo, ...below: string[]) =>
  path.join(repo.root, ".agent-cache/agent-ada", ...below);

function exec(repo: TestRepo, ...command: string[]) {
  return repo.start(A, ["exec", "--", ...command], { env: { HOME: scratch() }, mostMs: 90_000 }).done;
}

describe("exec", () => {
  it("passes the exit status on, and standard output as it is", async () => {
    const repo = TestRepo.make();
    const ran = await exec(repo, "sh", "-c", "printf 'a\\tb'; echo no >&2; exit 7");
    expect([ran.status, ran.stdout, ran.stderr]).toEqual([7, "a\tb", "no\n"]);
  });

  it("passes signals on, and ends as the command does", async () => {
    const repo = TestRepo.make();
    const script = 'trap "echo got it; exit 5" TERM; echo ready; while :; do sleep 0.05; done';
    const running = repo.start(A, ["exec", "sh", "-c", script]);
    await until("it runs", () => running.stdout.includes("ready"));
    running.kill("SIGTERM");
    const ran = await running.done;
    expect([ran.status, ran.stdout]).toEqual([5, "ready\ngot it\n"]);
    expect((await exec(repo, "sh", "-c", "kill -KILL $$")).status).toBe(128 + 9);
  });

  it("says as a shell does that there is no such command", async () => {
    const repo = TestRepo.make();
    const absent = await exec(repo, "no-such-command");
    expect([absent.status, absent.stderr]).toEqual([
      127,
      expect.stringMatching(/^cotenant: no-such-command: .* \(E_NO_COMMAND\)\n {2}next: .+\n$/),
    ]);
    repo.write("plain", "x");
    const plain = await exec(repo, "./plain");
    expect([plain.status, plain.stderr]).toEqual([126, expect.stringContaining("(E_NOT_EXECUTABLE)")]);
    expect((await repo.ask(A, "exec")).error.code).toBe("E_USAGE");
    expectRefused(await repo.run(A, "exec", ""), 64, "E_USAGE");
  });

  it("takes everything after the command for the command's own", async () => {
    const repo = TestRepo.make();
    const script = "console.log(JSON.stringify(process.argv.slice(1)))";
    const ran = await repo.start(A, ["exec", "node", "-e", script, "--", "--json", "--quiet", "--help"]).done;
    expect(JSON.parse(ran.stdout)).toEqual(["--json", "--quiet", "--help"]);
  });

  it("with --json has its own answer alone on standard output", async () => {
    const repo = TestRepo.make();
    const ran = await repo.start(A, ["exec", "--json", "--", "echo", "hello"]).done;
    expect(ran.data).toMatchObject({ agent_id: A, command: ["echo", "hello"], exit_status: 0, signal: null });
    expect(ran.stderr).toBe("hello\n");
  });

  it("tells the command who it is, and keeps agents apart; Git never sees the caches", async () => {
    const repo = TestRepo.make();
    const ask = (agent: string) =>
      repo.run(agent, "exec", "--", "sh", "-c", 'echo "$COTENANT_AGENT_ID $GOCACHE"');
    expect((await ask("agent:ada")).stdout).toBe(`agent:ada ${cacheOf(repo, "go-build")}\n`);
    expect((await ask("ci:build")).stdout).toBe(`ci:build ${repo.root}/.agent-cache/ci-build/go-build\n`);
    expect(repo.git("status", "--porcelain", "--", ".agent-cache")).toBe("");
  });

  it("prints the variables for a shell", async () => {
    const repo = TestRepo.make(path.join(scratch(), "it's a place"));
    const ran = await repo.run(A, "exec", "--print-env");
    fs.writeFileSync(path.join(repo.root, "env.sh"), ran.stdout);
    const echoed = await exec(repo, "sh", "-c", '. ./env.sh; echo "$CCACHE_DIR"');
    expect(echoed.stdout).toBe(`${cacheOf(repo, "ccache")}\n`);
    const variables = TOOL_CACHES.flatMap(({ places }) => Object.keys(places));
    for (const name of variables) expect(ran.stdout).toContain(`export ${name}=`);
  });
});

describe("the variables", () => {
  it("add to options that are there, once", () => {
    const once = cacheEnvironment("/c", { MAVEN_OPTS: "-Xmx1g" }).variables;
    expect(once["MAVEN_OPTS"]).toBe("-Xmx1g -Dmaven.repo.local=/c/maven");
    expect(cacheEnvironment("/c", once).variables["MAVEN_OPTS"]).toBe(once["MAVEN_OPTS"]);
  });

  it("leave out what cannot be said with a space in the path", () => {
    const { variables } = cacheEnvironment("/a b", {});
    expect(variables).not.toHaveProperty("MAVEN_OPTS");
    expect(variables["PYTEST_ADDOPTS"]).toBe("-o 'cache_dir=/a b/pytest'");
  });

  it("name each place once", () => {
    const places = TOOL_CACHES.flatMap(({ places: all }) => Object.values(all));
    expect(new Set(places).size).toBe(places.length);
  });

  it("keep agents apart whose names differ in their capitals only", () => {
    const hash = (text: string) => `${text.length}${text}`.replace(/\W/g, "").padEnd(8, "0");
    expect(ownerName("agent:ada", hash)).toBe("agent-ada");
    expect(ownerName("agent:Ada", hash).toLowerCase()).not.toBe("agent-ada");
  });
});
