import { bootOf, elapsedMs, type Instant } from "../../../kernel/time";
import { type Check, error, note, ok, type Reported, warning } from "../finding";
import { type Patient, UNREADABLE } from "../patient";
import { many, span, stamp } from "../words";

const GRACE_MS = 2_000;
const FAR_MS = 60_000;
/** Nobody runs this before, and nobody runs it after. */
const SANE = { fromMs: Date.UTC(2024, 0, 1), toMs: Date.UTC(2100, 0, 1) };
const SET_IT = "set the clock (for example with NTP); leases of this boot are not affected by it";

/** Within one boot uptime decides and the wall clock only tells people; across boots there is nothing else. */
export const clockCheck: Check = {
  name: "clock",
  async look(patient) {
    const found = [...sane(patient), ...(await againstLog(patient)), ...spaces(patient)];
    return found.length === 0 ? [ok(`it is ${stamp(patient.platform.clock.wallMs())}`)] : found;
  },
};

function sane({ platform }: Patient): Reported[] {
  const nowMs = platform.clock.wallMs();
  if (nowMs >= SANE.fromMs && nowMs < SANE.toMs) return [];
  return [warning(`the clock cannot be right: it says ${stamp(nowMs)}`, SET_IT, { now: stamp(nowMs) })];
}

async function againstLog(patient: Patient): Promise<Reported[]> {
  const { newestMs, stepsBack, replay } = await patient.log();
  const now = patient.coordinator.store.now();
  const found: Reported[] = [];
  if (newestMs !== null && newestMs - now.wallMs > GRACE_MS) {
    const behind = span(newestMs - now.wallMs);
    const data = { newest_line_at: stamp(newestMs), now: stamp(now.wallMs) };
    const message = `the clock is ${behind} behind the newest line of the log (${stamp(newestMs)}): it was set back, or was ahead then`;
    found.push(warning(message, SET_IT, data));
  }
  if (stepsBack > 0)
    found.push(
      note(
        `the clock was set back ${stepsBack === 1 ? "once" : `${stepsBack} times`} while the log was written`,
        null,
        {
          steps_back: stepsBack,
        },
      ),
    );
  const instants = [...replay.leases.values()].map(({ renewedAt }) => renewedAt);
  const foreign = instants.filter(
    (at) => bootOf(at.clockId) === bootOf(now.clockId) && at.clockId !== now.clockId,
  );
  if (foreign.length > 0)
    found.push(
      note(
        `${many(foreign.length, "lease")} of another time namespace: only the wall clock says how old they are`,
        null,
        { leases: foreign.length },
      ),
    );
  return [
    ...found,
    ...drifted(
      instants,
      now,
      found.some(({ level }) => level === "warning"),
    ),
  ];
}

/** How far wall clock and uptime have come apart since a lease was renewed. */
function drifted(instants: readonly Instant[], now: Instant, isTold: boolean): Reported[] {
  const drifts = instants
    .filter(({ clockId }) => clockId === now.clockId)
    .map((instant) => now.wallMs - instant.wallMs - elapsedMs(instant, now));
  const worst = drifts.reduce((most, drift) => (Math.abs(drift) > Math.abs(most) ? drift : most), 0);
  if (Math.abs(worst) < FAR_MS || (worst < 0 && isTold)) return [];
  const data = { drift_ms: worst };
  if (worst > 0) {
    const message = `the clock has moved ${span(worst)} further than the uptime since a lease was renewed: it was set, or the machine slept`;
    return [note(message, null, data)];
  }
  return [warning(`the clock was set back by ${span(-worst)} since a lease was renewed`, SET_IT, data)];
}

/** What tells one boot, machine and namespace from another. */
function spaces({ place }: Patient): Reported[] {
  const { clock, processes } = place.platform;
  try {
    clock.clockId();
    const { machineId, pidNamespace, timeNamespace } = processes.self();
    const found: Reported[] = [];
    const hidden = [pidNamespace === UNREADABLE ? "pid" : null, timeNamespace === UNREADABLE ? "time" : null];
    for (const kind of hidden.filter((name) => name !== null))
      found.push(
        warning(
          `the ${kind} namespace cannot be read: processes of others count as alive until their leases run out`,
          "let this process read /proc/self/ns",
          { namespace: kind },
        ),
      );
    if (machineId === "")
      found.push(
        note(
          "this machine has no id: after a reboot its old leases are taken for another machine's",
          "make /etc/machine-id (systemd-machine-id-setup does)",
        ),
      );
    return found;
  } catch {
    return [
      error(
        "E_DISK",
        "the boot's id cannot be read: this boot cannot be told from another one, and no lease can be taken",
        "let this process read /proc/sys/kernel/random/boot_id",
      ),
    ];
  }
}
