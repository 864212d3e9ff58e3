import type { Workspace } from "../../coordinator/workspace";
import type { AgentId, Ulid } from "../../kernel/ids";
import type { DispatchEvent, DispatchOptions, EventKind, IssueEnd, IssueOutcome } from "./report";
import { type RunState, type WorkerState, writeRun } from "./run-file";
import type { Slot } from "./slots";

/** What a worker does once it has told of something; nothing: what it did before. */
const DOING: Readonly<Partial<Record<EventKind, string>>> = {
  claimed: "claimed",
  working: "working",
  attempt_failed: "waiting to try again",
  gate: "checking",
  committed: "committing",
  landing: "landing",
  delivered: "finishing",
};

/** How a run stands, for whoever looks: kept up from its events, and written to its file. */
export class RunView {
  readonly outcomes: IssueOutcome[] = [];
  /** Available issues that nobody works on, when somebody last looked. */
  left: number | null = null;
  offlineClaims = 0;
  costUsd: number | null = null;
  readonly #about: Pick<RunState, "runId" | "by" | "startedAt" | "target">;
  readonly #workers = new Map<number, WorkerState>();
  #written: Promise<void> = Promise.resolve();
  #isWriteDue = false;

  constructor(
    private readonly workspace: Workspace,
    private readonly options: DispatchOptions,
    about: {
      readonly runId: Ulid;
      readonly by: AgentId;
      readonly startedAt: string;
      readonly target: string;
    },
  ) {
    this.#about = about;
  }

  get state(): RunState {
    return this.#stateAt(null);
  }

  #stateAt(endedAt: string | null): RunState {
    const { template, command, delivery } = this.options;
    const { left, costUsd, offlineClaims } = this;
    return {
      ...this.#about,
      ...{ endedAt, delivery, left, costUsd, offlineClaims },
      process: this.workspace.surroundings.platform.processes.self(),
      runs: template?.harness ?? command ?? "",
      workers: [...this.#workers.values()].sort((a, b) => a.number - b.number),
      ends: countEnds(this.outcomes),
      etaSecs: this.#eta(),
    };
  }

  /** A worker is between two issues, or at its beginning or end. */
  place(
    { number, agentId }: Slot,
    doing: string,
    about: Partial<Pick<WorkerState, "worktree" | "since">> = {},
  ): void {
    const nothing = { issueId: null, shortId: null, title: null, branch: null, log: null, silentSecs: null };
    this.#workers.set(number, { number, agentId, doing, ...nothing, worktree: null, since: null, ...about });
    this.#write();
  }

  /** What the worker of an event does now, as the event tells. */
  follow({ kind, data, issueId, worker }: DispatchEvent): void {
    const before = worker === null ? undefined : this.#workers.get(worker);
    if (before !== undefined) {
      const text = (field: string, other: string | null) =>
        typeof data[field] === "string" ? (data[field] as string) : other;
      const goesOn = DOING[kind] !== undefined;
      const silentSecs = kind === "stalled" ? (data["silent_secs"] as number | null) : before.silentSecs;
      this.#workers.set(before.number, {
        ...before,
        doing: DOING[kind] ?? before.doing,
        issueId: issueId ?? before.issueId,
        shortId: text("short_id", before.shortId),
        title: text("title", before.title),
        branch: text("branch", before.branch),
        log: text("log", before.log),
        silentSecs: goesOn ? null : silentSecs,
      });
    }
    this.#write();
  }

  /** The last word of a run. */
  async close(endedAt: string): Promise<void> {
    await this.#written;
    await writeRun(this.workspace, this.#stateAt(endedAt));
  }

  /** One write at a time, and one more after the last change. */
  #write(): void {
    if (this.#isWriteDue) return;
    this.#isWriteDue = true;
    this.#written = this.#written.then(async () => {
      this.#isWriteDue = false;
      await writeRun(this.workspace, this.state);
    });
  }

  /** As long as the issues before took, for those that are left and half of those under way. */
  #eta(): number | null {
    const worked = this.outcomes.filter(
      ({ end }) => end === "done" || end === "gated" || end === "given_back",
    );
    if (worked.length === 0 || this.left === null) return null;
    const mean = worked.reduce((sum, { durationMs }) => sum + durationMs, 0) / worked.length / 1000;
    const underWay = [...this.#workers.values()].filter(({ issueId }) => issueId !== null).length;
    return Math.round((mean * (this.left + underWay / 2)) / Math.max(1, this.options.agents));
  }
}

export function countEnds(outcomes: readonly IssueOutcome[]): Readonly<Partial<Record<IssueEnd, number>>> {
  const ends: Partial<Record<IssueEnd, number>> = {};
  for (const { end } of outcomes) ends[end] = (ends[end] ?? 0) + 1;
  return ends;
}
