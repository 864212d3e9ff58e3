import type { Environment } from "./repository";

export const HARNESS_NAMES = [
  "claude",
  "codex",
  "cursor",
  "gemini",
  "copilot",
  "opencode",
  "qwen",
  "pi",
] as const;
export type HarnessName = (typeof HARNESS_NAMES)[number];

export interface Harness {
  readonly name: HarnessName;
  /** The harness's own, untouched; null when it does not tell its shell commands. */
  readonly sessionId: string | null;
}

interface Traits {
  readonly name: HarnessName;
  /** Set by the harness for the commands it runs, and never by a person or an editor's plain terminal. */
  readonly markers: readonly string[];
  readonly sessions: readonly string[];
}

/**
 * Where harnesses are nested, the one more often run inside another comes first: Codex from Claude Code's
 * shell, either of them from an editor's agent.
 *
 * Sources, autumn 2026:
 * - Codex: openai/codex pulls 10096 (CODEX_THREAD_ID) and 9366 (CODEX_CI), core/src/spawn.rs (CODEX_SANDBOX…).
 *   CODEX_HOME is the user's own and proves nothing.
 * - Claude Code: code.claude.com/docs/en/env-vars (CLAUDECODE); CLAUDE_CODE_SESSION_ID since 2.1.132
 *   (anthropics/claude-code issue 56879).
 * - Copilot: COPILOT_CLI and COPILOT_AGENT_SESSION_ID in the CLI's and the cloud agent's shells (the cloud
 *   agent's environment is listed in watson/is-ci issue 28); COPILOT_AGENT in VS Code's agent terminals
 *   (microsoft/vscode pull 316267). COPILOT_MODEL and COPILOT_GITHUB_TOKEN are settings people export.
 * - Cursor: CURSOR_AGENT (cursor/cursor issue 3612), CURSOR_CONVERSATION_ID in newer versions. CURSOR_TRACE_ID
 *   is also in a person's integrated terminal (docs.rs/ai_env) and therefore no marker.
 * - Gemini CLI: GEMINI_CLI for shell commands (google-gemini/gemini-cli pull 4791); GEMINI_SESSION_ID only for
 *   hooks. GEMINI_CLI_* are settings.
 * - opencode: OPENCODE and OPENCODE_PID in its own process and hence in all children (vercel/vercel pull
 *   15834). OPENCODE_SESSION_ID is set by plugins that use its `shell.env` hook.
 * - Qwen Code: QWEN_CODE and QWEN_CODE_SESSION_ID for shell commands, as seen in 0.24.4. QWEN_HOME is a setting.
 * - pi: PI_CODING_AGENT in all children, PI_SESSION_ID in the shell's (docs/environment-variables.md of its package).
 *   PI_CODING_AGENT_DIR is a setting.
 */
const TRAITS: readonly Traits[] = [
  {
    name: "codex",
    markers: ["CODEX_THREAD_ID", "CODEX_CI", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"],
    sessions: ["CODEX_THREAD_ID"],
  },
  { name: "claude", markers: ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID"], sessions: ["CLAUDE_CODE_SESSION_ID"] },
  {
    name: "copilot",
    markers: ["COPILOT_CLI", "COPILOT_AGENT_SESSION_ID", "COPILOT_AGENT"],
    sessions: ["COPILOT_AGENT_SESSION_ID"],
  },
  { name: "cursor", markers: ["CURSOR_AGENT"], sessions: ["CURSOR_CONVERSATION_ID"] },
  { name: "gemini", markers: ["GEMINI_CLI", "GEMINI_SESSION_ID"], sessions: ["GEMINI_SESSION_ID"] },
  { name: "opencode", markers: ["OPENCODE", "OPENCODE_SESSION_ID"], sessions: ["OPENCODE_SESSION_ID"] },
  { name: "qwen", markers: ["QWEN_CODE", "QWEN_CODE_SESSION_ID"], sessions: ["QWEN_CODE_SESSION_ID"] },
  { name: "pi", markers: ["PI_CODING_AGENT", "PI_SESSION_ID"], sessions: ["PI_SESSION_ID"] },
];

/** The agent harness a command was started by, or null for a person, a script or a harness nobody knows. */
export function detectHarness(env: Environment): Harness | null {
  const found = TRAITS.filter(({ markers }) => markers.some((name) => isSet(env, name))).map(
    ({ name, sessions }): Harness => ({ name, sessionId: firstSet(env, sessions) }),
  );
  // A marker inherited from an outer harness must not hide the session of the inner one.
  return found.find((harness) => harness.sessionId !== null) ?? found[0] ?? null;
}

/** What an environment says of one harness, also inside another; null where that one has not started it. */
export function harnessIn(env: Environment, name: HarnessName): Harness | null {
  const { markers, sessions } = TRAITS.find((traits) => traits.name === name)!;
  const isMarked = [...markers, ...sessions].some((variable) => isSet(env, variable));
  return isMarked ? { name, sessionId: firstSet(env, sessions) } : null;
}

/** Every variable that says which harness, or which session of it, started a command. */
export function harnessVariables(): string[] {
  return TRAITS.flatMap(({ markers, sessions }) => [...markers, ...sessions]);
}

function isSet(env: Environment, name: string): boolean {
  const value = env[name];
  return value !== undefined && value !== "" && value !== "0" && value.toLowerCase() !== "false";
}

function firstSet(env: Environment, names: readonly string[]): string | null {
  const name = names.find((candidate) => isSet(env, candidate));
  return name === undefined ? null : env[name]!;
}
