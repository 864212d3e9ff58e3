import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { headlessCopilot } from "../../../../src/features/harnesses/real-canary/programs/copilot";
import { type AgentProgram, PLATFORM } from "../program";

const EVENTS = [
  "sessionStart",
  "userPromptSubmitted",
  "preToolUse",
  "postToolUse",
  "postToolUseFailure",
  "subagentStart",
  "subagentStop",
  "agentStop",
  "errorOccurred",
  "sessionEnd",
];

export const copilot: AgentProgram = {
  ...headlessCopilot,
  name: "copilot",
  title: "Copilot CLI",
  readsClaudeSettings: true,
  packages: [{ name: "@github/copilot", version: "1.0.102" }],
  launcher: ({ folder }) => [join(folder, `node_modules/@github/copilot-${PLATFORM}/copilot`)],
  tools: {
    ...headlessCopilot.tools,
    shell: (command) => ({ tool: "bash", input: { command, description: "a step", mode: "sync" } }),
    background: (command) => ({
      tool: "bash",
      input: { command, description: "a step", mode: "async", detach: false },
    }),
    delegate: (prompt) => ({
      tool: "task",
      input: { description: "a part", prompt, agent_type: "general-purpose", name: "part", mode: "sync" },
    }),
    await: null,
  },
  trust: {
    by: "the question at the start, `--trust-folder`",
    async give({ home, repo }) {
      mkdirSync(join(home, ".copilot"), { recursive: true });
      writeFileSync(join(home, ".copilot/config.json"), JSON.stringify({ trustedFolders: [repo] }));
    },
  },
  settings: ".github/hooks/cotenant.json",
  ownSettings: (command) => ({
    path: ".github/hooks/mine.json",
    text: flat(["preToolUse"], () => command),
  }),
  recordingSettings: (command) => ({
    path: ".github/hooks/recording.json",
    text: flat(EVENTS, (event) => `${command} ${event}`),
  }),
};

function flat(events: readonly string[], line: (event: string) => string): string {
  const hooks = Object.fromEntries(events.map((event) => [event, [{ type: "command", bash: line(event) }]]));
  return JSON.stringify({ version: 1, hooks });
}
