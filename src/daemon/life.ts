import { spawn } from "node:child_process";
import type { Surroundings } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import { isLocked } from "../platform/locked";
import type { Platform } from "../platform/platform";
import { connectTo, NoAnswer, ONLOOKER } from "./connection";
import { daemonEnvironment } from "./environment";
import { openBy } from "./open-by";
import { type DaemonPlace, type DaemonRecord, readRecord } from "./place";
import { RpcError } from "./rpc";

/** What can be told of a repository's daemon. */
export type Standing =
  | { readonly state: "running"; readonly record: DaemonRecord; readonly said: Record<string, unknown> }
  /** It has the lock and does not answer: stopped, or stuck. */
  | { readonly state: "silent"; readonly record: DaemonRecord | null }
  | { readonly state: "none" };

const ANSWER_MS = 2_000;

/** Whether a daemon runs is told by its lock, which goes with its process; files that were left behind tell nothing. */
export async function standingOf(platform: Platform, place: DaemonPlace): Promise<Standing> {
  if (!(await isLocked(platform, place.lock))) return { state: "none" };
  const record = readRecord(place);
  if (record === null) return { state: "silent", record };
  try {
    return { state: "running", record, said: await ask(record, "status") };
  } catch {
    return { state: "silent", record };
  }
}

/** One request to a running daemon. */
export async function ask(
  record: DaemonRecord,
  method: string,
  params: object = {},
  withinMs: number = ANSWER_MS,
): Promise<Record<string, unknown>> {
  const connection = connectTo(record, ONLOOKER, withinMs);
  try {
    return (await connection.call(method, params, withinMs)) as Record<string, unknown>;
  } finally {
    connection.close();
  }
}

/** Starts a daemon that outlives the caller; answers without waiting for it. */
export function launch(program: string, { cwd, env }: Pick<Surroundings, "cwd" | "env">): number | null {
  const child = spawn(process.execPath, [program, "daemon", "run", "--detached"], {
    cwd,
    env: daemonEnvironment(env) as NodeJS.ProcessEnv,
    detached: true,
    stdio: "ignore",
  });
  child.on("error", () => {});
  child.unref();
  return child.pid ?? null;
}

const START_WITHIN_MS = 15_000;
const LOOK_EVERY_MS = 20;

/** Waits until somebody answers. */
async function awaitRunning(
  platform: Platform,
  place: DaemonPlace,
): Promise<Extract<Standing, { state: "running" }>> {
  const deadline = platform.clock.monotonicMs() + START_WITHIN_MS;
  for (;;) {
    const standing = await standingOf(platform, place);
    if (standing.state === "running") return standing;
    if (platform.clock.monotonicMs() > deadline)
      throw new CotenantError("E_DAEMON", "the daemon did not start", {
        hint: "'cotenant daemon run' shows what keeps it",
        data: { log: place.log },
      });
    await platform.timers.sleep(LOOK_EVERY_MS).done;
  }
}

const STOP_WITHIN_MS = 15_000;
/** One that has not even said that it will. */
const LEAVE_SILENT_MS = 5_000;

/** How long one may have the lock before its record says who it is. */
const APPEAR_WITHIN_MS = 3_000;

/** Asks it to end, and waits until it has; one that does not answer is ended. Null where there was none. */
export async function stopDaemon(platform: Platform, place: DaemonPlace): Promise<{ pid: number } | null> {
  if (!(await isLocked(platform, place.lock))) return null;
  const { clock, timers } = platform;
  const startedMs = clock.monotonicMs();
  const suspects = openBy(place.lock);
  let asked: DaemonRecord | null = null;
  let patienceMs = APPEAR_WITHIN_MS;
  while (await isLocked(platform, place.lock)) {
    const record = readRecord(place);
    if (asked === null && record !== null) {
      asked = record;
      patienceMs = STOP_WITHIN_MS;
      await ask(record, "shutdown").catch((error: unknown) => {
        // Also one that does not know the token of its own record: it may have been damaged.
        if (!(error instanceof NoAnswer || error instanceof RpcError)) throw error;
        patienceMs = LEAVE_SILENT_MS;
      });
    }
    if (clock.monotonicMs() - startedMs > patienceMs) return end(platform, place, suspects, asked);
    await timers.sleep(LOOK_EVERY_MS).done;
  }
  return asked === null ? null : { pid: asked.pid };
}

/**
 * Of those that had the lock open all the time, the one that the record names, or the only one. The record alone ends nobody
 * where the system tells who has a file open: it may be forged.
 */
async function end(
  platform: Platform,
  place: DaemonPlace,
  suspects: readonly number[] | null,
  record: DaemonRecord | null,
): Promise<{ pid: number }> {
  const { processes } = platform;
  const still = openBy(place.lock)?.filter((pid) => suspects?.includes(pid) && pid !== processes.self().pid);
  const pid = still === undefined || still.includes(record?.pid ?? 0) ? record?.pid : still[0];
  const victim = pid === undefined ? null : await processes.identify(pid);
  if (victim === null || (still?.length ?? 1) > 1)
    throw new CotenantError("E_DAEMON", "a daemon has the lock and does not say where it is", {
      hint: "it may just be starting or ending: run 'cotenant daemon stop' again",
      data: { lock: place.lock, processes: still ?? [] },
    });
  await processes.end(victim);
  return { pid: victim.pid };
}

export interface Started {
  readonly record: DaemonRecord;
  readonly isNew: boolean;
  /** The process of another build that it replaced. */
  readonly replaced: number | null;
}

/** However many do this at once, one daemon runs afterwards. */
export async function startDaemon(
  place: DaemonPlace,
  surroundings: Surroundings,
  program: string,
  build: string,
): Promise<Started> {
  const { platform } = surroundings;
  const before = await standingOf(platform, place);
  let replaced: number | null = null;
  if (before.state === "running") {
    if (before.record.build === build) return { record: before.record, isNew: false, replaced };
    replaced = (await stopDaemon(platform, place))?.pid ?? null;
  }
  const pid = launch(program, surroundings);
  const { record } = await awaitRunning(platform, place);
  return { record, isNew: record.pid === pid, replaced };
}
