import type { HarnessName } from "../../identity/harness";

/**
 * What of a harness's life the guard hears of.
 *
 * - `before`: a tool is about to run. The only one that can be refused.
 * - `after`: a tool has run.
 * - `prompt`: a person has said something: the session goes on.
 * - `stop`: a turn is over. `done`: a subagent is.
 * - `end`: the session is over. `failure`: something went wrong that the harness does not go on from.
 */
export type Moment = "before" | "after" | "prompt" | "stop" | "done" | "end" | "failure";

/** One event of a harness that `agent install` registers. */
export interface HookEvent {
  /** As the harness writes it in its settings. */
  readonly name: string;
  readonly moment: Moment;
  /** Which tools it is for, in the harness's own kind of pattern; null where there is nothing to match. */
  readonly matcher: string | null;
  /** To be registered as the harness's own limit, in seconds whatever the unit there. */
  readonly timeoutSecs: number;
}

/** How a harness takes a refusal. The words themselves are `answers.ts`. */
export type AnswerForm =
  /** `{"hookSpecificOutput":{"hookEventName","permissionDecision":"deny","permissionDecisionReason"}}`, status 0. */
  | "claude"
  /** The same, and never a `continue` beside it. */
  | "codex"
  /** `{"permission":"deny","user_message","agent_message"}`, status 0. */
  | "cursor"
  /** `{"decision":"deny","reason"}`, status 0. */
  | "gemini"
  /** `{"permissionDecision":"deny","permissionDecisionReason"}`, status 0. */
  | "copilot"
  /** The reason on standard error, status 2: for our plugin, which throws it; and for whoever reads others' settings. */
  | "exit-2";

export interface HarnessTraits {
  readonly name: HarnessName;
  readonly title: string;
  readonly answers: AnswerForm;
  readonly events: readonly HookEvent[];
  /** In its shell Git runs no hooks: the guard itself looks at what is to be committed. */
  readonly runsNoGitHooks?: true;
}

/** A hook may wait for a file as long as `guard.retry_secs` asks by default, and then some. */
const WAITING_SECS = 200;
const SHORT_SECS = 20;

/** Of other people's tools, those whose names say that they write files. Only absolute paths in them count. */
const FOREIGN_WRITERS = "mcp__.*(?:write|edit|create|delete|remove|move|rename|patch|replace).*";

export const HARNESSES: Readonly<Record<HarnessName, HarnessTraits>> = {
  claude: {
    name: "claude",
    title: "Claude Code",
    answers: "claude",
    events: [
      before("PreToolUse", `Edit|MultiEdit|Write|NotebookEdit|Bash|PowerShell|${FOREIGN_WRITERS}`),
      after("PostToolUse", "Bash|PowerShell"),
      // Instead of the other, after a command that failed: it may have written before.
      after("PostToolUseFailure", "Bash|PowerShell"),
      life("UserPromptSubmit", "prompt"),
      life("Stop", "stop"),
      life("SubagentStop", "done"),
      life("StopFailure", "failure"),
      life("SessionEnd", "end", 10),
    ],
  },
  codex: {
    name: "codex",
    title: "Codex",
    answers: "codex",
    events: [
      before("PreToolUse", `apply_patch|Edit|Write|Bash|${FOREIGN_WRITERS}`),
      after("PostToolUse", "Bash"),
      life("UserPromptSubmit", "prompt"),
      life("Stop", "stop"),
      life("SubagentStop", "done"),
      // More is cut down to three.
      life("SessionEnd", "end", 3),
    ],
  },
  cursor: {
    name: "cursor",
    title: "Cursor",
    answers: "cursor",
    events: [
      before("preToolUse", "Write|Delete|Shell"),
      after("postToolUse", "Shell"),
      after("postToolUseFailure", "Shell"),
      life("beforeSubmitPrompt", "prompt"),
      life("stop", "stop"),
      life("subagentStop", "done"),
      life("sessionEnd", "end"),
    ],
  },
  gemini: {
    name: "gemini",
    title: "Gemini CLI",
    answers: "gemini",
    // As seen in 0.61.0: it sets core.hooksPath to nothing, by GIT_CONFIG_COUNT and its like.
    runsNoGitHooks: true,
    events: [
      before("BeforeTool", `write_file|replace|run_shell_command|${FOREIGN_WRITERS}`),
      after("AfterTool", "run_shell_command"),
      life("BeforeAgent", "prompt"),
      life("AfterAgent", "stop"),
      life("SessionEnd", "end"),
    ],
  },
  copilot: {
    name: "copilot",
    title: "Copilot",
    answers: "copilot",
    events: [
      before("preToolUse", "edit|create|apply_patch|bash|powershell"),
      after("postToolUse", "bash|powershell"),
      life("userPromptSubmitted", "prompt"),
      life("agentStop", "stop"),
      life("subagentStop", "done"),
      life("errorOccurred", "failure"),
      life("sessionEnd", "end"),
    ],
  },
  opencode: {
    name: "opencode",
    title: "opencode",
    answers: "exit-2",
    // Names of hooks and events that our plugin passes on; see `opencodeInput` for what it sends.
    events: [
      before("tool.execute.before", "edit|write|patch|multiedit|apply_patch|bash"),
      after("tool.execute.after", "bash"),
      life("chat.message", "prompt"),
      life("session.idle", "stop"),
      life("session.error", "failure"),
      life("session.deleted", "end"),
    ],
  },
  qwen: {
    name: "qwen",
    title: "Qwen Code",
    // Its `continue` ends a turn without a word to the model, as Claude Code's does.
    answers: "codex",
    events: [
      before("PreToolUse", `write_file|edit|notebook_edit|run_shell_command|monitor|${FOREIGN_WRITERS}`),
      after("PostToolUse", "run_shell_command|monitor"),
      after("PostToolUseFailure", "run_shell_command|monitor"),
      life("UserPromptSubmit", "prompt"),
      life("Stop", "stop"),
      life("SubagentStop", "done"),
      life("StopFailure", "failure"),
      life("SessionEnd", "end"),
    ],
  },
  pi: {
    name: "pi",
    title: "pi",
    answers: "exit-2",
    // Events that our extension passes on, in the same form as opencode's.
    events: [
      before("tool_call", "edit|write|bash|powershell"),
      after("tool_result", "bash|powershell"),
      life("before_agent_start", "prompt"),
      life("agent_settled", "stop"),
      life("session_shutdown", "end"),
    ],
  },
};

/**
 * What the opencode plugin writes to the guard's standard input, as one JSON object: the two arguments of its hook as
 * they are, and where it is.
 *
 * `{"event":"tool.execute.before","sessionID","callID","tool","args","directory"}`; for events without a tool,
 * `{"event":"session.idle","sessionID","directory"}`. A subagent has a session of its own there: the one that all of them
 * belong to is then `parentID`, and its own is `childID`, too. It gives `--pid <its own process>`, throws what comes on standard
 * error when the status is 2, and adds to the tool's output what comes on standard output otherwise. With `showsWaits` it
 * says that it shows people a line `{"waits":{"message","until","waitMs"}}` on standard error, as soon as it comes.
 *
 * @public The plugin writes it, and is text to us.
 */
export interface OpencodeInput {
  readonly event: string;
  readonly sessionID: string;
  readonly parentID?: string;
  readonly childID?: string;
  readonly directory: string;
  readonly tool?: string;
  readonly callID?: string;
  readonly args?: unknown;
  readonly showsWaits?: true;
}

/** Shown while a hook runs that may wait, by harnesses whose entries have a `statusMessage`. */
export const STATUS_MESSAGE = "cotenant: asking whether the file is free";

/** Events that a harness sends for what another event says already. Understood, but never registered. */
export const UNREGISTERED: readonly { readonly name: string; readonly moment: Moment }[] = [
  { name: "beforeShellExecution", moment: "before" },
  { name: "afterShellExecution", moment: "after" },
  { name: "afterFileEdit", moment: "after" },
];

/**
 * What to run for an event, after the program's own name. `guard check` answers in the harness's form; `guard stop` and
 * `guard end` have no objection to anything.
 */
export function hookArguments(harness: HarnessName, event: HookEvent): readonly string[] {
  const rest = ["--harness", harness, "--event", event.name];
  if (event.moment === "stop" || event.moment === "done") return ["guard", "stop", ...rest];
  if (event.moment === "end") return ["guard", "end", ...rest];
  if (event.moment === "failure") return ["guard", "end", "--failed", ...rest];
  return ["guard", "check", ...rest];
}

/** When the guard must have answered: a little before the harness gives up on it. */
export function deadlineMs(event: Pick<HookEvent, "timeoutSecs">): number {
  const { timeoutSecs } = event;
  return timeoutSecs * 1000 - Math.min(5_000, timeoutSecs * 250);
}

function before(name: string, matcher: string): HookEvent {
  return { name, moment: "before", matcher, timeoutSecs: WAITING_SECS };
}

function after(name: string, matcher: string): HookEvent {
  return { name, moment: "after", matcher, timeoutSecs: SHORT_SECS };
}

function life(name: string, moment: Moment, timeoutSecs = SHORT_SECS): HookEvent {
  return { name, moment, matcher: null, timeoutSecs };
}
