import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { DataEvent, IssueChange } from "../changes";
import { isTerminal } from "../model";
import type { FoundIssue } from "../resolve";
import { encodeResult, foldResults, type GateResult, type GateResults, pendingAmong } from "./results";

/** What a result comes to: with the last one that was missing, an issue that waited for it is done. */
export function withResult(
  current: FoundIssue,
  seen: GateResults,
  result: GateResult,
): IssueChange & { readonly after: GateResults } {
  const line = encodeResult(result);
  const after = addResult(seen, line);
  const moved = stateOnceGatesChange(current, current.issue.gates, after);
  const payload = { issue_id: current.id, gate: result.gate, status: result.status, result_id: result.id };
  return {
    fields: moved.fields,
    results: [line],
    events: [{ type: "gate.completed", payload }, ...moved.events],
    after,
  };
}

/** The issue's gates as they are to be from now on. */
export function withGates(
  current: FoundIssue,
  gates: readonly string[],
  seen: GateResults,
  events: readonly DataEvent[],
  results: readonly string[] = [],
): IssueChange {
  const after = results.reduce(addResult, seen);
  const moved = stateOnceGatesChange(current, gates, after);
  return {
    fields: { gates, ...moved.fields },
    results,
    events: [...events, ...moved.events],
  };
}

/** Nothing that a gate could say matters for what has ended. */
export function refuseEnded({ id, state, issue }: FoundIssue): void {
  if (!isTerminal({ state })) return;
  throw new CotenantError("E_TERMINAL_STATE", `issue ${id} is ${state}: its gates are no longer asked`, {
    hint: `bring it back first: cotenant issue reopen ${id}`,
    data: { id, state, gates: issue.gates.map((gate) => printable(gate, 80)) },
  });
}

function addResult(seen: GateResults, line: string): GateResults {
  const known = [...seen.standing.values()].flat().map((result) => JSON.stringify(result));
  return { ...foldResults([...known, line].join("\n")), broken: seen.broken };
}

function stateOnceGatesChange(
  { id, state }: FoundIssue,
  gates: readonly string[],
  results: GateResults,
): { fields: { state?: "done" }; events: DataEvent[] } {
  if (state !== "gated" || pendingAmong(gates, results).length > 0) return { fields: {}, events: [] };
  const changes = { state: { from: state, to: "done" } };
  return {
    fields: { state: "done" },
    events: [{ type: "issue.updated", payload: { issue_id: id, changes } }],
  };
}
