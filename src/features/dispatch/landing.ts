import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import type { LandEntry, Method } from "../land/entry";
import { enqueue, queueOf } from "../land/queue-entries";
import { runQueue } from "../land/queue-run";
import type { LandOutcome } from "../land/report";
import type { WorkRecord } from "./record";
import type { DispatchOptions, DispatchParts } from "./report";

/** Before one more try where somebody else lands, or the target's checkout is not fit. */
const TRY_AGAIN_MS = 2_000;
const MOST_TRIES = 5;

export interface LandedBefore {
  /** Null where the target had all of it already. */
  readonly commit: string | null;
}

/** An issue's work, as somebody began with it. */
type Began = Pick<WorkRecord, "branch" | "issueId" | "startedAt">;

/** What became of a branch in the merge queue since: its last entry, and whether that has landed. */
export async function landedBefore(
  workspace: DispatchParts["workspace"],
  target: string,
  { branch, issueId, startedAt }: Began,
): Promise<{ readonly last: LandEntry | null; readonly landed: LandedBefore | null }> {
  const all = await queueOf(workspace, target, { all: true });
  const last =
    all.findLast(
      (entry) =>
        entry.branch === `refs/heads/${branch}` && entry.issueId === issueId && entry.addedAt >= startedAt,
    ) ?? null;
  return { last, landed: last?.state === "landed" ? { commit: last.landed?.commit ?? null } : null };
}

/**
 * Lands branches for all workers: one run of the merge queue at a time, with all that has come meanwhile in the next one. By whoever
 * started the dispatcher, as `policy.land` allows.
 */
export class BranchLander {
  readonly #say: (line: string) => void;
  readonly #waiting = new Map<Ulid, (outcome: LandOutcome | CotenantError) => void>();
  #running: Promise<void> | null = null;

  constructor(
    private readonly parts: DispatchParts,
    private readonly options: DispatchOptions,
    private readonly target: string,
    say: (line: string) => void,
  ) {
    this.#say = say;
  }

  /**
   * The commit as which an issue's branch has landed since a killed run began with it; null where it has not. What is in the
   * queue still lands now.
   */
  async landedSince(began: Began): Promise<LandedBefore | null> {
    const { last, landed } = await landedBefore(this.parts.workspace, this.target, began);
    if (last === null || last.state === "parked" || landed !== null) return landed;
    const { outcome, commit } = await this.#wait(last.entryId);
    return outcome === "landed" ? { commit } : null;
  }

  /** Rejects where it could be neither landed nor put aside: then it is in the queue still. */
  async land(
    branch: string,
    {
      issueId,
      message = null,
      method = null,
    }: { issueId: Ulid; message?: string | null; method?: Method | null },
  ): Promise<LandOutcome> {
    const { workspace, session } = this.parts;
    const request = { branches: [branch], target: this.target, issueId, message, method };
    const [added] = await enqueue(workspace, session, request);
    return this.#wait(added!.entry.entryId);
  }

  async #wait(entryId: Ulid): Promise<LandOutcome> {
    const outcome = await new Promise<LandOutcome | CotenantError>((resolve) => {
      this.#waiting.set(entryId, resolve);
      this.#start();
    });
    if (outcome instanceof CotenantError) throw outcome;
    return outcome;
  }

  #start(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
      if (this.#waiting.size > 0) this.#start();
    });
  }

  async #run(): Promise<void> {
    const only = [...this.#waiting.keys()];
    for (let tries = 1; ; tries++) {
      const failure = await this.#once(only);
      if (failure === null || !only.some((id) => this.#waiting.has(id))) return;
      if (tries < MOST_TRIES && isPassing(failure) && !this.options.signal.aborted) {
        this.#say(`landing waits: ${failure.message}`);
        await this.parts.workspace.surroundings.platform.timers.sleep(TRY_AGAIN_MS * tries).done;
        continue;
      }
      for (const id of only) this.#settle(id, failure);
      return;
    }
  }

  /** Tells those whose turn it was; answers why the others have to wait, null where none has to. */
  async #once(only: readonly Ulid[]): Promise<CotenantError | null> {
    const { workspace, session, trees, commands, openFence } = this.parts;
    const { push, clean, signal } = this.options;
    try {
      const report = await runQueue(
        { workspace, session, trees, commands, openFence: openFence(workspace, session) },
        {
          ...{ target: this.target, only: [...only], push, clean, signal, wait: true },
          onProgress: ({ text }) => this.#say(text),
        },
      );
      for (const outcome of report.entries)
        if (outcome.outcome !== "waiting") this.#settle(outcome.entryId, outcome);
      return report.stopped ?? (only.some((id) => this.#waiting.has(id)) ? gone() : null);
    } catch (error) {
      if (error instanceof CotenantError) return error;
      for (const id of only) this.#settle(id, new CotenantError("E_INTERNAL", String(error)));
      return null;
    }
  }

  #settle(id: Ulid, outcome: LandOutcome | CotenantError): void {
    this.#waiting.get(id)?.(outcome);
    this.#waiting.delete(id);
  }
}

/** What may be over in a moment: somebody else lands, edits or commits there. */
function isPassing({ code }: CotenantError): boolean {
  return ["E_LOCK_CONFLICT", "E_PROTECTED_REF", "E_STORE_BUSY", "E_QUEUED"].includes(code);
}

function gone(): CotenantError {
  return new CotenantError("E_NOT_FOUND", "somebody has taken it out of the merge queue", {
    hint: "add it again: cotenant land add <branch>",
  });
}
