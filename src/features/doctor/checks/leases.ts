import type { LeaseStatus } from "../../../coordinator/contract";
import { ExtentIndex } from "../../../kernel/conflicts";
import { printable } from "../../../kernel/ids";
import { sameParty } from "../../../kernel/lease";
import { endingCommand } from "../../../kernel/words";
import { homelessAmong } from "../../worktrees/homeless";
import { type Check, capped, error, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";
import { many, stamp } from "../words";

/** What stands: whether it could stand, and whether anybody still needs it. */
export const leasesCheck: Check = {
  name: "leases",
  async look(patient) {
    const all = await patient.leases();
    const valid = all.filter(({ standing }) => standing === "valid");
    const found = [...contradictions(valid), ...(await tokens(patient, all)), ...stale(valid)];
    const lapsed = all.length - valid.length;
    if (lapsed > 0)
      found.push(
        note(
          `${many(lapsed, "lease")} lapsed, free to take, and not yet logged as ended`,
          "run: cotenant gc (nothing depends on it)",
          { lapsed },
        ),
      );
    found.push(...(await ofGoneWorktrees(patient, valid)));
    const data = { valid: valid.length, lapsed };
    const summary = ok(`${many(valid.length, "lease")} in force`, data);
    return found.some(({ level }) => level === "error" || level === "warning") ? found : [...found, summary];
  },
};

/** Two that exclude each other. It cannot happen; a log that was edited by hand could say so. */
function contradictions(valid: readonly LeaseStatus[]): Reported[] {
  const leases = valid.map(({ lease }) => lease);
  const index = new ExtentIndex(leases);
  const found: Reported[] = [];
  for (const lease of leases) {
    const rivals = index
      .conflictingWith(lease)
      .filter((other) => other.fencingToken > lease.fencingToken && !sameParty(other, lease));
    for (const rival of rivals)
      found.push(
        error(
          "E_LOG_CORRUPT",
          `${printable(lease.key)} of ${lease.agentId} and ${printable(rival.key)} of ${rival.agentId} exclude each other, and both are in force`,
          "stop writing to both, and let their holders release them; please report this",
          { leases: [lease.leaseId, rival.leaseId] },
        ),
      );
  }
  return capped(found);
}

async function tokens(patient: Patient, all: readonly LeaseStatus[]): Promise<Reported[]> {
  const { nextToken } = (await patient.coordinator.snapshot()).head;
  const seen = new Map<number, string>();
  const found: Reported[] = [];
  for (const { lease } of all) {
    const twin = seen.get(lease.fencingToken);
    seen.set(lease.fencingToken, lease.key);
    const why =
      twin !== undefined
        ? `the token ${lease.fencingToken} was given twice: for ${printable(twin)} and ${printable(lease.key)}`
        : lease.fencingToken >= nextToken
          ? `${printable(lease.key)} has the token ${lease.fencingToken}, which was not given yet`
          : null;
    if (why === null) continue;
    const next = "stop writing under these leases, and let their holders release them; please report this";
    found.push(error("E_LOG_CORRUPT", why, next, { lease_id: lease.leaseId }));
  }
  return capped(found);
}

function stale(valid: readonly LeaseStatus[]): Reported[] {
  return capped(
    valid
      .filter((status) => status.stale)
      .map(({ lease }) => {
        const key = printable(lease.key);
        const way = endingCommand(lease);
        return warning(
          `${key} is held without expiry by ${lease.agentId}, not heard of since ${stamp(lease.lastBeat.wallMs)}`,
          `ask its holder to renew or release it${way === null ? "" : `; a person may end it: ${way}`}`,
          { lease_id: lease.leaseId, key: lease.key, agent_id: lease.agentId },
        );
      }),
  );
}

/** Their holders have lost the place to work from, and will hardly come back. */
async function ofGoneWorktrees(
  { place, platform, repository }: Patient,
  valid: readonly LeaseStatus[],
): Promise<Reported[]> {
  const homeless = await homelessAmong({ platform, git: place.git, repository }, valid);
  if (homeless.length === 0) return [];
  const leases = homeless.slice(0, 20).map(({ status }) => status.lease.leaseId);
  const message = `${many(homeless.length, "lease")} of worktrees that are gone or were made anew; they end by themselves, unless they have no expiry`;
  return [note(message, "'cotenant status' names them, and how to end each", { leases })];
}
