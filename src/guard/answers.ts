import type { ErrorCode } from "../errors/registry";
import type { HarnessName } from "../identity/harness";
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

/** What a process prints, and how it ends. */
export interface Answer {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number;
}

export const SILENCE: Answer = { stdout: "", stderr: "", status: 0 };

/** The verdict in the harness's own form, to the byte. */
export function answer(
  report: Pick<Report, "harness" | "event" | "moment" | "isBorrowed">,
  verdict: Verdict,
): Answer {
  // Another harness runs what was registered for this one: every one of them takes status 2.
  const form: AnswerForm = report.isBorrowed ? "exit-2" : HARNESSES[report.harness].answers;
  if (!verdict.isAllowed) return report.moment === "before" ? denial(form, report.event, verdict) : SILENCE;
  return verdict.tell === null ? SILENCE : telling(report.harness, form, report, verdict.tell);
}

function denial(
  form: AnswerForm,
  event: string,
  { reason, isHardStop }: { reason: string; isHardStop: boolean },
): Answer {
  switch (form) {
    case "claude":
      return json({
        // The turn ends: there is nothing that the agent could do about it.
        ...(isHardStop ? { continue: false, stopReason: reason } : {}),
        hookSpecificOutput: {
          hookEventName: event,
          permissionDecision: "deny",
          permissionDecisionReason: reason,
        },
      });
    case "codex":
      return json({
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

/** Autumn 2026. Copilot takes nothing from a command hook but a refusal. */
const TELLING: Readonly<Record<HarnessName, readonly Report["moment"][]>> = {
  claude: ["before", "after", "prompt"],
  codex: ["before", "after", "prompt"],
  cursor: ["after"],
  gemini: ["after", "prompt"],
  copilot: [],
  opencode: ["after"],
};

function telling(
  harness: HarnessName,
  form: AnswerForm,
  report: Pick<Report, "harness" | "event" | "moment" | "isBorrowed">,
  tell: string,
): Answer {
  if (!canTell(report)) return SILENCE;
  if (harness === "cursor") return json({ additional_context: tell });
  if (form === "exit-2") return { stdout: `${tell}\n`, stderr: "", status: 0 };
  return json({ hookSpecificOutput: { hookEventName: report.event, additionalContext: tell } });
}

function json(document: object): Answer {
  return { stdout: `${JSON.stringify(document)}\n`, stderr: "", status: 0 };
}
