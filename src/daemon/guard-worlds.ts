import * as os from "node:os";
import { worldOf } from "../features/guard/entry/world-of";
import type { BegunWait, World } from "../features/guard/world";
import type { Environment } from "../identity/repository";
import type { Holder } from "../kernel/lease";
import { nodeGit } from "../platform/git-node";
import type { Platform, ProcessIdentity } from "../platform/platform";
import { TooLate } from "../store/submission";
import type { OpenStores } from "./open-stores";
import type { WaitingClient } from "./waiting-client";

/** What of a hook decides about its answer, besides the event. */
export interface Hook {
  /** The hook's own process, or what stands for it where there is none. */
  readonly self: ProcessIdentity;
  readonly parentPid: number;
  readonly harnessPid: number | null;
  /** The harness, where it is known otherwise. */
  readonly harness: Holder | null;
  readonly env: Environment;
  readonly cwd: string;
}

/** The world as a hook would see it, for as long as its client waits. */
export function worldFor(
  base: Platform,
  stores: OpenStores,
  { self, parentPid, harnessPid, harness, env, cwd }: Hook,
  client: WaitingClient,
): World {
  const platform = onBehalfOf(base, self, client);
  const home = env["HOME"] || os.homedir() || null;
  return {
    ...worldOf({ platform, git: nodeGit(env), env, home, cwd }, harnessPid, parentPid),
    ...(harness === null ? {} : { harness }),
    asker: { pid: self.pid, isWaiting: () => client.isWaiting() },
    openStore: (options) => stores.of(options),
    onAlarm: (alarm) => client.onLeave(() => alarm.ring(new TooLate("whoever asked has left"))),
    onWait: (waits: BegunWait) => client.tell(JSON.stringify({ waits })),
  };
}

/** The same machine, on which "this process" is the hook, and whose sleepers are not woken once nobody waits. */
function onBehalfOf(platform: Platform, self: ProcessIdentity, client: WaitingClient): Platform {
  const { processes, timers } = platform;
  return {
    ...platform,
    processes: {
      host: () => processes.host(),
      machineId: () => processes.machineId(),
      self: () => self,
      userName: () => processes.userName(),
      identify: (pid) => processes.identify(pid),
      ancestry: (pid) => processes.ancestry(pid),
      startedSince: (startTime) => processes.startedSince(startTime),
      startTimeNow: () => processes.startTimeNow(),
      variables: (pid, names) => processes.variables(pid, names),
      liveness: (holder) => processes.liveness(holder),
      end: (victim) => processes.end(victim),
    },
    timers: {
      watchDirectory: (path, notify) => timers.watchDirectory(path, notify),
      watchFile: (path, notify) => timers.watchFile(path, notify),
      sleep: (ms) => {
        const sleep = timers.sleep(ms);
        // What slept is garbage then, with all that it knows.
        const done = sleep.done.then(() => (client.hasLeft ? new Promise<void>(() => {}) : undefined));
        const forget = client.onLeave(() => sleep.wake());
        void done.then(forget);
        return { done, wake: () => sleep.wake() };
      },
    },
  };
}
