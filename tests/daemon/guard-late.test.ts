import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as net from "node:net";
import * as path from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { guardPatienceMs, SOCKET_HOST } from "../../src/daemon/guard-files";
import { GuardHttp } from "../../src/daemon/guard-http";
import { deadlineMs, HARNESSES } from "../../src/features/guard/harness";
import { GuardedAgent, SILENT } from "../support/guard";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import { gitWithDoor, UNTIL_GO } from "../support/slow-git";
import { GuardStage, post, RawHttp, TOKEN } from "./guard-stage";

const it = oneIn(3);

let stage: GuardStage;
let repo: TestRepo;
beforeEach(async () => {
  stage = new GuardStage();
  await stage.listen();
  repo = TestRepo.make();
  repo.write("a.txt", "one\n");
  repo.write(".cotenant/config.toml", "# nothing\n");
});
afterEach(() => stage.close());

const types = () => repo.log().map(({ event_type: type }) => type);

function write(session: string, file: string): object {
  return {
    session_id: session,
    cwd: repo.root,
    hook_event_name: "PreToolUse",
    tool_name: "Write",
    tool_input: { file_path: path.join(repo.root, file), content: "" },
  };
}

/** Bob asks for what Ada holds, and waits. */
async function waiting(env: string) {
  const ada = new GuardedAgent(repo, { session: "aaaaaaaa-1" });
  expect(await ada.write("a.txt")).toEqual(SILENT);
  const client = stage.connect();
  client.say(post(write("bbbbbbbb-2", "a.txt"), { headers: { "Cotenant-Limit": "200" }, env }));
  await until("he waits", () => types().includes("contention.heartbeat"));
  return { ada, client };
}

it("PROTOCOL 28: does nothing for a client that has left while it could not look", async () => {
  const { ada, client } = await waiting(
    "export COTENANT_GUARD_RETRY_SECS='60'\nexport COTENANT_GUARD_RETRY='on_release'\n",
  );
  await ada.send("end");
  const before = repo.logText();
  // As if the process were stopped for that long: when it goes on, its timers come before what its sockets have to say.
  client.socket.destroy();
  execFileSync("sleep", ["2.5"]);
  await until("it has noticed", () => stage.service.status().under_way === 0);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(repo.logText()).toBe(before);
  expect(stage.service.status()).toMatchObject({ events: 0, declined: 1 });
});

it("PROTOCOL 28: is not certain of a client that it could tell nothing for a second", async () => {
  const seen: boolean[] = [];
  const server = new GuardHttp({
    token: TOKEN,
    host: SOCKET_HOST,
    type: "text/plain",
    handle: () => async (client) => {
      seen.push(client.isWaiting());
      // In this very turn nobody can have said that they have left.
      execFileSync("sleep", ["1"]);
      seen.push(client.isWaiting());
      await until("it was told something", () => client.isWaiting());
      seen.push(client.isWaiting());
      return { status: 200, type: "text/plain", body: "done" };
    },
  });
  const socket = path.join(scratch("s"), "s");
  await server.listen(socket);
  const client = new RawHttp(net.connect(socket));
  client.say(post({}));
  await until("there is an answer", () => client.heard.includes("done"));
  expect(seen).toEqual([true, false, true]);
  client.socket.destroy();
  await server.close();
});

it("does nothing more once it has answered", async () => {
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  const { env, room } = gitWithDoor("rev-parse", UNTIL_GO);
  const client = stage.connect();
  const exports = Object.entries({ ...env, COTENANT_GUARD_DEADLINE_SECS: "1" });
  const event = {
    ...write("bbbbbbbb-2", ""),
    tool_name: "Bash",
    tool_input: { command: "git checkout a.txt" },
  };
  client.say(post(event, { env: exports.map(([name, value]) => `export ${name}='${value}'\n`).join("") }));
  // Git takes longer than the check may, and nothing is known to be held.
  await until("there is an answer", () => client.heard.includes("done"));
  expect(fs.existsSync(path.join(room, "waiting"))).toBe(true);
  const log = path.join(repo.control, "claims.jsonl");
  const grants = () => (fs.existsSync(log) ? types().filter((type) => type === "claim.acquired").length : 0);
  const before = grants();
  fs.writeFileSync(path.join(room, "go"), "");
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(grants()).toBe(before);
});

it("goes on for one that is still there when it can look again", async () => {
  const { ada, client } = await waiting(
    "export COTENANT_GUARD_RETRY_SECS='60'\nexport COTENANT_GUARD_RETRY='on_release'\n",
  );
  execFileSync("sleep", ["0.5"]);
  await ada.send("end");
  await until("there is an answer, or none to come", () => client.heard.includes("done") || client.isClosed);
  // On a machine so busy that it could tell its client nothing for a second, it leaves the rest to the program.
  if (!client.heard.includes("done")) {
    expect(types().filter((type) => type === "claim.acquired")).toHaveLength(1);
    return;
  }
  expect(client.heard).toMatch(/waited \d+ s for a\.txt/);
  expect(types().filter((type) => type === "claim.acquired")).toHaveLength(2);
});

it("lets a hook wait for a file as long as without the daemon, and leaves time for the program", () => {
  for (const { events } of Object.values(HARNESSES))
    for (const event of events) {
      const patienceMs = guardPatienceMs(event.timeoutSecs);
      if (event.moment === "before") expect(patienceMs).toBe(deadlineMs(event));
      expect(patienceMs).toBeLessThanOrEqual(deadlineMs(event));
      expect(patienceMs).toBeLessThan((event.timeoutSecs - 1) * 1000);
    }
});
