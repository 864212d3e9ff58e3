import { givenReason } from "../../coordinator/requests";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { usageError } from "../../errors/cotenant-error";
import { issuesIn } from "../issues/desk";
import { meantId } from "../issues/meant";
import { claimFenceIn } from "../publish/operations";
import type { LandEntry } from "./entry";
import {
  type Enqueued,
  type EnqueueRequest,
  enqueue,
  meantEntry,
  queueOf,
  removeEntry,
  retryEntry,
} from "./queue-entries";
import { pauseQueue, type QueuePause, queuePauseOf, resumeQueue } from "./queue-pause";
import { runQueue } from "./queue-run";
import type { LandOptions, LandParts, LandReport } from "./report";
import { targetRef } from "./target";

/** The merge queue. See docs/LAND.md. */

export interface TargetNamed {
  /** A branch. Default: `land.target`, else main. */
  readonly target?: string | null | undefined;
}

export interface EntryNamed extends TargetNamed {
  /** An entry's id, the end of one, or its branch. */
  readonly entry: string;
}

export interface AddRequest extends Omit<EnqueueRequest, "issueId"> {
  /** The issue that is done by it. */
  readonly issue?: string | null | undefined;
}

export interface RunRequest extends Omit<LandOptions, "push" | "only"> {
  /** Only these entries, by their ids or branches; all others stay. */
  readonly only?: readonly string[] | undefined;
  /** Land on the remote first: on the usual one (true, null), or on the one named. */
  readonly push?: boolean | string | null | undefined;
}

export interface Queue {
  readonly entries: readonly LandEntry[];
  /** Of the targets that are shown. */
  readonly pauses: readonly QueuePause[];
}

export const land = {
  /** Adds branches to the merge queue, as they are now. */
  async add(workspace: Workspace, { issue, ...request }: AddRequest): Promise<readonly Enqueued[]> {
    const issueId = issue == null ? null : await meantId(await issuesIn(workspace), issue);
    return enqueue(workspace, await workspace.session("write"), { ...request, issueId });
  },

  /** What waits to land, in order, and what was put aside; with `all`, also what has landed lately. */
  async list(
    workspace: Workspace,
    { target: typed, all = false }: TargetNamed & { readonly all?: boolean } = {},
  ): Promise<Queue> {
    const target = typed == null ? null : await targetRef(workspace, typed);
    const entries = await queueOf(workspace, target, { all });
    const usual = target ?? (await targetRef(workspace, null));
    const targets = [...new Set([usual, ...entries.map((one) => one.target)])];
    const pauses = await Promise.all(targets.map((one) => queuePauseOf(workspace, one)));
    return { entries, pauses: pauses.filter((one) => one !== null) };
  },

  /** Takes an entry out of the queue; its branch stays as it is. */
  async remove(
    workspace: Workspace,
    request: EntryNamed & { readonly reason?: string | undefined },
  ): Promise<LandEntry> {
    const found = await entryNamed(workspace, request);
    const { reason = null } = request;
    return removeEntry(workspace, await workspace.session("write"), found, { reason });
  },

  /** Puts an entry that was put aside back into the queue, at its old place and as it was added. */
  async retry(
    workspace: Workspace,
    request: EntryNamed,
  ): Promise<{ readonly entry: LandEntry; readonly changed: boolean }> {
    const found = await entryNamed(workspace, request);
    const entry = await retryEntry(await workspace.session("write"), found);
    return { entry, changed: found.state !== "queued" };
  },

  /** Stops landings on a target. Answers who paused first, where somebody had. */
  async pause(
    workspace: Workspace,
    request: TargetNamed & { readonly reason: string | undefined },
  ): Promise<{ readonly pause: QueuePause; readonly changed: boolean }> {
    const reason = givenReason(request.reason, "a pause");
    const target = await targetRef(workspace, request.target ?? null);
    return pauseQueue(workspace, await workspace.session("write"), { target, reason });
  },

  /** Lets landings go on. `ended` is null where they were not paused. */
  async resume(
    workspace: Workspace,
    request: TargetNamed = {},
  ): Promise<{ readonly target: string; readonly ended: QueuePause | null }> {
    const target = await targetRef(workspace, request.target ?? null);
    return { target, ended: await resumeQueue(workspace, await workspace.session("write"), { target }) };
  },

  /** Lands what is in the queue. What ends it early once it has begun is told in the report. */
  async run(workspace: Workspace, { push = false, ...request }: RunRequest = {}): Promise<LandReport> {
    const parts = await landParts(workspace, await workspace.session("write"));
    const target = await targetRef(workspace, request.target ?? null);
    const { only, parallel = null } = request;
    const named = await Promise.all((only ?? []).map((word) => meantEntry(workspace, word, target)));
    if (parallel !== null && !(parallel >= 1 && parallel <= 8))
      throw usageError(`--parallel takes 1 to 8, not ${parallel}`, "for example --parallel 2");
    return runQueue(parts, {
      ...{ ...request, target },
      only: only === undefined ? undefined : named.map(({ entryId }) => entryId),
      push: push === true ? null : push === false ? undefined : push,
    });
  },
};

async function entryNamed(workspace: Workspace, { entry, target }: EntryNamed): Promise<LandEntry> {
  return meantEntry(workspace, entry, target == null ? null : await targetRef(workspace, target));
}

/** What a run works with, for this session. */
export async function landParts(workspace: Workspace, session: Session): Promise<LandParts> {
  const { tools } = workspace.surroundings;
  const [trees, commands] = [await tools.trees(), await tools.commands()];
  return { workspace, session, trees, commands, openFence: claimFenceIn(workspace, session) };
}
