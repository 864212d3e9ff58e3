import { HARNESS_NAMES, type HarnessName } from "../../identity/harness";
import { HARNESSES, type HookEvent, type Moment, UNREGISTERED } from "./harness";

/** What a harness has said, in our words. */
export interface Report {
  /** Whose words they are, whatever settings file the call came from. */
  readonly harness: HarnessName;
  readonly moment: Moment;
  /** The event as the harness calls it. */
  readonly event: string;
  /** The harness's own; null where it does not say. */
  readonly sessionId: string | null;
  /** The subagent at work; null for the session's main agent. */
  readonly subagent: string | null;
  /** Where the agent stands; null where the harness does not say. */
  readonly cwd: string | null;
  readonly tool: string | null;
  /** What the tool is to do: an object of its own making, or text. */
  readonly input: unknown;
  /** The harness's own name for this one use of a tool. */
  readonly toolUseId: string | null;
  /** A failure from which the harness goes on is none. */
  readonly isRecoverable: boolean;
  /** The call was meant for another harness, whose settings this one also reads. */
  readonly isBorrowed: boolean;
  /** Whoever calls shows people at once that the guard waits. */
  readonly isShowingWaits: boolean;
}

/** Where a harness keeps what. The first field that is there counts. */
interface Fields {
  readonly session: readonly string[];
  readonly subagent: readonly string[];
  readonly cwd: readonly string[];
  readonly tool: readonly string[];
  readonly input: readonly string[];
  readonly toolUse: readonly string[];
}

const CLAUDE: Fields = {
  session: ["session_id"],
  subagent: ["agent_id"],
  cwd: ["cwd"],
  tool: ["tool_name"],
  input: ["tool_input"],
  toolUse: ["tool_use_id"],
};

/** As our own plugins write it. */
const PLUGIN: Fields = {
  session: ["parentID", "sessionID"],
  subagent: ["childID"],
  cwd: ["directory"],
  tool: ["tool"],
  input: ["args"],
  toolUse: ["callID"],
};

const FIELDS: Readonly<Record<HarnessName, Fields>> = {
  claude: CLAUDE,
  codex: CLAUDE,
  gemini: CLAUDE,
  cursor: {
    ...CLAUDE,
    // A subagent is a conversation of its own; only its end is told in its parent's.
    session: ["subagent_id", "conversation_id", "session_id"],
    subagent: [],
  },
  copilot: {
    // A subagent's tool events come under its own id, and name the session's here.
    session: ["parentAgentId", "sessionId", "session_id"],
    subagent: ["agentId", "agent_id"],
    cwd: ["cwd"],
    tool: ["toolName", "tool_name"],
    input: ["toolArgs", "tool_input"],
    toolUse: ["toolCallId", "tool_use_id"],
  },
  opencode: PLUGIN,
  qwen: CLAUDE,
  pi: PLUGIN,
};

type Document = Readonly<Record<string, unknown>>;

/**
 * Reads what a harness wrote to standard input. `harness` and `event` are what our own command line says; the
 * document itself knows better, for some harnesses run what others' settings register. Null: nothing of ours.
 */
export function readReport(harness: HarnessName, event: string | null, document: unknown): Report | null {
  if (typeof document !== "object" || document === null || Array.isArray(document)) return null;
  const said = document as Document;
  const speaker = speakerOf(harness, said);
  const name = text(said, ["hook_event_name", "hookEventName", "event"]) ?? event;
  const known = name === null ? null : eventNamed(name);
  if (name === null || known === null) return null;
  const fields = FIELDS[speaker];
  const isShell = name === "beforeShellExecution" || name === "afterShellExecution";
  const subagent = text(said, fields.subagent);
  return {
    harness: speaker,
    moment: momentOf(known, speaker, subagent !== null),
    event: name,
    sessionId: text(said, fields.session),
    subagent,
    cwd: text(said, fields.cwd) ?? firstRoot(said),
    tool: isShell ? "Shell" : text(said, fields.tool),
    input: isShell ? { command: own(said, "command") } : unpacked(first(said, fields.input)),
    toolUseId: text(said, fields.toolUse),
    isRecoverable: own(said, "recoverable") === true,
    isBorrowed: speaker !== harness,
    isShowingWaits: own(said, "showsWaits") === true,
  };
}

/** What came on standard input: a document, the text of one, or the reason why there is none. */
export type HookInput =
  | { readonly document: unknown }
  | { readonly text: string }
  | { readonly text: null; readonly why: string };

/** An event that was read, once and for all: null where it is nothing of ours, or why it cannot be read. */
export type ReadEvent = { readonly report: Report | null } | { readonly why: string };

export function readEvent(
  { harness, event }: { readonly harness: HarnessName; readonly event: string | null },
  input: HookInput,
): ReadEvent {
  if ("why" in input) return { why: input.why };
  try {
    const document: unknown = "document" in input ? input.document : JSON.parse(input.text);
    return { report: readReport(harness, event, document) };
  } catch (error) {
    return { why: (error as Error).message };
  }
}

export function isHarnessName(name: string): name is HarnessName {
  return (HARNESS_NAMES as readonly string[]).includes(name);
}

/** Cursor and Copilot run Claude Code's hooks too, and then speak their own language. */
function speakerOf(harness: HarnessName, said: Document): HarnessName {
  if (own(said, "conversation_id") !== undefined && own(said, "generation_id") !== undefined) return "cursor";
  if (own(said, "sessionId") !== undefined && own(said, "session_id") === undefined) return "copilot";
  // For events in Claude Code's spelling Copilot writes as Claude Code does; but it adds the time, and has no modes.
  const isTimed = own(said, "timestamp") !== undefined && own(said, "permission_mode") === undefined;
  if (harness === "claude" && isTimed) return "copilot";
  return harness;
}

function momentOf(known: Moment, speaker: HarnessName, isSubagent: boolean): Moment {
  // Nothing goes on in a subagent's own conversation.
  if (known === "done" && speaker === "cursor") return "end";
  // Whatever ends for a subagent goes on for its session.
  return isSubagent && ENDS.includes(known) ? "done" : known;
}

const ENDS: readonly Moment[] = ["stop", "end", "failure"];

let moments: Map<string, Moment> | null = null;

function eventNamed(name: string): Moment | null {
  if (moments === null) {
    moments = new Map();
    for (const { events } of Object.values(HARNESSES))
      for (const { name: known, moment } of events) moments.set(known, moment);
    for (const { name: known, moment } of UNREGISTERED) moments.set(known, moment);
  }
  return moments.get(name) ?? null;
}

/** The event as it was registered, for its time limit. */
export function registered({ harness, event }: Pick<Report, "harness" | "event">): HookEvent | null {
  return HARNESSES[harness].events.find(({ name }) => name === event) ?? null;
}

/** Some harnesses send arguments as the text of a JSON document. */
function unpacked(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*\{/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function firstRoot(said: Document): string | null {
  const roots = own(said, "workspace_roots");
  const root: unknown = Array.isArray(roots) ? roots[0] : null;
  return typeof root === "string" && root !== "" ? root : null;
}

function text(said: Document, names: readonly string[]): string | null {
  const value = first(said, names);
  return typeof value === "string" && value !== "" ? value : null;
}

function first(said: Document, names: readonly string[]): unknown {
  for (const name of names) {
    const value = own(said, name);
    if (value !== undefined && value !== null) return value;
  }
  return undefined;
}

/** Never what an object inherits. */
export function own(said: object, name: string): unknown {
  return Object.hasOwn(said, name) ? (said as Document)[name] : undefined;
}
