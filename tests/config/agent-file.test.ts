import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readAgentFile } from "../../src/config/agent-file";
import type { CotenantError } from "../../src/errors/cotenant-error";
import { nodePlatform } from "../../src/platform/node/node";

const platform = nodePlatform();
const home = fs.mkdtempSync(path.join(os.tmpdir(), "cotenant-agent-file-"));
afterAll(() => fs.rmSync(home, { recursive: true, force: true }));
const file = path.join(home, ".config/cotenant/agent.toml");

async function read(toml: string) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, toml);
  return readAgentFile({ platform, env: {}, home });
}

describe("agent.toml", () => {
  it("need not be there", async () => {
    expect(await readAgentFile({ platform, env: {}, home: path.join(home, "none") })).toBeNull();
    expect(await readAgentFile({ platform, env: {}, home: null })).toBeNull();
  });

  it("has the seed's fields", async () => {
    const whole = await read(`
[agent]
id = "agent:copilot-1"
created_at = "2026-01-03T12:00:00Z"
description = "GitHub Copilot Workspace Session 1"
default_ttl_secs = 900
[behavior]
auto_heartbeat = true
heartbeat_interval = 60
`);
    expect(whole).toEqual({
      file,
      agentId: "agent:copilot-1",
      createdAt: "2026-01-03T12:00:00.000Z",
      description: "GitHub Copilot Workspace Session 1",
      defaultTtlSecs: 900,
      autoHeartbeat: true,
      heartbeatSecs: 60,
    });
    expect(await read("[agent]\ncreated_at = 2026-01-03T12:00:00Z\n")).toMatchObject({
      agentId: null,
      createdAt: "2026-01-03T12:00:00.000Z",
      defaultTtlSecs: null,
    });
    expect(await read("# nothing\n[agent]\n")).toMatchObject({ agentId: null });
  });

  it.each([
    ['[agent]\nid = "copilot"', 2, "agent.id", null],
    ["[agent]\nid = 1", 2, "agent.id", null],
    ['[agent]\nidd = "agent:x"', 2, "agent.idd", "agent.id"],
    ["[agents]", 1, "agents", "agent"],
    ["agent = 1", 1, "agent", null],
    ["[agent]\ndefault_ttl_secs = 0", 2, "agent.default_ttl_secs", null],
    ['[agent]\ncreated_at = "yesterday"', 2, "agent.created_at", null],
    ["[behavior]\nheartbeat_interval = 4", 2, "behavior.heartbeat_interval", null],
    ['[behavior]\nheartbeat_interval = "30"', 2, "behavior.heartbeat_interval", null],
    ["[behavior]\nauto_heartbeat = 1", 2, "behavior.auto_heartbeat", null],
    ["[behavior]\nauto_heart = true", 2, "behavior.auto_heart", "behavior.auto_heartbeat"],
    ["[behavior]\n__proto__ = 1", 2, "behavior.__proto__", null],
    ["[agent", 1, null, null],
  ])("is refused when it is wrong: %j", async (toml, line, key, near) => {
    const error = await read(toml).then(
      () => null,
      (failure: unknown) => failure as CotenantError,
    );
    expect(error).toMatchObject({ code: "E_CONFIG", data: { file, line, key, nearest: near } });
  });
});
