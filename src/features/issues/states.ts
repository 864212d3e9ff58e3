import { CotenantError, usageError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { ISSUE_STATES, type Issue, type IssueState, TERMINAL_STATES } from "./model";

/** What an issue may become by an ordinary change. What has ended comes back only by being reopened. */
const NEXT: Readonly<Record<IssueState, readonly IssueState[]>> = {
  backlog: ["ready", "in_progress", "rejected", "archived"],
  ready: ["backlog", "in_progress", "gated", "done", "rejected", "archived"],
  in_progress: ["backlog", "ready", "gated", "done", "rejected", "archived"],
  gated: ["backlog", "ready", "in_progress", "done", "rejected", "archived"],
  done: ["archived"],
  rejected: ["archived"],
  archived: [],
};

/** As people and the seeds write it: `in-progress`, `In_Progress`. */
export function parseState(text: string): IssueState {
  const state = text.toLowerCase().replaceAll("-", "_") as IssueState;
  if (ISSUE_STATES.includes(state)) return state;
  throw usageError(`there is no state "${printable(text, 40)}"`, `use one of ${ISSUE_STATES.join(", ")}`);
}

/**
 * The state that an issue gets when somebody wants it to have this one: done with a gate not passed is `gated`, and
 * moves on by itself when the last one passes.
 */
export function stateAfter(issue: Issue, wanted: IssueState, pendingGates: readonly string[]): IssueState {
  const { state } = issue;
  if (wanted === state) return state;
  if (!NEXT[state].includes(wanted)) throw notFrom(issue, wanted);
  return wanted === "done" && pendingGates.length > 0 ? "gated" : wanted;
}

function notFrom({ id, state }: Issue, wanted: IssueState): CotenantError {
  return new CotenantError("E_TERMINAL_STATE", `issue ${id} is ${state}, and cannot become ${wanted}`, {
    hint: TERMINAL_STATES.includes(state)
      ? `bring it back first: cotenant issue reopen ${id}`
      : `from ${state} it can become ${NEXT[state].join(", ")}`,
    data: { id, state, wanted },
  });
}
