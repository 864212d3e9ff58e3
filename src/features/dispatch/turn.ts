import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { tipOf } from "../publish/base";
import { discardChanges, isDirty } from "./branches";
import { ClaimKeeper, type ClaimState } from "./claim-keeper";
import type { ClaimedIssue } from "./claims";
import type { Crew } from "./crew";
import { note, type WorkRecord } from "./record";
import type { EventKind, IssueEnd } from "./report";
import { keepSnapshot } from "./safety-snapshot";
import type { Station } from "./slots";

/** Why an attempt came to nothing, and what was printed. */
export interface Failure {
  readonly why: string;
  readonly output: string;
  /** Not the agent's fault: its work stays as it is, and the next run goes on with it. */
  readonly isAside?: boolean;
  readonly hint?: string | undefined;
}

/** What ends an issue's work. */
export interface Ending {
  readonly end: IssueEnd;
  readonly why?: string | null;
  readonly hint?: string | null;
}

/** What is known while a worker has an issue, shared by the steps of its work. */
export class Turn {
  readonly keeper: ClaimKeeper;
  readonly startedMs: number;
  claim: ClaimState = { kind: "held" };
  branch: string | null = null;
  /** The target's commit when the work began. */
  base = "";
  attempts = 0;
  landed: string | null = null;
  pullRequest: string | null = null;
  snapshotId: string | null = null;
  log: string | null = null;
  costUsd: number | null = null;
  readonly #stop = new AbortController();

  constructor(
    readonly crew: Crew,
    readonly station: Station,
    readonly issue: ClaimedIssue,
    public record: WorkRecord | null,
  ) {
    this.startedMs = this.clock.monotonicMs();
    this.keeper = new ClaimKeeper(station, issue.claim, (state) => {
      this.claim = state;
      if (state.kind === "lost") this.stop();
    });
  }

  get clock() {
    return this.crew.parts.workspace.surroundings.platform.clock;
  }

  /** Nothing more is to be begun: the claim is lost, or the run is to end. */
  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Of the commit of what an agent has left uncommitted. */
  get message(): string {
    const { title, shortId } = this.issue.row;
    return `${printable(title, 200)}\n\nIssue ${shortId}.`;
  }

  count(costUsd: number | null): void {
    if (costUsd === null) return;
    this.costUsd = (this.costUsd ?? 0) + costUsd;
    this.crew.count(costUsd);
  }

  get isTooDear(): boolean {
    const { costPerIssue } = this.crew.options;
    return (costPerIssue !== null && (this.costUsd ?? 0) >= costPerIssue) || this.crew.isTooDear;
  }

  async targetTip(): Promise<string> {
    return (await tipOf(this.crew.parts.workspace, this.crew.target)) ?? this.base;
  }

  /** Says in the log how far the work has come. */
  async remember(
    type: Parameters<typeof note>[2],
    change: Partial<WorkRecord>,
    payload: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    this.record = { ...this.record!, ...change };
    const { issueId, branch } = this.record;
    await note(this.station.session, issueId, type, this.record, { branch, ...payload });
  }

  /** Moves what is not committed into a snapshot, where anything is. */
  async putAside(why: string, always = false): Promise<void> {
    if (!always && !(await isDirty(this.station))) return;
    const { snapshotId, failure } = await keepSnapshot(this.station);
    if (failure !== null) {
      const { code, message, hint, data } = failure;
      throw new CotenantError(code, `${printable(this.station.root, 300)}: ${message}`, { hint, data });
    }
    await discardChanges(this.station);
    this.snapshotId = snapshotId;
    this.note(`${why}: kept as snapshot ${snapshotId}`);
  }

  /** Between two attempts, unless somebody stops it. */
  async pause(ms: number): Promise<void> {
    if (this.stopped.aborted || ms <= 0) return;
    const sleep = this.crew.parts.workspace.surroundings.platform.timers.sleep(ms);
    this.stopped.addEventListener("abort", sleep.wake, { once: true });
    await sleep.done;
    this.stopped.removeEventListener("abort", sleep.wake);
  }

  note(text: string): void {
    this.tell("note", text);
  }

  tell(kind: EventKind, text: string, data: Readonly<Record<string, unknown>> = {}): void {
    const { shortId, id, title } = this.issue.row;
    this.crew.tell(kind, text, this.station.slot.number, id, { short_id: shortId, title, ...data });
  }
}
