import type { Flag, Parsed } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { HARNESS_NAMES } from "../../../identity/harness";
import { printable } from "../../../kernel/ids";
import { isHarnessName } from "../report";
import { type GuardCall, type GuardVerb, guardCall } from "./guard-call";

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
export function hookCall(parsed: Parsed, verb: GuardVerb): GuardCall | null {
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

export function harnessPid(parsed: Parsed): number | null {
  const pid = parsed.whole("pid");
  return pid === undefined || pid < 1 ? null : pid;
}
