import { type Check, error, ok, warning } from "../finding";
import type { Patient } from "../patient";

/** Nobody has to have one; but what only a daemon does is not done without it. */
export const daemonCheck: Check = {
  name: "daemon",
  async look(patient: Patient) {
    const missed = (await patient.place.missedDaemon?.(patient)) ?? null;
    if (missed === null) return [ok("nothing is left undone for want of a daemon")];
    const next = `run: ${missed.next}`;
    return [missed.what === "http" ? error("E_DAEMON", missed.message, next) : warning(missed.message, next)];
  },
};
