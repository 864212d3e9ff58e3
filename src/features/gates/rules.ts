import { CotenantError } from "../../errors/cotenant-error";
import { type AgentId, agentType, printable } from "../../kernel/ids";
import { isAmong } from "../../kernel/policy";
import type { DataEvent, IssueChange } from "../issues/changes";
import { isTerminal } from "../issues/model";
import type { FoundIssue } from "../issues/resolve";
import {
  encodeResult,
  foldResults,
  type GateResult,
  type GateResults,
  gateStatus,
  pendingAmong,
} from "./results";

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

/** Who asks, and whether a coding agent's program has started them. */
export interface Decider {
  readonly agentId: AgentId;
  readonly isInHarness: boolean;
}

/**
 * `gates.pass_by`. An agent that passes its own check is none, and could call itself anything: inside a coding agent only
 * agents that are named count.
 */
export function mayPass(passBy: readonly string[], { agentId, isInHarness }: Decider): boolean {
  return isAmong(passBy, agentId) && (!isInHarness || agentType(agentId) === "agent");
}

/** A manual gate is passed by the word of those who may, an automated one by its run, whoever asks. */
export function refusePass(
  { id }: Pick<FoundIssue, "id">,
  gate: string,
  kind: "manual" | "automated" | null,
  decider: Decider,
  passBy: readonly string[],
): void {
  const shown = printable(gate, 80);
  if (kind === "automated")
    throw new CotenantError("E_POLICY", `gate ${shown} is automated: only its own run passes it`, {
      hint: `run it: cotenant gate run ${id} ${shown}`,
      data: { id, gate: shown },
    });
  if (!mayPass(passBy, decider)) throw notTheirs(`pass gate ${shown}`, decider, passBy, { id, gate: shown });
}

/** Taking off what is not passed yet comes to the same as passing it. */
export function refuseTakingOff(
  { id }: Pick<FoundIssue, "id">,
  gate: string,
  seen: GateResults,
  decider: Decider,
  passBy: readonly string[],
): void {
  if (gateStatus(seen, gate) === "passed" || mayPass(passBy, decider)) return;
  const shown = printable(gate, 80);
  throw notTheirs(`take off gate ${shown} before it is passed`, decider, passBy, { id, gate: shown });
}

function notTheirs(
  what: string,
  { agentId, isInHarness }: Decider,
  passBy: readonly string[],
  data: { readonly id: string; readonly gate: string },
): CotenantError {
  const inside = isInHarness && isAmong(passBy, agentId) ? " from inside a coding agent" : "";
  return new CotenantError("E_POLICY", `${agentId} may not ${what}${inside}`, {
    hint: `ask one of those who may: ${passBy.join(", ") || "nobody"}`,
    data: { ...data, agent_id: agentId, allowed: passBy, setting: "gates.pass_by" },
  });
}

/** A gate that the issue has, or the error that says which it has. */
export function gateOf({ id, issue }: FoundIssue, key: string): string {
  if (issue.gates.includes(key)) return key;
  const has = [...new Set(issue.gates)].map((gate) => printable(gate, 80));
  throw new CotenantError("E_NOT_FOUND", `issue ${id} has no gate "${printable(key, 80)}"`, {
    hint: has.length === 0 ? `add it first: cotenant gate add ${id} <key>` : `it has ${has.join(", ")}`,
    data: { id, gate: printable(key, 80), gates: has },
  });
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
