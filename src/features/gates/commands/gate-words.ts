import { printable } from "../../../kernel/ids";
import { type PendingGate, passCommand } from "../waiting";

/** A gate that an issue still has to pass, and how. */
export function pendingText(shortId: string, gate: PendingGate): string {
  return `gate ${printable(gate.key, 80)}: ${passCommand(shortId, gate)}`;
}
