import { printable } from "../../../kernel/ids";
import type { IssueGates, StandingGate } from "../operations";
import { type GateStatus, type PendingGate, passCommand } from "../results";

/** A gate that an issue still has to pass, and how. */
export function pendingText(shortId: string, gate: PendingGate): string {
  return `gate ${printable(gate.key, 80)}: ${passCommand(shortId, gate)}`;
}

/** What a result came to. */
export function outcomeText(
  { found: { issue }, shortId, pending }: IssueGates,
  { key, status }: StandingGate,
): string {
  const open = pending.map((gate) => printable(gate, 80)).join(", ");
  const said = `${shortId}: ${printable(key, 80)} ${WORDS[status]}`;
  return `${said}; ${consequence(issue.state, open)}\n  ${printable(issue.title)}`;
}

const WORDS: Readonly<Record<GateStatus, string>> = {
  passed: "passed",
  failed: "failed",
  pending: "still has to be passed",
};

function consequence(state: string, open: string): string {
  if (state === "done") return "all gates are passed, and the issue is done";
  if (open === "") return `all gates are passed, and the issue is ${state}`;
  if (state === "gated") return `the issue stays gated until ${open} passed`;
  return `the issue is ${state}, with ${open} to pass`;
}
