import * as fs from "node:fs";
import * as http from "node:http";
import * as net from "node:net";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { guardCounts, isGone, recordOf, startDaemon } from "../support/daemon";
import { reasonOf } from "../support/guard";
import { callsOf, HookHarness, lineFor, repoWithHooks } from "../support/hook-harness";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import type { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(async () => {
  repo = await repoWithHooks("http", "[guard]\nretry_secs = 600\n");
});

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** As the settings have Claude Code ask, but for what is told otherwise. */
function ask(body: string, more: { headers?: Record<string, string>; method?: string; path?: string } = {}) {
  const { url, headers } = callsOf(repo, "claude")[0]!.http!;
  const { hostname, port, pathname } = new URL(url);
  return new Promise<Answer>((resolve, reject) => {
    const request = http.request(
      {
        hostname,
        port,
        path: more.path ?? pathname,
        method: more.method ?? "POST",
        headers: { "Content-Type": "application/json", ...headers, ...more.headers },
        agent: false,
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () => resolve({ status: response.statusCode!, body: text }));
        response.on("error", reject);
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

function write(session: string, file: string): string {
  return JSON.stringify({
    session_id: session,
    cwd: repo.root,
    permission_mode: "default",
    hook_event_name: "PreToolUse",
    tool_name: "Write",
    tool_input: { file_path: path.join(repo.root, file), content: "x" },
  });
}

const ADA = "aaaaaaaa-1";
const BOB = "bbbbbbbb-2";
const LEAVE: Answer = { status: 200, body: "" };
const leave = async (session: string, file: string) => {
  const { status, body } = await ask(write(session, file));
  return { status, body: body.trim() };
};
const denied = ({ body }: Answer) => reasonOf({ stdout: body, stderr: "", status: 0 });

/** A prompt in a session of that harness, by the hook that is installed for it. */
const prompts = (harness: HookHarness, session: string, env: Record<string, string> = {}) =>
  harness.run(
    lineFor(repo, "claude", "UserPromptSubmit"),
    JSON.stringify({
      session_id: session,
      cwd: repo.root,
      hook_event_name: "UserPromptSubmit",
      prompt: "go",
    }),
    { env },
  );

const leases = () =>
  repo
    .log()
    .filter(({ event_type: type }) => type === "claim.acquired")
    .flatMap(
      ({ payload }) =>
        payload.leases as unknown as { key: string; holder: { pid: number }; agent_id: string }[],
    );

describe("a harness that asks over HTTP", () => {
  it("leases what it writes for the process that its hooks have shown, and is refused what others hold", async () => {
    const [ada, bob] = [new HookHarness(repo), new HookHarness(repo)];
    await prompts(ada, ADA, { COTENANT_AGENT_ID: "agent:ada" });
    await prompts(bob, BOB);
    expect(await leave(ADA, "a.txt")).toEqual(LEAVE);
    expect(leases()).toMatchObject([{ key: "file:a.txt", holder: { pid: ada.pid }, agent_id: "agent:ada" }]);
    expect(denied(await ask(write(BOB, "a.txt")))).toContain("a.txt is held by agent:ada");
    // Dead is dead, whichever way it has asked.
    ada.kill();
    await until("it is free", async () => (await leave(BOB, "a.txt")).body === "");
    expect(leases().at(-1)).toMatchObject({ holder: { pid: bob.pid } });
  });

  it("is known by its connection where it has no hook yet, and is answered quickly from then on", async () => {
    const long = new Date(Date.now() - 60_000);
    fs.utimesSync(path.join(repo.root, ".cotenant/config.toml"), long, long);
    for (let i = 0; i < 3; i++) expect(await leave(ADA, "a.txt")).toEqual(LEAVE);
    expect(leases()).toMatchObject([{ key: "file:a.txt", holder: { pid: process.pid } }]);
    expect(await guardCounts(repo)).toMatchObject({ events: 3, quick: 2, by_harness: { claude: 3 } });
  });

  it("gets no answer while there is no daemon, and the next prompt starts one at the same place", async () => {
    const first = recordOf(repo)!;
    const { url } = callsOf(repo, "claude")[0]!.http!;
    process.kill(first.pid, "SIGKILL");
    await isGone(first);
    await expect(ask(write(ADA, "a.txt"))).rejects.toThrow(/ECONN/);
    await prompts(new HookHarness(repo), ADA);
    await until("it is there", () => recordOf(repo)!.pid !== first.pid);
    await until("it listens", () =>
      ask(write(ADA, "a.txt")).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
    expect(callsOf(repo, "claude")[0]!.http!.url).toBe(url);
  });

  it("hears nothing more from a daemon that ends meanwhile, and has nothing then", async () => {
    const [ada, bob] = [new HookHarness(repo), new HookHarness(repo)];
    await prompts(ada, ADA);
    await prompts(bob, BOB, { COTENANT_GUARD_RETRY_SECS: "60" });
    repo.write(".cotenant/config.toml", "# nothing\n");
    repo.git("commit", "--quiet", "--all", "--message", "second");
    expect(await leave(ADA, "a.txt")).toEqual(LEAVE);
    const waiting = ask(write(BOB, "a.txt"));
    waiting.catch(() => {});
    await until("he waits", async () => (await guardCounts(repo))["under_way"] === 1);
    expect((await repo.start("agent:x", ["daemon", "stop"]).done).status).toBe(0);
    await expect(waiting).rejects.toThrow();
    expect(leases()).toHaveLength(1);
  });

  it("is not one who has no business here", async () => {
    const event = write(ADA, "a.txt");
    const { port } = new URL(callsOf(repo, "claude")[0]!.http!.url);
    const refused: [number, Parameters<typeof ask>[1]][] = [
      [401, { headers: { Authorization: "Bearer 0" } }],
      [401, { headers: { Authorization: `Bearer ${recordOf(repo)!.token}` } }],
      [405, { method: "GET" }],
      [405, { method: "OPTIONS" }],
      [403, { headers: { Host: `localhost:${port}` } }],
      [403, { headers: { Host: "example.invalid" } }],
      [403, { headers: { Origin: `http://127.0.0.1:${port}` } }],
      [415, { headers: { "Content-Type": "text/plain" } }],
      [404, { path: "/" }],
      [404, { path: "/guard/../../etc/passwd" }],
    ];
    for (const [status, more] of refused) {
      const answer = await ask(event, more);
      expect(answer.status, JSON.stringify(more)).toBe(status);
      expect(answer.body).not.toContain(repo.root);
      if (status === 401)
        expect(answer.body).toContain(
          "wrong or missing token; run: cotenant agent install claude --via http",
        );
    }
    expect(leases()).toEqual([]);
  });

  it("is answered however many others are connected and say nothing", async () => {
    const { url } = callsOf(repo, "claude")[0]!.http!;
    const { hostname, port } = new URL(url);
    const idle = Array.from({ length: 600 }, () => net.connect(Number(port), hostname).on("error", () => {}));
    await Promise.all(idle.map((one) => new Promise((resolve) => one.once("connect", resolve))));
    expect(await leave(ADA, "a.txt")).toEqual(LEAVE);
    for (const one of idle) one.destroy();
  });

  it("is told of where nobody would look for it: nothing can be written without the daemon", async () => {
    const told = "can write nothing while none is running";
    expect(await repo.start("human:me", ["daemon", "stop"]).done).toMatchObject({
      stderr: expect.stringContaining(told),
    });
    for (const command of ["daemon status", "status", "doctor"])
      expect((await repo.start("human:me", command.split(" ")).done).stdout, command).toContain(told);
    const next = async () => (await repo.start("human:me", ["agent", "doctor", "claude"]).done).stdout;
    expect(await next()).toContain("next: cotenant daemon start, then try again");
    await startDaemon(repo);
    for (const command of ["daemon status", "status", "doctor"])
      expect((await repo.start("human:me", command.split(" ")).done).stdout, command).not.toContain(told);
    expect(await next()).not.toContain("next:");
  });

  it("is not given up unnoticed by installing without --via", async () => {
    const again = await repo.askHere("human:me", "agent", "install", "claude");
    const remarks = again.data["remarks"] as unknown as string[];
    expect(remarks.join()).toContain("asks by a program for each event from now on");
    expect(remarks.join()).toContain("cotenant agent install claude --via http");
    const back = await repo.askHere("human:me", "agent", "install", "claude", "--via", "http");
    expect((back.data["remarks"] as unknown as string[]).join()).toContain(
      "the daemon over HTTP from now on",
    );
  });

  it("finds nobody but on loopback", async () => {
    const { port } = new URL(callsOf(repo, "claude")[0]!.http!.url);
    const listening = fs
      .readFileSync("/proc/net/tcp", "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(
        ([, local, , state]) => state === "0A" && Number.parseInt(local!.split(":")[1]!, 16) === Number(port),
      )
      .map(([, local]) => local!.split(":")[0]);
    expect(listening).toEqual(["0100007F"]);
  });

  it("is given another port where somebody else has taken its own", async () => {
    const first = new URL(callsOf(repo, "claude")[0]!.http!.url).port;
    await repo.start("agent:x", ["daemon", "stop"]).done;
    let met = 0;
    const other = net.createServer(() => met++);
    await new Promise<void>((resolve) => other.listen(Number(first), "127.0.0.1", resolve));
    // Whoever starts it does not fail with it.
    await startDaemon(repo);
    expect(await guardCounts(repo)).toMatchObject({ http_port: null });
    const doctor = await repo.start("human:me", ["agent", "doctor", "claude", "--json"]).done;
    expect(doctor.status).toBe(10);
    expect(doctor.stdout).toContain("can write nothing until one does");
    expect(doctor.stdout).toContain(`the daemon does not listen on port ${first}`);
    expect(met).toBe(0);
    await repo.prepare("human:me", "agent", "install", "claude", "--via", "http");
    expect(new URL(callsOf(repo, "claude")[0]!.http!.url).port).not.toBe(first);
    expect(await leave(ADA, "a.txt")).toEqual(LEAVE);
    other.close();
  });
});
