import type { HarnessName } from "../../../identity/harness";
import { HARNESSES } from "../harness";
import { isHarnessName } from "../report";
import type { HookCall } from "../run";

/** One call by a harness, as its command line says it. */
export interface GuardCall extends HookCall {
  readonly verb: GuardVerb;
  /** The harness's own process, where somebody has named it. */
  readonly harnessPid: number | null;
  /** The daemon that was asked first. */
  readonly via: string | null;
}

const VERBS = ["check", "stop", "end"] as const;
export type GuardVerb = (typeof VERBS)[number];

const VALUED = ["--harness", "--event", "--pid", "--deadline", "--via"];

/**
 * The command lines that `agent install` writes, read without the rest of the program: harnesses come often and in a hurry.
 * Null for every other command line, which the whole program reads.
 */
export function readGuardCall([first, name, ...rest]: readonly string[]): GuardCall | null {
  const verb = VERBS.find((known) => known === name);
  if (first !== "guard" || verb === undefined) return null;
  const given = new Map<string, string>();
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i]!;
    if (VALUED.includes(word) && rest[i + 1] !== undefined) given.set(word, rest[++i]!);
    // What kind of end it was, the event says.
    else if (word !== "--failed") return null;
  }
  const harness = given.get("--harness");
  const [pid, deadlineSecs] = [number(given.get("--pid")), number(given.get("--deadline"))];
  if (harness === undefined || !isHarnessName(harness) || pid === "wrong" || deadlineSecs === "wrong")
    return null;
  const via = given.get("--via") ?? null;
  return guardCall(verb, { harness, event: given.get("--event"), pid, deadlineSecs, via });
}

/** The same, from flags that somebody else has read. */
export function guardCall(
  verb: GuardVerb,
  said: {
    readonly harness: HarnessName;
    readonly event: string | undefined;
    readonly pid: number | null;
    readonly deadlineSecs: number | null;
    readonly via: string | null;
  },
): GuardCall {
  const { harness, pid, deadlineSecs, via } = said;
  const moment = verb === "check" ? "before" : verb;
  const event = said.event ?? HARNESSES[harness].events.find((one) => one.moment === moment)?.name ?? null;
  const patienceMs = deadlineSecs === null ? null : deadlineSecs * 1000;
  return { verb, harness, event, patienceMs, harnessPid: pid, via };
}

function number(text: string | undefined): number | null | "wrong" {
  if (text === undefined) return null;
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : "wrong";
}
