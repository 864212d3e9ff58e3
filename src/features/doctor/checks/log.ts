import { type Check, error, note, ok, type Reported } from "../finding";
import type { Patient } from "../patient";
import { many, some } from "../words";

/** Every line of every segment: its sum, that it follows the one before, and that no number is missing. */
export const logCheck: Check = {
  name: "log",
  async look(patient) {
    const { exists, damage, torn, replay, archived, missing } = await patient.log();
    if (!exists && damage === null) return [ok("there is no log yet")];
    const found: Reported[] = [];
    const { log } = patient.layout;
    if (damage !== null) {
      const { offset, sequence, why } = damage;
      const where = exists ? `the log is damaged at byte ${offset}: ${why}` : why;
      const next = "run: cotenant recover (it keeps the damaged file)";
      found.push(error("E_LOG_CORRUPT", where, next, { offset, sequence, path: log }));
    }
    if (torn !== null)
      found.push(
        note("the log ends in a line that nobody was promised; the next writer sets it aside", null, {
          offset: torn.offset,
        }),
      );
    found.push(...damagedSegments(patient, archived));
    if (missing.length > 0)
      found.push(
        note(
          `the archive lacks ${some(missing.map((n) => `segment ${n}`))}: history begins later or has a gap`,
          null,
          {
            missing: missing.slice(0, 100),
          },
        ),
      );
    const lines = replay.counted + archived.reduce((sum, segment) => sum + segment.lines, 0);
    const data = { lines, segments: archived.length + 1, sequence: replay.head.sequence };
    const whole = `${many(lines, "line")} in ${many(data.segments, "segment")}, all whole and in order`;
    return found.some(({ level }) => level === "error") ? found : [...found, ok(whole, data)];
  },
};

function damagedSegments(
  { layout }: Patient,
  archived: Awaited<ReturnType<Patient["log"]>>["archived"],
): Reported[] {
  return archived.flatMap(({ name, damage }) => {
    if (damage === null) return [];
    const path = `${layout.archive}/${name}`;
    return [
      error(
        "E_LOG_CORRUPT",
        `an archived segment is damaged: ${name}, ${damage}; history is not to be trusted there, leases are`,
        "bring it back from a backup, or keep it elsewhere if nobody wants its history: no lease depends on it",
        { path, why: damage },
      ),
    ];
  });
}
