import { printable } from "../../kernel/ids";
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

async function aboutMutex(patient: Patient): Promise<Reported[]> {
  const { platform, layout, coordinator, config } = patient;
  const stat = await platform.files.stat(layout.mutex);
  const metadata = stat === null ? null : await coordinator.store.mutex.metadata();
  if (stat === null || metadata === null) return [];
  const held = await isHeld(patient, stat.inode);
  const { pid, host, agent_id: agent, doing, created_at: at } = metadata;
  const atMs = Date.parse(String(at));
  const ageMs = Number.isNaN(atMs) ? 0 : platform.clock.wallMs() - atMs;
  const who = `process ${Number(pid)} (${printable(String(agent), 80)}, ${printable(String(doing), 40)})`;
  const isHere = host === platform.processes.host();
  const runs = isHere ? (await platform.processes.identify(Number(pid))) !== null : null;
  const isOld = ageMs > config.values["locks.max_age_secs"] * 1000;
  const data = {
    held,
    pid: Number(pid),
    running: runs,
    age_secs: Math.round(ageMs / 1000),
    path: layout.mutex,
  };
  const taken = `taken ${span(Math.max(0, ageMs))} ago by ${who}`;
  if (held === true && isOld)
    return [
      warning(`the store's mutex was ${taken} and is still held: writers wait for it`, LOOK_AT_IT, data),
    ];
  if (held === true && runs === false)
    return [
      warning(
        `the store's mutex is held, though ${who} has ended: a child of it may go on`,
        LOOK_AT_IT,
        data,
      ),
    ];
  const ended = runs === false ? ", which has ended" : runs === true ? ", which still runs" : "";
  if (!isOld) return [ok(`the store's mutex was last ${taken}${ended}`, data)];
  const words =
    held === false ? "nothing holds it: these are only words" : "the system frees it with its process";
  return [note(`the store's mutex was last ${taken}${ended}; ${words}`, null, data)];
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
