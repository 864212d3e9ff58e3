import * as path from "node:path";
import { describe, expect, it } from "vitest";
import type { AgentQuestion } from "../../src/identity/agent";
import { knownCaller } from "../../src/identity/known-caller";
import { nodePlatform } from "../../src/platform/node/node";
import { temporaryDirectory, write } from "./temporary";

const homes = temporaryDirectory();
const homeWith = (name: string, toml: string) => {
  write(path.join(homes, name, ".config/cotenant/agent.toml"), toml);
  return path.join(homes, name);
};
const broken = homeWith("broken", "[agent\n");
const person = homeWith("person", '[agent]\nid = "human:alice"\n');
const claude = { CLAUDECODE: "1", CLAUDE_CODE_SESSION_ID: "7f3c2b1a-90de-4f12-8abc-0123456789ab" };
const opencode = { OPENCODE: "1" };

const ask = async (question: Partial<AgentQuestion>) => {
  const nobody = { env: {}, home: null, isTerminal: false, controlDir: null };
  const { agent, unusable } = await knownCaller({ platform: nodePlatform(), ...nobody, ...question });
  return [agent?.agentId ?? null, agent?.sessionId ?? null, unusable.length];
};

describe("who somebody is, as far as it can be told", () => {
  it.each([
    ["nobody said so", {}, null, null, 0],
    ["it can be used", { env: { COTENANT_AGENT_ID: "agent:a" } }, "agent:a", "default", 0],
    ["the variable is wrong", { env: { COTENANT_AGENT_ID: "a" } }, null, null, 1],
    ["the flag is wrong", { flags: { agentId: "a" } }, null, null, 1],
    ["another one is right", { env: { COTENANT_AGENT_ID: "a" }, home: person }, "human:alice", "default", 1],
    [
      "it is a terminal",
      { env: { COTENANT_AGENT_ID: "a", USER: "bob" }, isTerminal: true },
      "human:bob",
      "default",
      1,
    ],
    ["the file is broken", { home: broken }, null, null, 1],
    [
      "the session is wrong",
      { env: { COTENANT_AGENT_ID: "agent:a", COTENANT_SESSION_ID: " " } },
      "agent:a",
      "default",
      1,
    ],
    [
      "all of it is wrong",
      {
        env: { COTENANT_AGENT_ID: "a", COTENANT_SESSION_ID: " " },
        flags: { agentId: "b", session: " " },
        home: broken,
      },
      null,
      null,
      3,
    ],
    [
      "a harness knows",
      { env: { ...claude, COTENANT_AGENT_ID: "a" } },
      "agent:claude-7f3c2b1a",
      expect.any(String),
      1,
    ],
    [
      "a person's in a harness",
      { env: { ...claude, COTENANT_AGENT_ID: "human:a" } },
      "agent:claude-7f3c2b1a",
      expect.any(String),
      1,
    ],
    ["a person's file in a harness", { env: opencode, home: person }, null, null, 1],
  ])("%s", async (_, question, agentId, sessionId, unusable) => {
    expect(await ask(question)).toEqual([agentId, sessionId, unusable]);
  });
});
