import type { HarnessName } from "../../identity/harness";
import { TooLate } from "../../store/submission";
import { Alarm } from "./alarm";
import { ALLOWED, type Answer, answer, nothingToSay, type Verdict } from "./answers";
import { type Checking, check, checkingOf } from "./check";
import { deadlineMs } from "./harness";
import { type HookInput, type ReadEvent, type Report, readEvent, readReport, registered } from "./report";
import { DEFAULT_SETTINGS } from "./settings";
import type { World } from "./world";

/** How a harness called us. */
export interface HookCall {
  readonly harness: HarnessName;
  /** As registered; the document may say it as well. */
  readonly event: string | null;
  /** How long the harness waits, where somebody has said so. */
  readonly patienceMs: number | null;
}

export interface Answered extends Answer {
  readonly allowed: boolean;
}

/** From what a harness said to what it is answered. */
export function runHook(world: World, call: HookCall, input: HookInput): Promise<Answered> {
  return answerEvent(world, call, readEvent(call, input));
}

/** Never takes longer than it may, and never throws, but `TooLate` where whoever asked has left meanwhile. */
export async function answerEvent(world: World, call: HookCall, event: ReadEvent): Promise<Answered> {
  if ("why" in event) return unreadable(world, call, event.why);
  const { report } = event;
  if (report === null) return { ...nothingToSay(call.harness), allowed: true };
  return answered(world, report, await decide(world, call, report));
}

function answered({ env }: World, report: Report, verdict: Verdict): Answered {
  return { ...answer(report, verdict, env), allowed: verdict.isAllowed || report.moment !== "before" };
}

async function decide(world: World, call: HookCall, report: Report): Promise<Verdict> {
  const event = registered(report);
  const patienceMs = call.patienceMs ?? (event === null ? DEFAULT_SETTINGS.deadlineMs : deadlineMs(event));
  const workMs = DEFAULT_SETTINGS.deadlineMs;
  const alarm = new Alarm(world.platform, { workMs, patienceMs });
  const checking = checkingOf(world, report, alarm);
  world.onAlarm?.(alarm);
  try {
    return await alarm.watch(() => act(checking));
  } catch (error) {
    if (error instanceof TooLate) throw error;
    if (report.moment !== "before") {
      const { noteFailure } = await import("./failure");
      await noteFailure(checking, error);
      return ALLOWED;
    }
    const { onFailure } = await import("./failure");
    return onFailure(checking, error);
  }
}

async function act(checking: Checking): Promise<Verdict> {
  const { world, report } = checking;
  switch (report.moment) {
    case "before":
      return check(checking);
    case "after":
    case "prompt": {
      const { after } = await import("./after");
      return after(checking);
    }
    case "failure":
      if (report.isRecoverable) return ALLOWED;
  }
  const { endAll, placesOf, stop, subagentDone } = await import("./life");
  const { background } = await import("./after");
  const all = await placesOf(world, report);
  const { places, failures } = all;
  if (report.moment === "done") for (const place of places) await subagentDone(place);
  else for (const place of places) await orNoted(checking, () => background(checking, place));
  if (report.moment === "stop") for (const place of places) await stop(place);
  else if (report.moment !== "done") await endAll(all, report.moment === "failure" ? "failed" : "ended");
  if (failures.length > 0) throw failures[0];
  return ALLOWED;
}

/** A last look that fails keeps no session from giving back what it holds. */
async function orNoted(checking: Checking, look: () => Promise<unknown>): Promise<void> {
  try {
    await look();
  } catch (error) {
    const { noteFailure } = await import("./failure");
    await noteFailure(checking, error);
  }
}

/** Nobody knows what the agent wants to do: as `guard.on_failure` says, with nothing known to be held. */
async function unreadable(world: World, { harness, event }: HookCall, reason: string): Promise<Answered> {
  const report = readReport(harness, event, {});
  if (report === null) return { ...nothingToSay(harness), allowed: true };
  const alarm = new Alarm(world.platform, { workMs: 1_000, patienceMs: 1_000 });
  const { onFailure } = await import("./failure");
  const why = `what ${harness} sent cannot be read: ${reason}`;
  return answered(world, report, await onFailure(checkingOf(world, report, alarm), new Error(why)));
}
