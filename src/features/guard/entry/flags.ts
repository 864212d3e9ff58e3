import type { Flag, Parsed } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { HARNESS_NAMES } from "../../../identity/harness";
import { printable } from "../../../kernel/ids";
import { isHarnessName } from "../report";
import type { HookCall } from "../run";
import { defaultEvent } from "./events";

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
export function hookCall(parsed: Parsed, command: string): HookCall | null {
  const name = parsed.text("harness");
  if (name === undefined) return null;
  if (!isHarnessName(name))
    throw usage(
      `there is no harness "${printable(name, 60)}": use ${HARNESS_NAMES.join(", ")}`,
      `cotenant ${command} --help`,
    );
  const deadline = parsed.whole("deadline");
  return {
    harness: name,
    event: parsed.text("event") ?? defaultEvent(name, command),
    patienceMs: deadline === undefined ? null : deadline * 1000,
  };
}

export function harnessPid(parsed: Parsed): number | null {
  const pid = parsed.whole("pid");
  return pid === undefined || pid < 1 ? null : pid;
}
