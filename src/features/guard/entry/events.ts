import type { HarnessName } from "../../../identity/harness";
import { HARNESSES } from "../harness";

/** What the command is for, where nobody has said more. */
export function defaultEvent(harness: HarnessName, command: string): string | null {
  const moment = command === "guard stop" ? "stop" : command === "guard end" ? "end" : "before";
  return HARNESSES[harness].events.find((event) => event.moment === moment)?.name ?? null;
}
