import type { MissedDaemon, Workspace } from "../coordinator/workspace";
import { thisBuild } from "./build";
import { asksOverHttp } from "./http-door";
import { startedBy } from "./in-front";
import { type Standing, type Started, standingOf, startDaemon, stopDaemon } from "./life";
import { missedDaemon } from "./missed";
import { controlMark, daemonPlace } from "./place";
import { type Supervisor, type Unit, unitFor } from "./units";

/** The daemon of a repository. Everything works without one. */

export interface DaemonRunning extends Started {
  readonly log: string;
}

export interface DaemonStopped {
  /** Null where none was running. */
  readonly pid: number | null;
  /** A harness of this repository asks over HTTP, and writes nothing while nobody answers. */
  readonly isMissed: boolean;
  /** The setting that has the next command start one again. */
  readonly startedBy: string | null;
}

export interface DaemonStatus {
  readonly standing: Standing;
  readonly log: string;
  /** What somebody counts on it for, while none is running. */
  readonly missed: MissedDaemon | null;
}

export const daemon = {
  /** Starts it in the background, or finds the one that is running; one of another build is replaced. */
  async start(
    { repository, surroundings }: Workspace,
    { program }: { readonly program: string },
  ): Promise<DaemonRunning> {
    const place = daemonPlace(repository.controlDir);
    return { ...(await startDaemon(place, surroundings, program, thisBuild())), log: place.log };
  },

  /** Ends it, once it has answered what it was asked. No lease ends by that. */
  async stop(workspace: Workspace): Promise<DaemonStopped> {
    const { repository, surroundings } = workspace;
    const stopped = await stopDaemon(surroundings.platform, daemonPlace(repository.controlDir));
    return {
      pid: stopped?.pid ?? null,
      isMissed: asksOverHttp(workspace),
      startedBy: await startedBy(workspace),
    };
  },

  async status(workspace: Workspace): Promise<DaemonStatus> {
    const { repository, surroundings } = workspace;
    const place = daemonPlace(repository.controlDir);
    const standing = await standingOf(surroundings.platform, place);
    return {
      standing,
      log: place.log,
      missed: standing.state === "none" ? await missedDaemon(workspace) : null,
    };
  },

  /** What makes a supervisor of the user's own keep it running. Nothing is written. */
  install(
    { repository }: Workspace,
    { supervisor, program }: { readonly supervisor: Supervisor; readonly program: string },
  ): Unit {
    return unitFor(supervisor, {
      node: process.execPath,
      program,
      root: repository.mainWorktreeRoot ?? repository.worktreeRoot,
      mark: controlMark(repository.commonDir),
    });
  },
};
