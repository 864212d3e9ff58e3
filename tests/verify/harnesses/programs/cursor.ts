import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../bundle";
import { startCursorBackend } from "../cursor-backend";
import { type AgentProgram, PLATFORM } from "../program";

const EVENTS = [
  "sessionStart",
  "beforeSubmitPrompt",
  "preToolUse",
  "postToolUse",
  "postToolUseFailure",
  "beforeShellExecution",
  "afterShellExecution",
  "afterFileEdit",
  "subagentStart",
  "subagentStop",
  "stop",
  "sessionEnd",
];

const TIMEOUT_MS = 60_000;

/**
 * Cursor's local agent, as its SDK starts it. Its model decides in Cursor's backend, so a tool here is a message of that
 * backend: the case of `agent.v1.ExecServerMessage`, and its fields.
 */
export const cursor: AgentProgram = {
  name: "cursor",
  title: "Cursor",
  harness: "cursor",
  packages: [
    { name: "@cursor/sdk", version: "1.0.32" },
    // The SDK needs Node 22.
    { name: `node-${PLATFORM}`, version: "22.23.3" },
  ],
  serve: ({ folder }) => startCursorBackend(join(folder, "node_modules/@cursor/sdk")),
  prepare() {},
  launcher: ({ folder }) => [
    join(folder, `node_modules/node-${PLATFORM}/bin/node`),
    join(ROOT, "tests/verify/harnesses/cursor-agent.mjs"),
    join(folder, "node_modules/@cursor/sdk/dist/esm/index.js"),
  ],
  start: ({ installed, port, repo }, prompt) => ({
    args: [repo, prompt],
    env: {
      CURSOR_BACKEND_URL: `http://127.0.0.1:${port}`,
      CURSOR_API_KEY: "scripted",
      CURSOR_RIPGREP_PATH: join(installed.folder, `node_modules/@cursor/sdk-${PLATFORM}/bin/rg`),
      NODE_NO_WARNINGS: "1",
    },
  }),
  tools: {
    write: (path, fileText) => ({ tool: "writeArgs", input: { path, fileText } }),
    async edit(talk, path, from, to) {
      await talk.use({ tool: "readArgs", input: { path } });
      const fileText = readFileSync(path, "utf8").replace(from, to);
      return talk.use({ tool: "writeArgs", input: { path, fileText } });
    },
    shell: (command, { repo }) => ({
      tool: "shellStreamArgs",
      input: { command, workingDirectory: repo, timeout: TIMEOUT_MS },
    }),
    background: (command, { repo }) => ({
      tool: "backgroundShellSpawnArgs",
      input: { command, workingDirectory: repo },
    }),
    delegate: (prompt) => ({
      tool: "subagentArgs",
      input: { subagentType: "generalPurpose", modelId: "scripted", prompt },
    }),
    await: null,
  },
  trust: null,
  settings: ".cursor/hooks.json",
  ownSettings: (command) => ({
    path: ".cursor/hooks.json",
    text: `{ "version": 1,\n\t"hooks": { "preToolUse": [ { "command": ${JSON.stringify(command)} } ] } }`,
  }),
  recordingSettings: (command) => ({
    path: ".cursor/hooks.json",
    text: JSON.stringify({
      version: 1,
      hooks: Object.fromEntries(EVENTS.map((event) => [event, [{ command: `${command} ${event}` }]])),
    }),
  }),
};
