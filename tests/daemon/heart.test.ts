import * as fs from "node:fs";
import * as path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Workspace } from "../../src/coordinator/workspace";
import { Heart } from "../../src/daemon/heart";
import { Journal } from "../../src/daemon/journal";
import { Sessions } from "../../src/daemon/sessions";
import { thisMachine } from "../../src/platform/node/this-machine";
import { until } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

let repo: TestRepo;
let heart: Heart | null = null;
const journal = () => path.join(repo.root, ".git/journal");
beforeEach(() => {
  repo = TestRepo.make();
  repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
});
afterEach(() => heart?.close());

function open(agentToml: string, agentId = "agent:a"): Promise<Workspace> {
  const config = path.join(scratch(), "config");
  fs.mkdirSync(path.join(config, "cotenant"), { recursive: true });
  fs.writeFileSync(path.join(config, "cotenant/agent.toml"), agentToml);
  const env = { ...process.env, XDG_CONFIG_HOME: config };
  return Workspace.open({ ...thisMachine(), env, cwd: repo.root, isTerminal: false }, { agentId });
}

function beat(workspace: Workspace): Heart {
  heart = new Heart(async () => workspace, new Sessions(), new Journal(journal()));
  heart.start();
  return heart;
}

const folder = () => path.join(repo.root, ".git/cotenant/heartbeat");
const files = () => (fs.existsSync(folder()) ? fs.readdirSync(folder()) : []);

it("beats for sessions whose processes live, as often as coordination.heartbeat_interval_secs says", async () => {
  repo.write(".cotenant/config.toml", "[coordination]\nheartbeat_interval_secs = 77\n");
  const workspace = await open("[behavior]\nauto_heartbeat = true\n");
  const session = await workspace.session("write");
  await session.acquire([{ key: "file:a" as never, reach: "worktree" }], { ttlSecs: 60 });
  const dead = { ...session.actor.holder, pid: 2_000_000_000, startTime: "1" };
  const other = await (await open("", "agent:dead")).session("write");
  await other.acquire([{ key: "file:b" as never, reach: "worktree" }], { ttlSecs: 60, holder: dead });
  beat(workspace);
  await until("it has beaten", () => files().length > 0);
  expect(files()).toEqual(["agent%3aa.json"]);
  const said = JSON.parse(fs.readFileSync(path.join(folder(), files()[0]!), "utf8"));
  expect(said).toMatchObject({ agent_id: "agent:a", interval_secs: 77 });
  // Not a line in the log for each beat.
  expect(repo.log().filter(({ event_type: type }) => type === "claim.heartbeat")).toEqual([]);
});

it("does nothing unless agent.toml asks for it", async () => {
  const workspace = await open("");
  const session = await workspace.session("write");
  await session.acquire([{ key: "file:a" as never, reach: "worktree" }], { ttlSecs: 60 });
  const idle = beat(workspace);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(files()).toEqual([]);
  expect(idle.status()).toEqual({ is_on: false, sessions: 0, beats: 0, last_failure: null });
});

it("lets claims without an end be heard of before they are taken for left", async () => {
  const issue = await repo.issue();
  repo.write(".cotenant/config.toml", "[coordination]\nstale_threshold_secs = 60\n");
  const workspace = await open("[behavior]\nauto_heartbeat = true\n");
  const session = await workspace.session("write");
  await session.acquire([{ key: `issue:${issue}` as never, reach: "repository" }], {
    ttlSecs: 0,
    reason: "long",
  });
  // As if it were half an hour later.
  const later = { ...workspace.store.now(), wallMs: Date.now() + 1_800_000 };
  Object.assign(workspace.store, { now: () => later });
  beat(workspace);
  await until("it has", () => repo.log().some(({ event_type: type }) => type === "claim.heartbeat"));
});

it("tells what went wrong, and goes on", async () => {
  const workspace = await open("[behavior]\nauto_heartbeat = true\n");
  const session = await workspace.session("write");
  await session.acquire([{ key: "file:a" as never, reach: "worktree" }], { ttlSecs: 60 });
  fs.rmSync(folder(), { recursive: true, force: true });
  fs.writeFileSync(folder(), "in the way");
  const failing = beat(workspace);
  await until("it has failed", () => fs.existsSync(journal()));
  expect(failing.status()).toMatchObject({ is_on: true, beats: 0, last_failure: expect.any(String) });
  expect(fs.readFileSync(journal(), "utf8")).toContain('"message":"could not beat","agent_id":"agent:a"');
});
