import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ToolCall } from "../../../../src/features/harnesses/real-canary/conversation";
import {
  CODEX_MODEL,
  type CodexModel,
  headlessCodexWith,
  writeCodexSettings,
} from "../../../../src/features/harnesses/real-canary/programs/codex";
import { type AgentProgram, type Installed, PLATFORM } from "../program";
import { nested } from "./claude";
import { trustOfAllHooks } from "./codex-trust";

const EVENTS = [
  "SessionStart",
  "UserPromptSubmit",
  "PreToolUse",
  "PostToolUse",
  "SubagentStart",
  "SubagentStop",
  "Stop",
  "SessionEnd",
];

/** In code mode the model writes a program that calls the tools; which mode it is depends on the model's name. */
interface Mode extends CodexModel {
  command(input: Readonly<Record<string, unknown>>): ToolCall;
  delegate(message: string): ToolCall;
  await(told: string): ToolCall;
}

const WAIT_MS = 60_000;

const DIRECT: Mode = {
  ...CODEX_MODEL,
  command: (input) => ({ tool: "exec_command", input }),
  delegate: (message) => ({ tool: "spawn_agent", namespace: "multi_agent_v1", input: { message } }),
  await: (told) => {
    const id = /"agent_id":\s*"([^"]+)"/.exec(told)?.[1] ?? "unknown";
    return { tool: "wait_agent", namespace: "multi_agent_v1", input: { targets: [id], timeout_ms: WAIT_MS } };
  },
};

const CODE: Mode = {
  model: "gpt-6.1-sol",
  patch: (text) => program(`tools.apply_patch(${JSON.stringify(text)})`),
  command: (input) => program(`tools.exec_command(${JSON.stringify(input)})`),
  delegate: (message) => ({
    tool: "spawn_agent",
    namespace: "collaboration",
    // The name is what it is known by among its siblings.
    input: { task_name: `part_${++parts}`, message, fork_turns: "none" },
  }),
  await: () => ({ tool: "wait_agent", namespace: "collaboration", input: { timeout_ms: WAIT_MS } }),
};

let parts = 0;

function program(call: string): ToolCall {
  return { tool: "exec", namespace: "functions", isFreeform: true, input: `text(await ${call});` };
}

function codexWith(mode: Mode, name: string, title: string): AgentProgram {
  const headless = headlessCodexWith(mode);
  return {
    ...headless,
    name,
    title,
    packages: [{ name: "@openai/codex", version: "0.166.0" }],
    launcher: (installed) => [binaryIn(installed)],
    tools: {
      ...headless.tools,
      shell: (cmd) => mode.command({ cmd, yield_time_ms: 20_000 }),
      background: (cmd) => mode.command({ cmd, yield_time_ms: 500 }),
      delegate: mode.delegate,
      await: mode.await,
    },
    trust: {
      by: "`/hooks`",
      async give(scene) {
        writeCodexSettings(scene, mode.model, await trustOfAllHooks(binaryIn(scene.installed), scene));
      },
    },
    settings: ".codex/hooks.json",
    ownSettings: (command) => ({
      path: ".codex/hooks.json",
      text: `{ "hooks": { "PreToolUse": [ { "hooks": [ { "type": "command", "command": ${JSON.stringify(command)}, "timeout": 5 } ] } ] } }`,
    }),
    recordingSettings: (command) => ({
      path: ".codex/hooks.json",
      text: nested(EVENTS, (event) => ({ type: "command", command: `${command} ${event}`, timeout: 3 })),
    }),
  };
}

function binaryIn({ folder }: Installed): string {
  const vendor = join(folder, `node_modules/@openai/codex-${PLATFORM}/vendor`);
  return join(vendor, readdirSync(vendor)[0] ?? "", "bin/codex");
}

export const codex = codexWith(DIRECT, "codex", "Codex");
export const codexCodeMode = codexWith(CODE, "codex-code-mode", "Codex, code mode");
