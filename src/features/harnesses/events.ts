import type { HarnessName } from "../../identity/harness";
import { HARNESSES, type Moment } from "../guard/harness";
import type { Trial } from "./coverage";

export interface TrialSession {
  readonly harness: HarnessName;
  readonly session: string;
  readonly repository: string;
  readonly at: number;
}

/** What a harness writes to a hook's standard input, as far as it is documented. */
export function eventFor(
  scene: TrialSession,
  moment: Moment,
  trial: Trial | null,
): Readonly<Record<string, unknown>> {
  const { harness, session, repository, at } = scene;
  const event = HARNESSES[harness].events.find((one) => one.moment === moment)?.name ?? "";
  const call = "canary";
  switch (harness) {
    case "cursor":
      return {
        conversation_id: session,
        generation_id: call,
        hook_event_name: event,
        workspace_roots: [repository],
        ...(trial === null
          ? {}
          : { tool_name: trial.tool, tool_input: trial.input, tool_use_id: call, cwd: repository }),
      };
    case "copilot":
      return {
        sessionId: session,
        timestamp: at,
        cwd: repository,
        ...(trial === null ? {} : { toolName: trial.tool, toolArgs: JSON.stringify(trial.input) }),
      };
    case "opencode":
    case "pi":
      return {
        event,
        sessionID: session,
        directory: repository,
        ...(trial === null ? {} : { tool: trial.tool, callID: call, args: trial.input }),
      };
    default:
      return {
        session_id: session,
        ...(harness === "codex" ? { turn_id: call } : {}),
        transcript_path: "",
        cwd: repository,
        ...(harness === "gemini"
          ? { timestamp: new Date(at).toISOString() }
          : { permission_mode: "default" }),
        hook_event_name: event,
        ...(trial === null ? {} : { tool_name: trial.tool, tool_input: trial.input }),
        ...(trial === null || harness === "gemini" ? {} : { tool_use_id: call }),
      };
  }
}

/** Whether an answer is a refusal to that harness, and in words that it can pass on. */
export function isDenial(
  harness: HarnessName,
  status: number | null,
  stdout: string,
  stderr: string,
): boolean {
  if (status === 2) return stderr.trim() !== "";
  if (status !== 0) return false;
  const {
    hookSpecificOutput,
    permission,
    agent_message,
    decision,
    reason,
    permissionDecision,
    permissionDecisionReason,
  } = objectIn(stdout);
  const inner = (hookSpecificOutput ?? {}) as Record<string, unknown>;
  const isWord = (value: unknown) => typeof value === "string" && value !== "";
  switch (harness) {
    case "cursor":
      return permission === "deny" && isWord(agent_message);
    case "gemini":
      return decision === "deny" && isWord(reason);
    case "copilot":
      return permissionDecision === "deny" && isWord(permissionDecisionReason);
    case "opencode":
    case "pi":
      return false;
    default:
      return inner["permissionDecision"] === "deny" && isWord(inner["permissionDecisionReason"]);
  }
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
