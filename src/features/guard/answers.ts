import type { ErrorCode } from "../../errors/registry";
import type { HarnessName } from "../../identity/harness";
import type { Environment } from "../../identity/repository";
import { type AnswerForm, HARNESSES } from "./harness";
import type { Report } from "./report";

/** What the guard has decided about one event. */
export type Verdict =
  /** Nothing is printed, unless there is something that the agent should know. */
  | { readonly isAllowed: true; readonly tell: string | null }
  | {
      readonly isAllowed: false;
      readonly reason: string;
      readonly isHardStop: boolean;
      readonly code: ErrorCode;
      readonly data: Readonly<Record<string, unknown>>;
    };

export const ALLOWED: Verdict = { isAllowed: true, tell: null };

/** Leave to go on, with what there is to say. */
export function allowedSaying(...said: readonly (string | null)[]): Verdict {
  const lines = said.filter((text) => text !== null && text !== "");
  return lines.length === 0 ? ALLOWED : { isAllowed: true, tell: lines.join("\n") };
}

/** The same verdict, with something to say before it where it is leave. */
export function saying(word: string | null, verdict: Verdict): Verdict {
  return verdict.isAllowed ? allowedSaying(word, verdict.tell) : verdict;
}

/** What a process prints, and how it ends. */
export interface Answer {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number;
}

const SILENCE: Answer = { stdout: "", stderr: "", status: 0 };

/** "No objection". Cursor takes an empty answer of a hook that must not fail for a failure, and refuses the call. */
export function nothingToSay(harness: HarnessName): Answer {
  return harness === "cursor" ? json({}) : SILENCE;
}

type Asked = Pick<Report, "harness" | "event" | "moment" | "subagent" | "isBorrowed">;

/** The verdict in the harness's own form, to the byte. */
export function answer(report: Asked, verdict: Verdict, env: Environment): Answer {
  // Another harness runs what was registered for this one: every one of them takes status 2.
  const form: AnswerForm = report.isBorrowed ? "exit-2" : HARNESSES[report.harness].answers;
  if (verdict.isAllowed)
    return verdict.tell === null ? nothingToSay(report.harness) : telling(report, verdict.tell);
  if (report.moment !== "before") return nothingToSay(report.harness);
  const stopsTurn = verdict.isHardStop && report.subagent === null && isAttended(env);
  const denied = denial(form, report.event, verdict.reason, stopsTurn);
  // With the status alone Copilot would refuse without a reason.
  const isSilent = report.isBorrowed && report.harness === "copilot";
  return isSilent
    ? { ...denied, stdout: denial("copilot", report.event, verdict.reason, false).stdout }
    : denied;
}

/**
 * Whether a person sees how a turn of Claude Code ends. Otherwise it would end in silence, as if all had been done; and so
 * would a subagent's. Older versions say only how they were started.
 */
function isAttended(env: Environment): boolean {
  const said = env["CLAUDE_CODE_SESSION_ATTENDED"];
  return said === undefined ? env["CLAUDE_CODE_ENTRYPOINT"] === "cli" : said === "1";
}

function denial(form: AnswerForm, event: string, reason: string, stopsTurn: boolean): Answer {
  switch (form) {
    case "claude":
    case "codex":
      return json({
        // The turn ends: there is nothing that the agent could do about it.
        ...(stopsTurn && form === "claude" ? { continue: false, stopReason: reason } : {}),
        hookSpecificOutput: {
          hookEventName: event,
          permissionDecision: "deny",
          permissionDecisionReason: reason,
        },
      });
    case "cursor":
      return json({ permission: "deny", user_message: reason, agent_message: reason });
    case "gemini":
      return json({ decision: "deny", reason });
    case "copilot":
      return json({ permissionDecision: "deny", permissionDecisionReason: reason });
    case "exit-2":
      return { stdout: "", stderr: `${reason}\n`, status: 2 };
  }
}

/** What an event can tell an agent beside letting it go on. Where it cannot, nothing is said now. */
export function canTell({
  harness,
  moment,
  isBorrowed,
}: Pick<Report, "harness" | "moment" | "isBorrowed">): boolean {
  if (isBorrowed) return false;
  return TELLING[harness].includes(moment);
}

/** As the programs themselves took it, autumn 2026. */
const TELLING: Readonly<Record<HarnessName, readonly Report["moment"][]>> = {
  claude: ["before", "after", "prompt"],
  codex: ["before", "after", "prompt"],
  cursor: ["before", "after"],
  gemini: ["after", "prompt"],
  copilot: ["before", "after", "prompt"],
  opencode: ["after"],
  qwen: ["after", "prompt"],
  pi: ["after"],
};

function telling(report: Pick<Report, "harness" | "event" | "moment" | "isBorrowed">, tell: string): Answer {
  if (!canTell(report)) return nothingToSay(report.harness);
  switch (HARNESSES[report.harness].answers) {
    case "cursor":
      return json({ additional_context: tell });
    case "copilot":
      return json({ additionalContext: tell });
    case "exit-2":
      return { ...SILENCE, stdout: `${tell}\n` };
    default:
      return json({ hookSpecificOutput: { hookEventName: report.event, additionalContext: tell } });
  }
}

function json(document: object): Answer {
  return { stdout: `${JSON.stringify(document)}\n`, stderr: "", status: 0 };
}
