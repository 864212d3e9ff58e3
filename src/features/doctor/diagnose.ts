import { type Check, type Finding, fromError, LEVELS } from "./finding";
import type { Patient } from "./patient";

/** What all the checks found, the worst first. None of them can keep the others from looking. */
export async function diagnose(patient: Patient, checks: readonly Check[]): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const { name, look } of checks) {
    try {
      for (const reported of await look(patient)) found.push({ check: name, ...reported });
    } catch (thrown) {
      found.push({ check: name, ...fromError(thrown, `looking at this (${name})`, patient.layout.root) });
    }
  }
  return found.sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
}
