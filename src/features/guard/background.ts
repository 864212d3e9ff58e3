import type { AgentId } from "../../kernel/ids";
import type { Checking } from "./check";
import type { Place } from "./place";
import { noteFile, notesOf } from "./shell/notes";

/** What the session's commands have done since they were answered. */
export async function background(
  checking: Checking,
  place: Place,
  command: string | null = null,
): Promise<string[]> {
  const { moment, isBorrowed } = checking.report;
  // Whoever cannot tell the agent leaves it to the other report of the same event.
  if (isBorrowed || (await notesOf(place, place.who.sessionId)).length === 0) return [];
  const { compareAgain } = await import("./shell/compare");
  const isEnd = moment === "end" || moment === "failure";
  const { violations, ruled } = await compareAgain(place, {
    isTurnOver: isEnd || moment === "stop" || moment === "prompt",
    isEnd,
    except: command === null ? null : noteFile(place, checking, command),
  });
  const tells = violations.map(({ path, owner, command }) =>
    trespassed(path, owner, `"${command}", a command of yours, ran in the background`),
  );
  return ruled === null ? tells : [...tells, ruled];
}

export function trespassed(path: string, owner: AgentId, during: string): string {
  return `cotenant: ${path} changed while ${during}, and ${owner} holds it. It is on record; tell the person you work for, and leave the file alone.`;
}
