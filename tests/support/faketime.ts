import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { needTool } from "../house/need-tool";

const LIBRARIES = "/usr/lib";
const SHARED_MEMORY = "/dev/shm";

/**
 * What sets a program's wall clock off, and nothing else: the monotonic clock and the times of files are the machine's own,
 * and not affected by setting the clock. The library is loaded directly, because the program of that name gives up when
 * the process numbers have come round to one whose leavings are still there.
 */
export function wallClockEnv(): Record<string, string> {
  return { LD_PRELOAD: libfaketime(), FAKETIME_DONT_FAKE_MONOTONIC: "1", NO_FAKE_STAT: "1" };
}

function libfaketime(): string {
  needTool("faketime");
  const found = readdirSync(LIBRARIES)
    .map((triplet) => join(LIBRARIES, triplet, "faketime", "libfaketime.so.1"))
    .find((library) => existsSync(library));
  if (found === undefined) throw new Error(`no libfaketime below ${LIBRARIES}: apt-get install faketime`);
  return found;
}

/** A process that is killed, or that becomes another program, leaves a semaphore and a page of shared memory. */
export function clearAfterTheDead(): void {
  for (const name of readdirSync(SHARED_MEMORY)) {
    const pid = /^(?:sem\.faketime_sem|faketime_shm)_(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(SHARED_MEMORY, name), { force: true });
  }
}
