import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ToolCall } from "../conversation";
import { type AgentProgram, type Installed, PLATFORM, type Scene } from "../program";
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
interface Mode {
  readonly model: string;
  patch(text: string): ToolCall;
  command(input: Readonly<Record<string, unknown>>): ToolCall;
  delegate(message: string): ToolCall;
  await(told: string): ToolCall;
}

const WAIT_MS = 60_000;

const DIRECT: Mode = {
  // An unknown model gets no apply_patch.
  model: "gpt-5.5",
  patch: (input) => ({ tool: "apply_patch", isFreeform: true, input }),
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
  const change = (kind: string, file: string, lines: readonly string[]) =>
    mode.patch(["*** Begin Patch", `*** ${kind} File: ${file}`, ...lines, "*** End Patch", ""].join("\n"));
  return {
    name,
    title,
    harness: "codex",
    packages: [{ name: "@openai/codex", version: "0.166.0" }],
    prepare: (scene) => writeSettings(scene, mode.model, ""),
    start: ({ installed }, prompt, isTrusting) => ({
      command: binaryIn(installed),
      args: [
        "exec",
        ...(isTrusting ? ["--dangerously-bypass-hook-trust"] : []),
        ...["-s", "danger-full-access", "--json", prompt],
      ],
      env: { SCRIPTED_KEY: "scripted" },
    }),
    tools: {
      write: (file, content) =>
        change(
          "Add",
          file,
          content
            .replace(/\n$/, "")
            .split("\n")
            .map((line) => `+${line}`),
        ),
      edit: (talk, file, from, to) => talk.use(change("Update", file, ["@@", `-${from}`, `+${to}`])),
      shell: (cmd) => mode.command({ cmd, yield_time_ms: 20_000 }),
      background: (cmd) => mode.command({ cmd, yield_time_ms: 500 }),
      delegate: mode.delegate,
      await: mode.await,
    },
    trust: {
      by: "`/hooks`",
      async give(scene) {
        writeSettings(scene, mode.model, await trustOfAllHooks(binaryIn(scene.installed), scene));
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

function writeSettings({ home, port, repo }: Scene, model: string, more: string): void {
  mkdirSync(join(home, ".codex"), { recursive: true });
  const text = `
model = "${model}"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:${port}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects."${repo}"]
trust_level = "trusted"
${more}`;
  writeFileSync(join(home, ".codex/config.toml"), text);
}

export const codex = codexWith(DIRECT, "codex", "Codex");
export const codexCodeMode = codexWith(CODE, "codex-code-mode", "Codex, code mode");
