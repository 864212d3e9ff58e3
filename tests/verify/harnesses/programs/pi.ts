import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { headlessPi } from "../../../../src/features/harnesses/real-canary/programs/pi";
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
  ...headlessPi,
  name: "pi",
  title: "pi",
  packages: [
    // The newest whose own packages are all in the registry.
    { name: "@earendil-works/pi-coding-agent", version: "0.87.1" },
    // It needs Node 22.
    { name: `node-${PLATFORM}`, version: "22.23.3" },
  ],
  launcher: ({ folder }) => [
    join(folder, `node_modules/node-${PLATFORM}/bin/node`),
    join(folder, "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"),
  ],
  tools: {
    ...headlessPi.tools,
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
