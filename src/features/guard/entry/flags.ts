import type { Context, Flag, Parsed } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { HARNESS_NAMES } from "../../../identity/harness";
import { printable } from "../../../kernel/ids";
import { ownWorktree } from "../operations";
import { isHarnessName } from "../report";
import { type Answered, runHook } from "../run";
import type { GuardedWorktree } from "../worktree";
import { type GuardCall, type GuardVerb, guardCall } from "./guard-call";
import { readHookInput } from "./stdin";
import { worldOf } from "./world-of";

/** What every command line has that a harness runs. */
export const HOOK_FLAGS: Readonly<Record<string, Flag>> = {
  harness: {
    value: "<name>",
    meaning: "which harness calls; its event is read from standard input",
    choices: HARNESS_NAMES,
  },
  event: { value: "<name>", meaning: "the event, as the harness calls it, where its input does not say" },
  pid: { value: "<pid>", meaning: "the harness's process (else whoever started this one)" },
  via: {
    value: "<name>",
    meaning: "the daemon that was asked first, as 'agent install --via daemon' writes it",
  },
};

/** Null where it is no harness that calls. */
function hookCall(parsed: Parsed, verb: GuardVerb): GuardCall | null {
  const harness = parsed.text("harness");
  if (harness === undefined) return null;
  if (!isHarnessName(harness))
    throw usage(
      `there is no harness "${printable(harness, 60)}": use ${HARNESS_NAMES.join(", ")}`,
      `cotenant guard ${verb} --help`,
    );
  const deadlineSecs = parsed.whole("deadline") ?? null;
  const event = parsed.text("event");
  return guardCall(verb, { harness, event, pid: harnessPid(parsed), deadlineSecs, via: null });
}

/** What a harness's call is answered; null where it is no harness that calls. */
export async function answerHook(
  context: Context,
  parsed: Parsed,
  verb: GuardVerb,
): Promise<Answered | null> {
  const call = hookCall(parsed, verb);
  if (call === null) return null;
  return runHook(worldOf(context.surroundings(), call.harnessPid), call, readHookInput());
}

/** The caller's own session, for people and scripts. */
export async function ownWorktreeOf(context: Context, parsed: Parsed): Promise<GuardedWorktree> {
  const workspace = await context.workspace();
  return ownWorktree(workspace, worldOf(workspace.surroundings, harnessPid(parsed)));
}

export function harnessPid(parsed: Parsed): number | null {
  const pid = parsed.whole("pid");
  return pid === undefined || pid < 1 ? null : pid;
}
