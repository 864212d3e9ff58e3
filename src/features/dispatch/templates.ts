import { isObject } from "../../codec/json";
import type { HarnessName } from "../../identity/harness";
import { shellQuoted } from "../../kernel/printing";
import { wantedEntry, wantedEvents } from "../harnesses/entries";
import type { Program } from "../installer/files";

/** What a harness says of itself in a line that it prints. */
export interface Said {
  /** Its closing words. */
  readonly words?: string;
  /** A piece of them: they go on from the piece before, if nothing else was said in between. */
  readonly addedWords?: string;
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
  /** `program` is where hooks of the harness find cotenant. */
  env(program: Program): Readonly<Record<string, string>>;
  read(line: string): Said | null;
}

/** What its sandbox lets Codex write besides the worktree: what a commit needs, but neither Git's hooks nor its settings. */
const CODEX_WRITES = [
  // Named by itself: it is closed as the Git directory of the worktree, whatever is open around it.
  "$(git rev-parse --absolute-git-dir)",
  ...["objects", "refs", "logs", "cotenant"].map((name) => `$COTENANT_GIT_DIR/${name}`),
];

/**
 * Each of them may edit files and run commands in its worktree without asking, and runs our hooks: nobody has opened that folder
 * before, so nobody could have trusted it by hand. Where a harness would ask for more, it is refused and goes on.
 */
const TEMPLATES: readonly AgentTemplate[] = [
  {
    harness: "claude",
    title: "Claude Code",
    program: "claude",
    line: 'claude -p --output-format stream-json --verbose --permission-mode acceptEdits --allowedTools "Bash,Edit,Write,Read,Glob,Grep,NotebookEdit,Agent" < "$COTENANT_PROMPT_FILE"',
    env: () => ({}),
    read: jsonLines(({ type, result, total_cost_usd }) =>
      type !== "result" ? null : { ...wordsOf(result), ...costOf("costUsd", total_cost_usd) },
    ),
  },
  {
    harness: "codex",
    title: "Codex",
    program: "codex",
    line: `codex exec --json --sandbox workspace-write ${CODEX_WRITES.map((path) => `--add-dir "${path}"`).join(" ")} -c "hooks=$COTENANT_CODEX_HOOKS" --dangerously-bypass-hook-trust - < "$COTENANT_PROMPT_FILE"`,
    // In a linked worktree it takes hooks of a project from the main one only, and there only if somebody trusts the project.
    env: (program) => ({ COTENANT_CODEX_HOOKS: codexHooks(program) }),
    read: jsonLines(({ type, item, error }) => {
      if (type === "turn.failed" && isObject(error)) return wordsOf(error["message"]);
      if (type !== "item.completed" || !isObject(item)) return null;
      return item["type"] === "agent_message" ? wordsOf(item["text"]) : null;
    }),
  },
  {
    harness: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    // A narrower mode refuses commands that redirect their output. Its tools for files stay in the worktree in this one, too.
    line: 'gemini --approval-mode yolo --output-format stream-json < "$COTENANT_PROMPT_FILE"',
    env: () => ({ GEMINI_CLI_TRUST_WORKSPACE: "true" }),
    read: jsonLines(({ type, role, content, error }) => {
      if (type === "message" && role === "assistant" && typeof content === "string")
        return { addedWords: content };
      return isObject(error) ? wordsOf(error["message"]) : {};
    }),
  },
  {
    harness: "copilot",
    title: "Copilot CLI",
    program: "copilot",
    line: 'copilot --output-format json --stream off --allow-all-tools --no-ask-user --trust-folder < "$COTENANT_PROMPT_FILE"',
    env: () => ({}),
    read: jsonLines(({ type, data }) => {
      if (!isObject(data)) return null;
      if (type === "session.error") return wordsOf(data["message"]);
      return type === "assistant.message" ? wordsOf(data["content"]) : null;
    }),
  },
  {
    harness: "opencode",
    title: "opencode",
    program: "opencode",
    // What it would ask a person about ends its turn as if it were done, unless it is answered beforehand.
    line: 'opencode run --auto --format json < "$COTENANT_PROMPT_FILE"',
    env: () => ({ OPENCODE_PERMISSION: '{"external_directory":{"*":"deny","/tmp/*":"allow"}}' }),
    read: jsonLines(({ type, part, error }) => {
      if (type === "error" && isObject(error)) return wordsOf(messageIn(error));
      if (!isObject(part)) return null;
      if (type === "text") return wordsOf(part["text"]);
      return type === "step_finish" ? costOf("addedCostUsd", part["cost"]) : null;
    }),
  },
  {
    harness: "cursor",
    title: "Cursor",
    program: "cursor-agent",
    line: 'cursor-agent -p --force --trust --output-format stream-json "$(cat "$COTENANT_PROMPT_FILE")"',
    env: () => ({}),
    read: jsonLines(({ type, result }) => (type === "result" ? wordsOf(result) : null)),
  },
];

export const TEMPLATE_NAMES: readonly string[] = TEMPLATES.map(({ harness }) => harness);

/** With whatever the caller wants to say to the harness besides, quoted for the shell. */
export function templateFor(name: string, extra: readonly string[]): AgentTemplate | null {
  const template = TEMPLATES.find(({ harness }) => harness === name);
  if (template === undefined || extra.length === 0) return template ?? null;
  const { program, line } = template;
  const words = extra.map(shellQuoted).join(" ");
  // Behind the program's name and its verb, where flags of every one of them may stand.
  const verb = /^(?:codex exec|opencode run)\b/.exec(line)?.[0] ?? program;
  return { ...template, line: `${verb} ${words}${line.slice(verb.length)}` };
}

type Table = Readonly<Record<string, unknown>>;

/** A harness changes what it prints with any version: what is not understood says nothing. */
function jsonLines(read: (event: Table) => Said | null): AgentTemplate["read"] {
  return (line) => {
    if (!line.startsWith("{")) return null;
    try {
      const event: unknown = JSON.parse(line);
      return isObject(event) ? read(event) : null;
    } catch {
      return null;
    }
  };
}

function wordsOf(text: unknown): Said {
  return typeof text === "string" && text.trim() !== "" ? { words: text } : {};
}

/** Whatever went wrong, the name of its kind is always there. */
function messageIn({ data, name }: Table): unknown {
  return isObject(data) && typeof data["message"] === "string" ? data["message"] : name;
}

function costOf(field: "costUsd" | "addedCostUsd", cost: unknown): Said {
  return typeof cost === "number" && Number.isFinite(cost) && cost >= 0 ? { [field]: cost } : {};
}

/** Everything that Codex should call us for, as a value in TOML. */
function codexHooks(program: Program): string {
  const entries = wantedEvents("codex", program).map((event) => wantedEntry("codex", event, program, null));
  const names = [...new Set(entries.map(({ event }) => event))];
  const groups = names.map((name) => [
    name,
    entries.filter(({ event }) => event === name).map(({ value }) => value),
  ]);
  return inlineToml(Object.fromEntries(groups));
}

function inlineToml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inlineToml).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, one]) => `${name}=${inlineToml(one)}`)
    .join(",")}}`;
}
