import * as fs from "node:fs";
import * as path from "node:path";
import { changesOf, type Deed, patchText } from "./deeds";
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
import { nestedHooks, type Reading } from "./settings-files";

const SECONDS: Reading = { unitMs: 1_000, timeoutKey: "timeout", defaultMs: 600_000, commandKey: "command" };
let calls = 0;
export const nextCall = (prefix: string): string => `${prefix}${++calls}`;

/** Fields that the family shares. */
function common(event: string, { root, home, session, subagent }: Stage): Record<string, unknown> {
  return {
    session_id: session,
    transcript_path: path.join(home, `.claude/projects/${session}.jsonl`),
    cwd: root,
    permission_mode: "default",
    hook_event_name: event,
    ...(subagent === undefined ? {} : { agent_id: subagent, agent_type: "general-purpose" }),
  };
}

function toolFields(moment: Moment): Record<string, unknown> {
  if (moment.at !== "before" && moment.at !== "after") return {};
  const { tool, input, id } = moment.call;
  return {
    tool_name: tool,
    tool_input: input,
    ...(moment.at === "after" ? { tool_response: { output: moment.output } } : {}),
    tool_use_id: id,
  };
}

const SAYINGS: Readonly<Partial<Record<Moment["at"], Record<string, unknown>>>> = {
  start: { source: "startup" },
  stop: { stop_hook_active: false },
  "subagent-stop": { stop_hook_active: false },
  end: { reason: "other" },
};

export const claude: Dialect = {
  name: "claude",
  hooks: ({ root, home }) => [
    ...nestedHooks(path.join(home, ".claude/settings.json"), SECONDS),
    ...nestedHooks(path.join(root, ".claude/settings.json"), SECONDS),
    ...nestedHooks(path.join(root, ".claude/settings.local.json"), SECONDS),
  ],
  hookEnv: ({ root }) => ({
    CLAUDE_PROJECT_DIR: root,
    CLAUDECODE: "1",
    CLAUDE_CODE_ENTRYPOINT: "cli",
    CLAUDE_CODE_SESSION_ATTENDED: "1",
  }),
  shellEnv: ({ session }) => ({ CLAUDECODE: "1", CLAUDE_CODE_SESSION_ID: session }),
  toolFor(deed, { root }) {
    const id = nextCall("toolu_");
    const file = "file" in deed ? path.join(root, deed.file) : "";
    switch (deed.do) {
      case "edit":
        return {
          tool: "Edit",
          input: { file_path: file, old_string: readIn(file), new_string: deed.content },
          id,
        };
      case "write":
        return { tool: "Write", input: { file_path: file, content: deed.content }, id };
      case "notebook":
        return { tool: "NotebookEdit", input: { notebook_path: file, new_source: deed.content }, id };
      default:
        return { tool: "Bash", input: { command: asCommand(deed), description: "run" }, id };
    }
  },
  around: () => ({ before: ["PreToolUse"], after: ["PostToolUse"] }),
  life: {
    start: ["SessionStart"],
    prompt: ["UserPromptSubmit"],
    stop: ["Stop"],
    "subagent-stop": ["SubagentStop"],
    end: ["SessionEnd"],
  },
  // A plain list is of whole names; everything else is a pattern that may be anywhere in the name.
  fits: ({ matcher }, { tool }) =>
    matcher === null ||
    (/^[\w|, ]+$/.test(matcher)
      ? matcher.split(/[|,]/).some((name) => name.trim() === tool)
      : new RegExp(matcher).test(tool)),
  payload: (event, moment, stage) => ({
    ...common(event, stage),
    ...(moment.at === "prompt" ? { prompt: moment.prompt } : {}),
    ...toolFields(moment),
    ...SAYINGS[moment.at],
  }),
  verdict(_, end) {
    if (end.timedOut) return { is: "failed", why: "timed out" };
    if (end.status === 2) return { is: "denied", reason: end.stderr.trim(), endsTurn: false };
    if (end.status !== 0) return { is: "failed", why: `status ${end.status}` };
    const answer = objectIn(end.stdout);
    if (answer === null) return { is: "allowed", told: null };
    const inner = (answer["hookSpecificOutput"] ?? {}) as Record<string, unknown>;
    if (inner["permissionDecision"] === "deny" || answer["continue"] === false) {
      const reason = words(inner["permissionDecisionReason"]) || words(answer["stopReason"]);
      return { is: "denied", reason, endsTurn: answer["continue"] === false };
    }
    return { is: "allowed", told: words(inner["additionalContext"]) || null };
  },
};

const CODEX_KNOWN = new Set([
  "hookEventName",
  "permissionDecision",
  "permissionDecisionReason",
  "additionalContext",
  "updatedInput",
]);

export const codex: Dialect = {
  ...claude,
  name: "codex",
  hooks: ({ root, home }) => {
    const files = [home, root].flatMap((base) =>
      [".codex/hooks.json", ".codex/config.toml"].map((name) => path.join(base, name)),
    );
    return files.flatMap((file) => nestedHooks(file, SECONDS));
  },
  hookEnv: () => ({}),
  shellEnv: ({ session }) => ({ CODEX_THREAD_ID: session, CODEX_CI: "1" }),
  toolFor(deed, { root }) {
    const id = nextCall("call_");
    if (deed.do === "shell") return { tool: "Bash", input: { command: deed.command }, id };
    const changes = changesOf(deed).map((change) => ({
      ...change,
      isNew: !fs.existsSync(path.join(root, change.file)),
    }));
    return { tool: "apply_patch", input: { command: patchText(changes) }, id };
  },
  // Patterns only; a patch also goes by the names that others give to such tools.
  fits: ({ matcher }, { tool }) => {
    const names = tool === "apply_patch" ? ["apply_patch", "Edit", "Write"] : [tool];
    return matcher === null || names.some((name) => new RegExp(matcher).test(name));
  },
  payload: (event, moment, stage, hook) => ({
    ...claude.payload(event, moment, stage, hook),
    model: "o9",
    ...(moment.at === "start" || moment.at === "end" ? {} : { turn_id: `turn-${stage.session}` }),
  }),
  verdict(hook, end) {
    if (end.timedOut) return { is: "failed", why: "timed out" };
    if (end.status === 2)
      return end.stderr.trim() === ""
        ? { is: "failed", why: "status 2 without a word" }
        : { is: "denied", reason: end.stderr.trim(), endsTurn: false };
    if (end.status !== 0) return { is: "failed", why: `status ${end.status}` };
    if (end.stdout.trim() === "") return { is: "allowed", told: null };
    return codexAnswer(hook, end.stdout);
  },
};

/** What it does not know, or not yet, makes the hook a failed one, and the call goes on. */
function codexAnswer({ event }: Hook, stdout: string): Verdict {
  const answer = objectIn(stdout);
  if (answer === null)
    return event === "PreToolUse" ? { is: "failed", why: "no JSON" } : { is: "allowed", told: stdout };
  const inner = (answer["hookSpecificOutput"] ?? {}) as Record<string, unknown>;
  const unknown = [
    ...Object.keys(answer).filter(
      (name) => !["hookSpecificOutput", "systemMessage", "suppressOutput"].includes(name),
    ),
    ...Object.keys(inner).filter((name) => !CODEX_KNOWN.has(name)),
  ];
  if (unknown.length > 0) return { is: "failed", why: `unknown: ${unknown.join(", ")}` };
  const decision = inner["permissionDecision"];
  if (decision === "deny") {
    const reason = words(inner["permissionDecisionReason"]);
    return reason === "" ? { is: "failed", why: "no reason" } : { is: "denied", reason, endsTurn: false };
  }
  if (decision !== undefined && inner["updatedInput"] === undefined)
    return { is: "failed", why: `${decision}` };
  return { is: "allowed", told: words(inner["additionalContext"]) || null };
}

const MILLISECONDS: Reading = { ...SECONDS, unitMs: 1, defaultMs: 60_000 };

export const gemini: Dialect = {
  ...claude,
  name: "gemini",
  hooks: ({ root, home }) => [
    ...nestedHooks(path.join(home, ".gemini/settings.json"), MILLISECONDS),
    ...nestedHooks(path.join(root, ".gemini/settings.json"), MILLISECONDS),
  ],
  hookEnv: ({ root, session }) => ({
    GEMINI_PROJECT_DIR: root,
    GEMINI_CWD: root,
    GEMINI_SESSION_ID: session,
    CLAUDE_PROJECT_DIR: root,
  }),
  shellEnv: () => ({ GEMINI_CLI: "1" }),
  toolFor(deed, { root }) {
    const id = nextCall("g");
    const file = "file" in deed ? path.join(root, deed.file) : "";
    if (deed.do === "edit")
      return {
        tool: "replace",
        input: { file_path: file, old_string: readIn(file), new_string: deed.content },
        id,
      };
    if (deed.do === "write" || deed.do === "notebook")
      return { tool: "write_file", input: { file_path: file, content: deed.content }, id };
    return { tool: "run_shell_command", input: { command: asCommand(deed), description: "run" }, id };
  },
  around: () => ({ before: ["BeforeTool"], after: ["AfterTool"] }),
  life: {
    start: ["SessionStart"],
    prompt: ["BeforeAgent"],
    stop: ["AfterAgent"],
    "subagent-stop": [],
    end: ["SessionEnd"],
  },
  fits: ({ matcher }, { tool }) => matcher === null || new RegExp(matcher).test(tool),
  payload(event, moment, stage, hook) {
    const { permission_mode: _, tool_use_id: __, ...rest } = claude.payload(event, moment, stage, hook);
    const more = moment.at === "stop" ? { prompt: "go on", prompt_response: "done" } : {};
    return { ...rest, timestamp: new Date().toISOString(), ...more };
  },
  verdict(_, end: HookEnd) {
    if (end.timedOut) return { is: "failed", why: "timed out" };
    if (end.status === 2) return { is: "denied", reason: end.stderr.trim(), endsTurn: false };
    if (end.status !== 0) return { is: "failed", why: `status ${end.status}` };
    // What is no JSON is a remark for people.
    const answer = objectIn(end.stdout);
    const decision = answer?.["decision"];
    if (decision === "deny" || decision === "block")
      return { is: "denied", reason: words(answer!["reason"]), endsTurn: false };
    const inner = (answer?.["hookSpecificOutput"] ?? {}) as Record<string, unknown>;
    return { is: "allowed", told: words(inner["additionalContext"]) || null };
  },
};

/** Claude Code's events about Gemini CLI's tools. */
export const qwen: Dialect = {
  ...claude,
  name: "qwen",
  hooks: ({ root, home }) => [
    ...nestedHooks(path.join(home, ".qwen/settings.json"), MILLISECONDS),
    ...nestedHooks(path.join(root, ".qwen/settings.json"), MILLISECONDS),
  ],
  hookEnv: ({ root }) => ({ QWEN_PROJECT_DIR: root, CLAUDE_PROJECT_DIR: root, GEMINI_PROJECT_DIR: root }),
  shellEnv: ({ session }) => ({ QWEN_CODE: "1", QWEN_CODE_SESSION_ID: session }),
  toolFor(deed, stage) {
    const call = gemini.toolFor(deed, stage);
    if (deed.do === "edit") return { ...call, tool: "edit" };
    if (deed.do !== "notebook") return call;
    const input = { notebook_path: path.join(stage.root, deed.file), new_source: deed.content };
    return { ...call, tool: "notebook_edit", input };
  },
  fits: gemini.fits,
  payload: (event, moment, stage, hook) => ({
    ...claude.payload(event, moment, stage, hook),
    timestamp: new Date().toISOString(),
  }),
};

/** For what a harness has no tool of its own for. */
export function asCommand(deed: Deed): string {
  if (deed.do === "shell") return deed.command;
  return changesOf(deed)
    .map(({ file, content }) =>
      content === null ? `rm -f ${quoted(file)}` : `printf %s ${quoted(content)} > ${quoted(file)}`,
    )
    .join(" && ");
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

export function readIn(file: string): string {
  return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
}

export function isShell({ tool }: ToolCall): boolean {
  return ["Bash", "Shell", "run_shell_command", "bash"].includes(tool);
}
