import * as path from "node:path";
import { asCommand, claude, isShell, nextCall, readIn } from "./claude-family";
import { type Deed, patchText } from "./deeds";
import {
  type Dialect,
  type Hook,
  type HookEnd,
  type Moment,
  objectIn,
  type Stage,
  type ToolCall,
  type Verdict,
  words,
} from "./dialect";
import { flatHooks, jsonFilesIn, nestedHooks } from "./settings-files";

const IN_CURSOR = { unitMs: 1_000, timeoutKey: "timeout", defaultMs: 60_000, commandKey: "command" } as const;
const IN_COPILOT = {
  unitMs: 1_000,
  timeoutKey: "timeoutSec",
  defaultMs: 30_000,
  commandKey: "bash",
} as const;
const CLAUDE_FILES = [".claude/settings.local.json", ".claude/settings.json"];

/** What Cursor and Copilot take from Claude Code's settings: its events, its matchers, its names of tools. */
function borrowed(stage: Stage, isBorrowing: boolean): Hook[] {
  if (!isBorrowing) return [];
  const how = {
    unitMs: 1_000,
    timeoutKey: "timeout",
    defaultMs: 60_000,
    commandKey: "command",
    isBorrowed: true,
  } as const;
  return CLAUDE_FILES.flatMap((name) => nestedHooks(path.join(stage.root, name), how));
}

const CLAUDE_EVENTS: Readonly<Record<string, string>> = {
  preToolUse: "PreToolUse",
  postToolUse: "PostToolUse",
  stop: "Stop",
  agentStop: "Stop",
  subagentStop: "SubagentStop",
  sessionEnd: "SessionEnd",
  sessionStart: "SessionStart",
  beforeSubmitPrompt: "UserPromptSubmit",
  userPromptSubmitted: "UserPromptSubmit",
};

/** The name that a hook's settings have for an event of the harness, or null where they have none. */
export function nameFor(hook: Hook, event: string): string | null {
  return hook.isBorrowed ? (CLAUDE_EVENTS[event] ?? null) : event;
}

const CLAUDE_TOOLS: Readonly<Record<string, string>> = {
  Shell: "Bash",
  bash: "Bash",
  edit: "Edit",
  create: "Write",
  Write: "Write",
  Delete: "Delete",
};

const asClaude = (call: ToolCall): ToolCall => ({ ...call, tool: CLAUDE_TOOLS[call.tool] ?? call.tool });

function cursorBase({ root, session }: Stage, event: string) {
  return {
    conversation_id: session,
    generation_id: `generation-${session}`,
    model: "composer",
    hook_event_name: event,
    cursor_version: "3.1.0",
    workspace_roots: [root],
    user_email: null,
    transcript_path: null,
  };
}

export const cursor: Dialect = {
  name: "cursor",
  hooks: (stage) => [
    ...flatHooks(path.join(stage.root, ".cursor/hooks.json"), IN_CURSOR),
    ...flatHooks(path.join(stage.home, ".cursor/hooks.json"), IN_CURSOR),
    ...borrowed(stage, true),
  ],
  hookEnv: ({ root }) => ({ CURSOR_PROJECT_DIR: root, CURSOR_VERSION: "3.1.0", CLAUDE_PROJECT_DIR: root }),
  shellEnv: ({ session }) => ({ CURSOR_AGENT: "1", CURSOR_CONVERSATION_ID: session }),
  toolFor(deed, { root }) {
    const id = nextCall("tool_");
    const file = "file" in deed ? path.join(root, deed.file) : "";
    if (deed.do === "delete") return { tool: "Delete", input: { path: file }, id };
    if ("file" in deed) return { tool: "Write", input: { file_path: file, contents: deed.content }, id };
    return { tool: "Shell", input: { command: asCommand(deed), working_directory: root }, id };
  },
  around: (call) =>
    isShell(call)
      ? {
          before: ["preToolUse", "beforeShellExecution"],
          after: ["afterShellExecution", "postToolUse"],
        }
      : { before: ["preToolUse"], after: ["afterFileEdit", "postToolUse"] },
  life: {
    start: ["sessionStart"],
    prompt: ["beforeSubmitPrompt"],
    stop: ["stop"],
    "subagent-stop": ["subagentStop"],
    end: ["sessionEnd"],
  },
  fits: (hook, call) =>
    hook.isBorrowed
      ? claude.fits(hook, asClaude(call))
      : hook.matcher === null || new RegExp(hook.matcher).test(call.tool),
  payload(event, moment, stage, hook) {
    const base = cursorBase(stage, event);
    if (moment.at === "before" || moment.at === "after")
      return { ...base, ...cursorTool(event, moment, stage, hook) };
    if (moment.at === "prompt") return { ...base, prompt: moment.prompt, attachments: [] };
    if (moment.at === "stop") return { ...base, status: "completed", loop_count: 0 };
    if (moment.at === "end") return { ...base, session_id: stage.session, reason: "completed" };
    return base;
  },
  verdict(hook, end) {
    const failure = end.timedOut
      ? "timed out"
      : end.status === 0 || end.status === 2
        ? null
        : `status ${end.status}`;
    if (end.status === 2) return { is: "denied", reason: end.stderr.trim(), endsTurn: false };
    // Silence is as bad as no JSON, where it matters.
    const answer = end.stdout.trim() === "" && !hook.failsClosed ? {} : objectIn(end.stdout);
    if (failure !== null || answer === null)
      return hook.failsClosed ? refusal(failure ?? "no JSON") : { is: "failed", why: failure ?? "no JSON" };
    if (answer["permission"] === "deny")
      return { is: "denied", reason: words(answer["agent_message"]), endsTurn: false };
    const inner = (answer["hookSpecificOutput"] ?? {}) as Record<string, unknown>;
    if (hook.isBorrowed && inner["permissionDecision"] === "deny")
      return { is: "denied", reason: words(inner["permissionDecisionReason"]), endsTurn: false };
    return { is: "allowed", told: words(answer["additional_context"]) || null };
  },
};

function cursorTool(event: string, moment: Moment & { call: ToolCall }, { root }: Stage, hook: Hook) {
  const { tool, input, id } = hook.isBorrowed ? asClaude(moment.call) : moment.call;
  const output = moment.at === "after" ? moment.output : "";
  const command = words(input["command"]);
  if (event === "beforeShellExecution") return { command, cwd: root, sandbox: false };
  if (event === "afterShellExecution") return { command, output, duration: 10 };
  const file = input["file_path"] ?? input["path"];
  if (event === "afterFileEdit") return { file_path: file, edits: [{ old_string: "", new_string: "" }] };
  return {
    tool_name: tool,
    tool_input: input,
    ...(moment.at === "after" ? { tool_output: JSON.stringify({ output }), duration: 10 } : {}),
    tool_use_id: id,
    cwd: root,
  };
}

export const copilot: Dialect = {
  name: "copilot",
  hooks: (stage) => [
    ...jsonFilesIn(path.join(stage.home, ".copilot/hooks")).flatMap((file) => flatHooks(file, IN_COPILOT)),
    ...jsonFilesIn(path.join(stage.root, ".github/hooks")).flatMap((file) => flatHooks(file, IN_COPILOT)),
    ...borrowed(stage, true),
  ],
  hookEnv: () => ({}),
  shellEnv: ({ session }) => ({ COPILOT_CLI: "1", COPILOT_AGENT_SESSION_ID: session }),
  toolFor(deed, { root }) {
    const id = nextCall("call_");
    const file = "file" in deed ? path.join(root, deed.file) : "";
    if (deed.do === "edit")
      return { tool: "edit", input: { path: file, old_str: readIn(file), new_str: deed.content }, id };
    if (deed.do === "write" || deed.do === "notebook")
      return { tool: "create", input: { path: file, file_text: deed.content }, id };
    return { tool: "bash", input: { command: asCommand(deed), description: "run", mode: "sync" }, id };
  },
  around: () => ({ before: ["preToolUse"], after: ["postToolUse"] }),
  life: {
    start: ["sessionStart"],
    prompt: ["userPromptSubmitted"],
    stop: ["agentStop"],
    "subagent-stop": ["subagentStop"],
    end: ["sessionEnd"],
  },
  // Anchored: the whole name.
  fits: (hook, call) =>
    hook.isBorrowed
      ? claude.fits(hook, asClaude(call))
      : hook.matcher === null || new RegExp(`^(?:${hook.matcher})$`).test(call.tool),
  payload(event, moment, stage, hook) {
    // Names in Pascal case bring names in snake case, and Claude Code's tools.
    if (hook.isBorrowed) return copilotAsClaude(nameFor(hook, event) ?? event, moment, stage);
    const base = { sessionId: stage.session, timestamp: Date.now(), cwd: stage.root };
    if (moment.at === "before" || moment.at === "after")
      return {
        ...base,
        toolName: moment.call.tool,
        toolArgs: JSON.stringify(moment.call.input),
        ...(moment.at === "after"
          ? { toolResult: { resultType: "success", textResultForLlm: moment.output } }
          : {}),
      };
    if (moment.at === "prompt") return { ...base, prompt: moment.prompt };
    if (moment.at === "start") return { ...base, source: "new", initialPrompt: "" };
    if (moment.at === "stop") return { ...base, transcriptPath: "", stopReason: "end_turn" };
    if (moment.at === "end") return { ...base, reason: "complete" };
    return base;
  },
  verdict(hook, end) {
    if (end.timedOut) return { is: "failed", why: "timed out" };
    // Its command hooks fail closed.
    if (end.status !== 0) return refusal(end.stderr.trim() || `status ${end.status}`);
    const answer = objectIn(end.stdout) ?? {};
    const inner = (answer["hookSpecificOutput"] ?? {}) as Record<string, unknown>;
    const decider = hook.isBorrowed ? { ...inner, ...answer } : answer;
    if (decider["permissionDecision"] === "deny") return refusal(words(decider["permissionDecisionReason"]));
    return { is: "allowed", told: null };
  },
};

function copilotAsClaude(event: string, moment: Moment, { root, session }: Stage): Record<string, unknown> {
  const tool = moment.at === "before" || moment.at === "after" ? asClaude(moment.call) : null;
  return {
    hook_event_name: event,
    session_id: session,
    timestamp: new Date().toISOString(),
    cwd: root,
    ...(tool === null ? {} : { tool_name: tool.tool, tool_input: tool.input }),
    ...(moment.at === "prompt" ? { prompt: moment.prompt } : {}),
  };
}

function refusal(reason: string): Verdict {
  return { is: "denied", reason, endsTurn: false };
}

/** It has no hooks but those of its plugins: see `opencode-player.ts`. */
export const opencode: Dialect = {
  name: "opencode",
  hooks: () => [],
  hookEnv: () => ({}),
  shellEnv: () => ({ OPENCODE: "1" }),
  toolFor(deed: Deed, { root }) {
    const id = nextCall("call_");
    const file = "file" in deed ? path.join(root, deed.file) : "";
    if (deed.do === "edit")
      return {
        tool: "edit",
        input: { filePath: file, oldString: readIn(file), newString: deed.content },
        id,
      };
    if (deed.do === "write" || deed.do === "notebook")
      return { tool: "write", input: { filePath: file, content: deed.content }, id };
    if (deed.do === "patch" || deed.do === "delete") {
      const changes = deed.do === "patch" ? deed.changes : [{ file: deed.file, content: null }];
      const known = changes.map((change) => ({
        ...change,
        isNew: readIn(path.join(root, change.file)) === "",
      }));
      return { tool: "apply_patch", input: { patchText: patchText(known) }, id };
    }
    return { tool: "bash", input: { command: deed.command, description: "run" }, id };
  },
  around: () => ({ before: [], after: [] }),
  life: { start: [], prompt: [], stop: [], "subagent-stop": [], end: [] },
  fits: () => false,
  payload: () => ({}),
  verdict: (_: Hook, __: HookEnd) => ({ is: "allowed", told: null }),
};

/** Nor has it: see `corpora.test.ts`. */
export const pi: Dialect = {
  ...opencode,
  name: "pi",
  shellEnv: ({ session }) => ({ PI_CODING_AGENT: "true", PI_SESSION_ID: session }),
  toolFor(deed: Deed, { root }) {
    const id = nextCall("call_");
    const file = "file" in deed ? path.join(root, deed.file) : "";
    if (deed.do === "edit") {
      const edits = [{ oldText: readIn(file), newText: deed.content }];
      return { tool: "edit", input: { path: file, edits }, id };
    }
    if (deed.do === "write" || deed.do === "notebook")
      return { tool: "write", input: { path: file, content: deed.content }, id };
    return { tool: "bash", input: { command: asCommand(deed) }, id };
  },
};
