import { printable } from "../../../kernel/ids";
import { type Check, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";
import { span, stamp } from "../words";

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
