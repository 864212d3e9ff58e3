import type { HarnessName } from "../identity/harness";

/** What a harness says of itself in a line that it prints. */
export interface Said {
  /** Its closing words. */
  readonly words?: string;
  /** In US dollars, of the whole attempt so far. */
  readonly costUsd?: number;
  /** In US dollars, of this step alone. */
  readonly addedCostUsd?: number;
}

/** How a harness is run without a person. Its prompt is in the file that `COTENANT_PROMPT_FILE` names. */
export interface AgentTemplate {
  readonly harness: HarnessName;
  readonly title: string;
  /** The program that has to be there. */
  readonly program: string;
  /** For a shell. */
  readonly line: string;
  readonly env: Readonly<Record<string, string>>;
  read(line: string): Said | null;
}

/**
 * Each of them may edit files and run commands in its worktree without asking, and loads the hooks that `agent install` wrote
 * there: nobody has opened that folder before, so nobody could have trusted it by hand.
 */
const TEMPLATES: readonly AgentTemplate[] = [
  {
    harness: "claude",
    title: "Claude Code",
    program: "claude",
    line: 'claude -p --output-format stream-json --verbose --permission-mode acceptEdits --allowedTools "Bash,Edit,Write,Read,Glob,Grep,NotebookEdit,Agent" < "$COTENANT_PROMPT_FILE"',
    env: {},
    read: jsonLines(({ type, result, total_cost_usd }) =>
      type !== "result" ? null : { ...wordsOf(result), ...costOf("costUsd", total_cost_usd) },
    ),
  },
  {
    harness: "codex",
    title: "Codex",
    program: "codex",
    // The Git directory of a linked worktree is outside of it, and its sandbox closes what it does not know.
    line: 'codex exec --json --sandbox workspace-write --add-dir "$COTENANT_GIT_DIR" --dangerously-bypass-hook-trust - < "$COTENANT_PROMPT_FILE"',
    env: {},
    read: jsonLines(({ type, item }) =>
      type === "item.completed" && isTable(item) && item["type"] === "agent_message"
        ? wordsOf(item["text"])
        : null,
    ),
  },
  {
    harness: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    line: 'gemini --approval-mode yolo < "$COTENANT_PROMPT_FILE"',
    env: { GEMINI_CLI_TRUST_WORKSPACE: "true" },
    read: () => null,
  },
  {
    harness: "copilot",
    title: "Copilot CLI",
    program: "copilot",
    line: 'copilot --allow-all-tools --allow-all-paths --no-ask-user --trust-folder < "$COTENANT_PROMPT_FILE"',
    env: {},
    read: () => null,
  },
  {
    harness: "opencode",
    title: "opencode",
    program: "opencode",
    line: 'opencode run --format json < "$COTENANT_PROMPT_FILE"',
    env: {},
    read: jsonLines(({ type, part }) => {
      if (!isTable(part)) return null;
      if (type === "text") return wordsOf(part["text"]);
      return type === "step_finish" ? costOf("addedCostUsd", part["cost"]) : null;
    }),
  },
  {
    harness: "cursor",
    title: "Cursor",
    program: "cursor-agent",
    line: 'cursor-agent -p --force --trust --output-format stream-json "$(cat "$COTENANT_PROMPT_FILE")"',
    env: {},
    read: jsonLines(({ type, result }) => (type === "result" ? wordsOf(result) : null)),
  },
];

export const TEMPLATE_NAMES: readonly string[] = TEMPLATES.map(({ harness }) => harness);

/** With whatever the caller wants to say to the harness besides, quoted for the shell. */
export function templateFor(name: string, extra: readonly string[]): AgentTemplate | null {
  const template = TEMPLATES.find(({ harness }) => harness === name);
  if (template === undefined || extra.length === 0) return template ?? null;
  const { program, line } = template;
  const words = extra.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  // Behind the program's name and its verb, where flags of every one of them may stand.
  const verb = /^(?:codex exec|opencode run)\b/.exec(line)?.[0] ?? program;
  return { ...template, line: `${verb} ${words}${line.slice(verb.length)}` };
}

type Table = Readonly<Record<string, unknown>>;

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A harness changes what it prints with any version: what is not understood says nothing. */
function jsonLines(read: (event: Table) => Said | null): AgentTemplate["read"] {
  return (line) => {
    if (!line.startsWith("{")) return null;
    try {
      const event: unknown = JSON.parse(line);
      return isTable(event) ? read(event) : null;
    } catch {
      return null;
    }
  };
}

function wordsOf(text: unknown): Said {
  return typeof text === "string" && text.trim() !== "" ? { words: text } : {};
}

function costOf(field: "costUsd" | "addedCostUsd", cost: unknown): Said {
  return typeof cost === "number" && Number.isFinite(cost) && cost >= 0 ? { [field]: cost } : {};
}
