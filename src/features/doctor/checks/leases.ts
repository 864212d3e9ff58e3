import type { LeaseStatus } from "../../../coordinator/contract";
import { pauseOf } from "../../../coordinator/pause";
import { ExtentIndex } from "../../../kernel/conflicts";
import { printable } from "../../../kernel/ids";
import { type Holder, sameParty } from "../../../kernel/lease";
import { pauseData, pauseText } from "../../../kernel/pause";
import { count, some } from "../../../kernel/printing";
import { isItsTurn } from "../../../kernel/tickets";
import { endingCommand } from "../../../kernel/words";
import { homelessAmong } from "../../worktrees/homeless";
import { type Check, capped, error, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";
import { span, stamp } from "../words";

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
          `${count(lapsed, "lease")} lapsed, free to take, and not yet logged as ended`,
          "run: cotenant gc (nothing depends on it)",
          { lapsed },
        ),
      );
    found.push(...(await ofGoneWorktrees(patient, valid)));
    const data = { valid: valid.length, lapsed };
    const summary = ok(`${count(valid.length, "lease")} in force`, data);
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
  const { nextToken } = await patient.coordinator.head();
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
  const message = `${count(homeless.length, "lease")} of worktrees that are gone or were made anew; they end by themselves, unless they have no expiry`;
  return [note(message, "'cotenant status' names them, and how to end each", { leases })];
}

/** One id for two processes at work: each would pass for the other. */
export const agentsCheck: Check = {
  name: "agents",
  async look(patient) {
    const holders = new Map<string, Map<string, Holder>>();
    for (const { lease, standing } of await patient.leases()) {
      if (standing !== "valid") continue;
      // A one-shot command's lease outlives it: only a process that is there counts as one at work.
      const isThere =
        lease.bind === "process" || (await patient.platform.processes.liveness(lease.holder)) === "alive";
      if (!isThere) continue;
      const { bootId, pid, startTime } = lease.holder;
      const known = holders.get(lease.agentId) ?? new Map<string, Holder>();
      holders.set(lease.agentId, known.set(`${bootId}/${pid}/${startTime}`, lease.holder));
    }
    const shared = [...holders].filter(([, processes]) => processes.size > 1);
    if (shared.length === 0) return [ok("no agent id is used by two processes at once")];
    return shared.map(([agentId, processes]) => {
      const pids = [...processes.values()].map(({ pid }) => pid);
      return warning(
        `${agentId} is used by ${count(pids.length, "live process", "live processes")} at once (${some(pids.map(String))})`,
        "give each agent a name of its own: export COTENANT_AGENT_ID=agent:<name>",
        { agent_id: agentId, pids },
      );
    });
  },
};

/** Waiters that are gone, and waiters that could go on and do not. */
export const queueCheck: Check = {
  name: "queue",
  async look(patient) {
    const { live, void: voided } = await patient.tickets();
    const valid = (await patient.leases()).filter(({ standing }) => standing === "valid");
    const leases = valid.map(({ lease }) => lease);
    const found = [];
    if (voided.length > 0)
      found.push(
        note(
          `${count(voided.length, "ticket")} of waiters that ended, gave up or did not take their turn; the next acquire removes them`,
          null,
          { tickets: voided.slice(0, 100) },
        ),
      );
    // While it is paused nobody's turn comes.
    const isPaused = live.length > 0 && (await pauseOf(patient.coordinator)) !== null;
    const idle = isPaused ? [] : live.filter((ticket) => isItsTurn(ticket, live, leases));
    if (idle.length > 0) {
      const who = idle.map(({ agentId, holder }) => `${agentId} (process ${holder.pid})`);
      found.push(
        note(
          `what ${some(who)} waits for is free: it takes it now, or is stopped and loses its place in a few seconds`,
          null,
          { tickets: idle.map(({ number }) => number) },
        ),
      );
    }
    const waiting = live.length === 0 ? "nobody waits" : `${count(live.length, "waiter")} in line`;
    return [...found, ok(waiting, { waiting: live.length })];
  },
};

/** Before everything else: it is why nobody gets anything. */
export const pauseCheck: Check = {
  name: "pause",
  async look({ coordinator, hasStore }) {
    const pause = hasStore ? await pauseOf(coordinator) : null;
    if (pause === null) return [];
    return [warning(pauseText(pause), "when it is over, a person runs: cotenant resume", pauseData(pause))];
  },
};

/** Who took the mutex last, and the notes that writers leave beside it. Reported, never broken. */
export const locksCheck: Check = {
  name: "locks",
  async look(patient) {
    const found = [...(await aboutMutex(patient)), ...(await notesOfWriters(patient))];
    return found.length === 0 ? [ok("nobody has taken the store's mutex yet")] : found;
  },
};

/** What can be seen of the mutex without touching it. */
interface Sight {
  readonly held: boolean | null;
  /** Null when its process is on another machine. */
  readonly runs: boolean | null;
  readonly pid: number;
  readonly who: string;
  readonly ageMs: number;
}

async function aboutMutex(patient: Patient): Promise<Reported[]> {
  const seen = await sight(patient);
  if (seen === null) return [];
  const { held, runs, pid, who, ageMs } = seen;
  const path = patient.layout.mutex;
  const data = { held, pid, running: runs, age_secs: Math.round(ageMs / 1000), path };
  const isOld = ageMs > patient.config.values["locks.max_age_secs"] * 1000;
  const taken = `taken ${span(Math.max(0, ageMs))} ago by ${who}`;
  if (held === true && isOld)
    return [
      warning(`the store's mutex was ${taken} and is still held: writers wait for it`, LOOK_AT_IT, data),
    ];
  if (held === true && runs === false)
    return [
      warning(`the store's mutex is held, though ${who} has ended: a child may go on`, LOOK_AT_IT, data),
    ];
  const ended = runs === false ? ", which has ended" : runs === true ? ", which still runs" : "";
  if (!isOld) return [ok(`the store's mutex was last ${taken}${ended}`, data)];
  const words =
    held === false ? "nothing holds it: these are only words" : "the system frees it with its process";
  return [note(`the store's mutex was last ${taken}${ended}; ${words}`, null, data)];
}

/** A new holder locks first and then says who it is: a contradiction is looked at again. */
async function sight(patient: Patient): Promise<Sight | null> {
  let seen = await lookOnce(patient);
  for (let again = 0; again < 5 && seen?.held === true && seen.runs === false; again++) {
    await patient.platform.timers.sleep(50).done;
    seen = await lookOnce(patient);
  }
  return seen;
}

async function lookOnce(patient: Patient): Promise<Sight | null> {
  const { platform, layout, coordinator } = patient;
  const stat = await platform.files.stat(layout.mutex);
  const metadata = stat === null ? null : await coordinator.store.mutex.metadata();
  if (stat === null || metadata === null) return null;
  const { host, agent_id: agent, doing, created_at: at } = metadata;
  const pid = Number(metadata["pid"]);
  const atMs = Date.parse(String(at));
  const isHere = host === platform.processes.host();
  return {
    held: await isHeld(patient, stat.inode),
    runs: isHere ? (await platform.processes.identify(pid)) !== null : null,
    pid,
    who: `process ${pid} (${printable(String(agent), 80)}, ${printable(String(doing), 40)})`,
    ageMs: Number.isNaN(atMs) ? 0 : platform.clock.wallMs() - atMs,
  };
}

const LOOK_AT_IT = "look at that process: if it is stopped, continue or end it; the lock goes with it";

/** As Linux lists them; null where it does not. Trying the lock would be taking it. */
async function isHeld({ platform }: Patient, inode: number): Promise<boolean | null> {
  const bytes = await platform.files.readFile("/proc/locks");
  if (bytes === null) return null;
  const lines = new TextDecoder().decode(bytes).split("\n");
  return lines.some((line) => line.includes(`:${inode} `) && !line.includes("->"));
}

async function notesOfWriters({ platform, layout }: Patient): Promise<Reported[]> {
  const found: Reported[] = [];
  const failed = await platform.files.stat(layout.syncFailed);
  if (failed !== null)
    found.push(
      warning(
        `the disk failed to keep the log on ${stamp(failed.mtimeMs)}; the next writer copies it to a new file`,
        "check the disk and its free space; then run: cotenant gc",
        { path: layout.syncFailed },
      ),
    );
  if ((await platform.files.stat(layout.renaming)) !== null)
    found.push(
      note("a new log segment may not have got its name for good; the next rebuild makes sure of it", null, {
        path: layout.renaming,
      }),
    );
  return found;
}
