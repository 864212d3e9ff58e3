import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AgentProgram, PLATFORM } from "../program";

const EVENTS = [
  "session_start",
  "before_agent_start",
  "tool_call",
  "tool_result",
  "agent_settled",
  "session_shutdown",
];

export const pi: AgentProgram = {
  name: "pi",
  title: "pi",
  harness: "pi",
  packages: [
    // The newest whose own packages are all in the registry.
    { name: "@earendil-works/pi-coding-agent", version: "0.87.1" },
    // It needs Node 22.
    { name: `node-${PLATFORM}`, version: "22.23.3" },
  ],
  prepare({ home, port }) {
    const folder = join(home, ".pi/agent");
    mkdirSync(folder, { recursive: true });
    // Folders that were trusted before.
    rmSync(join(folder, "trust.json"), { force: true });
    const scripted = {
      baseUrl: `http://127.0.0.1:${port}/v1`,
      api: "openai-completions",
      apiKey: "scripted",
      models: [{ id: "scripted" }],
    };
    writeFileSync(join(folder, "models.json"), JSON.stringify({ providers: { scripted } }));
  },
  start: ({ installed }, prompt, isTrusting) => {
    const modules = join(installed.folder, "node_modules");
    return {
      command: join(modules, `node-${PLATFORM}/bin/node`),
      args: [
        join(modules, "@earendil-works/pi-coding-agent/dist/bundle/cli.js"),
        ...["-p", prompt, "--model", "scripted/scripted", ...(isTrusting ? ["--approve"] : [])],
      ],
      env: { PI_OFFLINE: "1", PI_TELEMETRY: "0", PI_SKIP_VERSION_CHECK: "1" },
    };
  },
  tools: {
    write: (path, content) => ({ tool: "write", input: { path, content } }),
    edit: (talk, path, oldText, newText) =>
      talk.use({ tool: "edit", input: { path, edits: [{ oldText, newText }] } }),
    shell: (command) => ({ tool: "bash", input: { command } }),
    // It has no way of its own: an agent that wants one writes it like this.
    background: (command) => ({ tool: "bash", input: { command: `${command} >/dev/null 2>&1 &` } }),
    delegate: null,
    await: null,
  },
  trust: {
    by: "the question at the start, `--approve`",
    async give({ home, repo }) {
      writeFileSync(join(home, ".pi/agent/trust.json"), JSON.stringify({ [repo]: true }));
    },
  },
  settings: ".pi/extensions/cotenant.js",
  ownSettings: (command) => ({
    path: ".pi/extensions/mine.js",
    text: `import { execSync } from "node:child_process";
export default (pi) => { pi.on("tool_call", () => { execSync(${JSON.stringify(command)}); }); };\n`,
  }),
  recordingSettings: (command) => ({
    path: ".pi/extensions/recording.js",
    text: `import { spawnSync } from "node:child_process";
export default (pi) => {
  for (const name of ${JSON.stringify(EVENTS)})
    pi.on(name, ({ systemPrompt, systemPromptOptions, ...event }, { cwd, sessionManager }) => {
      const payload = { ...event, context: { cwd, sessionId: sessionManager.getSessionId() } };
      spawnSync("/bin/sh", ["-c", ${JSON.stringify(command)} + " " + name], { input: JSON.stringify(payload) });
    });
};\n`,
  }),
};
