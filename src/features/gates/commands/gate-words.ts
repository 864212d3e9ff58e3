import { printable } from "../../../kernel/ids";
import { shellWord } from "../../../kernel/printing";
import type { PendingGate } from "../waiting";

/** A gate that an issue still has to pass, and how. */
export function pendingText(shortId: string, gate: PendingGate): string {
  return `gate ${printable(gate.key, 80)}: ${passCommand(shortId, gate)}`;
}

/** An automated one is passed by its run, any other by the word of those who may. */
export function passCommand(shortId: string, { key, kind }: PendingGate): string {
  return `cotenant gate ${kind === "automated" ? "run" : "pass"} ${shortId} ${shellWord(key)}`;
}
