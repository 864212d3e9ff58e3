import { CotenantError } from "../errors/cotenant-error";
import { issuesIn } from "../issues/desk";
import { printable, type Ulid } from "../kernel/ids";
import { requireLander } from "../land/allowance";
import { targetRef } from "../land/operations";
import { tipOf } from "../publish/base";
import { newUlid } from "../publish/branch-pushing";
import { branchName } from "../publish/branch-rules";
import { remoteFor } from "../publish/pushing";
import { branchOf, isDirty, requireNames } from "./branches";
import { availableAt, type ClaimedIssue, claimNext, claimsLeft, type Wanted } from "./claiming";
import { type Forge, forgeHere } from "./forge";
import { Lander } from "./landing";
import { tidyLogs } from "./logs";
import { type WorkRecord, workRecords } from "./record";
import type {
  DispatchEvent,
  DispatchOptions,
  DispatchParts,
  DispatchReport,
  EventKind,
  IssueOutcome,
} from "./report";
import { freePorts } from "./resources";
import { type RunState, stopAsked, tidyRuns, type WorkerState, writeRun } from "./run-file";
import {
  abandonedSlots,
  giveBackSlot,
  type Slot,
  type Station,
  stationFor,
  stationOf,
  takeSlots,
} from "./slots";
import { IssueWork } from "./work";

const STOP_LOOK_MS = 500;
/** Where nothing is available, but others work: what they finish may free something. */
const IDLE_LOOK_MS = 5_000;
/** With `waits`, for issues that somebody writes. */
const WAIT_LOOK_MS = 2_000;
const MOST_CLAIM_FAILURES = 5;
const CLAIM_PAUSE_MS = 1_000;

/** What may be over when it is tried again in a moment. */
const PASSING: readonly string[] = [
  "E_STORE_BUSY",
  "E_REMOTE_UNREACHABLE",
  "E_RETRIES_EXHAUSTED",
  "E_GIT_TIMEOUT",
];

/** The workers of one run, and what they share. */
export class Crew {
  readonly parts: DispatchParts;
  readonly options: DispatchOptions;
  readonly runId: Ulid;
  /** Where work is to land, and from where it begins. */
  readonly target: string;
  readonly forge: Forge | null;
  readonly lander: Lander | null;
  readonly #startedMs: number;
  readonly #startedAt: string;
  readonly #outcomes: IssueOutcome[] = [];
  readonly #workers = new Map<number, WorkerState>();
  readonly #ports = new Map<number, readonly [number, number]>();
  /** Issues that this run does not take, or not again. */
  readonly #through = new Set<Ulid>();
  #taken = 0;
  #working = 0;
  /** Counts the ends of issues: whoever found nothing before one looks again after it. */
  #epoch = 0;
  #wakes = new Set<() => void>();
  #left: number | null = null;
  #offlineClaims = 0;
  #costUsd: number | null = null;
  #failure: CotenantError | null = null;
  #endedBy: DispatchReport["endedBy"] = null;
  #turn: Promise<unknown> = Promise.resolve();
  #written: Promise<void> = Promise.resolve();
  #isWriteDue = false;

  private constructor(parts: DispatchParts, options: DispatchOptions, target: string, forge: Forge | null) {
    this.parts = parts;
    this.options = options;
    this.target = target;
    this.forge = forge;
    this.runId = newUlid(parts.workspace);
    this.#startedMs = this.#clock.monotonicMs();
    this.#startedAt = this.#now();
    const say = (line: string) => this.tell("note", line, null, null);
    this.lander = options.delivery === "land" ? new Lander(parts, options, target, say) : null;
  }

  /** Refuses at once what would fail at the end of every issue. */
  static async assemble(parts: DispatchParts, options: DispatchOptions): Promise<Crew> {
    const { workspace, session, hasProgram } = parts;
    const target = await targetRef(workspace, options.target);
    const { template, delivery } = options;
    if (template !== null && !(await hasProgram(template.program)))
      throw new CotenantError(
        "E_NO_COMMAND",
        `${template.program} is not here to run ${template.title} with`,
        {
          hint: `install ${template.title}; or give the command yourself: cotenant dispatch --command '…'`,
          data: { program: template.program },
        },
      );
    if (delivery === "land") requireLander(workspace, session, "run");
    await requireNames(workspace);
    if (options.push !== undefined) await remoteFor(workspace, options.push, target);
    const forge = delivery === "pr" ? await forgeHere(parts) : null;
    return new Crew(parts, options, target, forge);
  }

  get targetName(): string {
    return branchName(this.target);
  }

  /** The commit that new work begins from. */
  async base(): Promise<string> {
    const tip = await tipOf(this.parts.workspace, this.target);
    if (tip !== null) return tip;
    throw new CotenantError(
      "E_NOT_FOUND",
      `there is no branch ${printable(this.targetName, 200)} to begin from`,
      {
        hint: "commit something first, or name another with --target",
        data: { ref: this.target },
      },
    );
  }

  async ports(worker: number): Promise<readonly [number, number]> {
    const before = this.#ports.get(worker);
    if (before !== undefined) return before;
    return this.#exclusively(async () => {
      const taken = new Set([...this.#ports.values()].map(([from]) => from));
      const ports = await freePorts(this.parts, worker, taken);
      this.#ports.set(worker, ports);
      return ports;
    });
  }

  count(costUsd: number): void {
    this.#costUsd = (this.#costUsd ?? 0) + costUsd;
  }

  get isTooDear(): boolean {
    const { costInAll } = this.options;
    return costInAll !== null && (this.#costUsd ?? 0) >= costInAll;
  }

  tell(
    kind: EventKind,
    text: string,
    worker: number | null,
    issueId: Ulid | null,
    data: Readonly<Record<string, unknown>> = {},
  ): void {
    const event: DispatchEvent = { kind, at: this.#now(), worker, issueId, text, data };
    if (worker !== null) this.#follow(event, worker);
    this.options.onEvent(event, this.state());
    this.#write();
  }

  state(endedAt: string | null = null): RunState {
    const { options, parts } = this;
    return {
      ...{ runId: this.runId, by: parts.session.actor.agentId, startedAt: this.#startedAt, endedAt },
      process: parts.workspace.surroundings.platform.processes.self(),
      runs: options.template?.harness ?? options.command ?? "",
      ...{ delivery: options.delivery, target: this.targetName },
      workers: [...this.#workers.values()].sort((a, b) => a.number - b.number),
      ends: countEnds(this.#outcomes),
      ...{
        left: this.#left,
        etaSecs: this.#eta(),
        costUsd: this.#costUsd,
        offlineClaims: this.#offlineClaims,
      },
    };
  }

  async run(): Promise<DispatchReport> {
    const { parts, options } = this;
    await tidyLogs(parts.workspace);
    await tidyRuns(parts.workspace);
    await this.base();
    const slots = await takeSlots(parts, options.name, options.agents);
    const watch = this.#watchForStop();
    try {
      for (const slot of slots) this.#workers.set(slot.number, idle(slot, "starting"));
      this.tell(
        "started",
        `${slots.length === 1 ? "one worker" : `${slots.length} workers`} begin`,
        null,
        null,
      );
      const resumed = await this.#takeOver(slots);
      await Promise.all(slots.map((slot) => this.#keepAtWork(slot, resumed.get(slot.number) ?? [])));
    } finally {
      watch.close();
      for (const slot of slots) await giveBackSlot(parts, slot);
    }
    if (this.#crash !== null) throw this.#crash;
    const report = await this.#report();
    await this.#written;
    await writeRun(parts.workspace, this.state(this.#now()));
    return report;
  }

  /** What is not a refusal but a fault of ours ends the run; the workers give back first what they hold. */
  #crash: unknown = null;

  // --- workers ----------------------------------------------------------------------------------------------

  async #keepAtWork(slot: Slot, resumed: readonly ClaimedIssue[]): Promise<void> {
    try {
      await this.#work(slot, resumed);
    } catch (error) {
      if (!(error instanceof CotenantError)) this.#crash ??= error;
      else {
        this.#failure ??= error;
        this.tell("note", `stops: ${error.message}`, slot.number, null, {
          code: error.code,
          hint: error.hint,
        });
      }
      if (this.#crash !== null) this.#halt.abort();
    } finally {
      this.#workers.set(slot.number, idle(slot, "ended"));
      this.#wakeAll();
      this.#write();
    }
  }

  readonly #halt = new AbortController();

  async #work(slot: Slot, resumed: readonly ClaimedIssue[]): Promise<void> {
    const say = (line: string) => this.tell("note", line, slot.number, null);
    const base = await this.base();
    const station = await this.#exclusively(() =>
      stationFor(this.parts, slot, base, this.options.template, say),
    );
    this.#workers.set(slot.number, { ...idle(slot, "idle"), worktree: station.root });
    this.tell("worker", `works in ${station.root}`, slot.number, null, {
      ...{ agent_id: slot.agentId, worktree: station.root },
    });
    for (const issue of resumed) await this.#do(station, issue, true);
    for (let failures = 0; !this.#isOver; ) {
      const epoch = this.#epoch;
      try {
        const issue = await this.#next(station, say);
        failures = 0;
        if (issue !== null) await this.#do(station, issue, false);
        else if (!(await this.#hasMore(epoch))) return;
      } catch (error) {
        if (!(error instanceof CotenantError)) throw error;
        failures++;
        this.tell("claimed", `no issue could be claimed: ${error.message}`, slot.number, null, {
          ...{ success: false, reason: error.message, offline: false, degraded: false, error: error.code },
        });
        if (error.code === "E_PAUSED" && this.options.waits) failures = 0;
        else if (!PASSING.includes(error.code) || failures >= MOST_CLAIM_FAILURES) throw error;
        await this.#sleep(CLAIM_PAUSE_MS * failures + 1);
      }
    }
  }

  /** One worker after the other: each is to see what the one before it has taken. */
  #next(station: Station, say: (line: string) => void): Promise<ClaimedIssue | null> {
    return this.#exclusively(async () => {
      if (this.#isOver) return null;
      const issue = await claimNext(station, this.#wanted, say);
      if (issue === null) return null;
      this.#taken++;
      this.#working++;
      await this.#countLeft(station);
      return issue;
    });
  }

  async #do(station: Station, issue: ClaimedIssue, isResumed: boolean): Promise<void> {
    const { row, claim, outcome } = issue;
    const { number, agentId } = station.slot;
    if (isResumed) this.#working++;
    this.#through.add(row.id);
    try {
      if (outcome.offline) this.#offlineClaims++;
      const where = outcome.offline ? ", on this machine only: no other one knows of it yet" : "";
      this.#workers.set(number, {
        ...idle(station.slot, "claimed"),
        worktree: station.root,
        since: this.#now(),
      });
      this.tell(
        "claimed",
        `${isResumed ? "goes on with" : "takes"} ${row.shortId} ${row.title}${where}`,
        number,
        row.id,
        {
          ...{ short_id: row.shortId, title: row.title, agent_id: agentId, lease_id: claim.leaseId },
          ...{ fencing_token: claim.fencingToken, resumed: isResumed, ...outcome },
        },
      );
      const record = (await workRecords(station.workspace.coordinator)).get(row.id) ?? null;
      this.#outcomes.push(await new IssueWork(this, station, issue, record).run());
    } finally {
      this.#working--;
      this.#epoch++;
      this.#workers.set(number, { ...idle(station.slot, "idle"), worktree: station.root });
      this.#wakeAll();
    }
  }

  /** False where there will be nothing more to do. */
  async #hasMore(epoch: number): Promise<boolean> {
    if (this.#isOver) return false;
    // Somebody has finished since we looked.
    if (epoch !== this.#epoch) return true;
    if (this.#working === 0 && !this.options.waits) return false;
    await this.#sleep(this.options.waits ? WAIT_LOOK_MS : IDLE_LOOK_MS);
    return true;
  }

  get #isOver(): boolean {
    const { signal, drained, most } = this.options;
    if (signal.aborted || this.#halt.signal.aborted) this.#endedBy ??= "interrupt";
    else if (drained.aborted) this.#endedBy ??= "drain";
    else if (this.isTooDear) this.#endedBy ??= "cost";
    else if (most !== null && this.#taken >= most) this.#endedBy ??= "limit";
    else return false;
    return true;
  }

  // --- what killed runs have left -----------------------------------------------------------------------------

  /**
   * Before anybody takes anything: the worktrees of all workers are looked at, so that branches of issues that nobody holds any
   * more are free, and nothing in them is lost. Answers what our own workers hold still.
   */
  async #takeOver(slots: readonly Slot[]): Promise<ReadonlyMap<number, readonly ClaimedIssue[]>> {
    const held = new Map<number, readonly ClaimedIssue[]>();
    const records = await workRecords(this.parts.workspace.coordinator);
    for (const slot of slots) {
      const station = await stationOf(this.parts, slot);
      if (station === null) continue;
      const claims = await claimsLeft(station);
      // One at a time; whoever else has it takes what is left of the others.
      const [first, ...others] = claims;
      if (first !== undefined) held.set(slot.number, [first]);
      for (const other of others) await this.#abandon(station, other, records);
      if (first === undefined) await this.#clear(station);
    }
    const abandoned = await abandonedSlots(this.parts, this.options.name, slots);
    try {
      for (const slot of abandoned) {
        const station = await stationOf(this.parts, slot);
        if (station === null) continue;
        for (const claim of await claimsLeft(station)) await this.#abandon(station, claim, records);
        await this.#clear(station);
      }
    } finally {
      for (const slot of abandoned) await giveBackSlot(this.parts, slot);
    }
    return held;
  }

  async #abandon(
    station: Station,
    issue: ClaimedIssue,
    records: ReadonlyMap<Ulid, WorkRecord>,
  ): Promise<void> {
    const { row } = issue;
    this.tell(
      "note",
      `gives back ${row.shortId}, which a run that was killed has left`,
      station.slot.number,
      row.id,
    );
    await new IssueWork(this, station, issue, records.get(row.id) ?? null).abandon();
  }

  async #clear(station: Station): Promise<void> {
    if ((await branchOf(station)) === null && !(await isDirty(station))) return;
    await IssueWork.clear(this, station);
  }

  // --- the run ------------------------------------------------------------------------------------------------

  async #report(): Promise<DispatchReport> {
    // What was asked for is done, whatever ended it.
    const isOver = this.#isOver;
    const { workspace, session } = this.parts;
    const reader = await issuesIn(workspace);
    const { filter, only } = this.options;
    const isDone = (id: Ulid) => this.#outcomes.some((one) => one.issueId === id && one.end === "done");
    const isExcluded = (id: Ulid) => isDone(id) || !(only?.includes(id) ?? true);
    const available = await availableAt({ workspace, session }, reader, { filter, isExcluded });
    const left = available.issues.length;
    this.#left = left;
    const report: DispatchReport = {
      runId: this.runId,
      issues: this.#outcomes,
      offlineClaims: this.#offlineClaims,
      costUsd: this.#costUsd,
      durationMs: Math.round(this.#clock.monotonicMs() - this.#startedMs),
      left,
      endedBy: isOver && (left > 0 || this.#endedBy === "interrupt") ? this.#endedBy : null,
      stopped: this.#failure,
    };
    this.tell("finished", "over", null, null, { ends: countEnds(this.#outcomes), left });
    return report;
  }

  async #countLeft(station: Station): Promise<void> {
    const reader = await issuesIn(station.workspace);
    this.#left = (await availableAt(station, reader, this.#wanted)).issues.length;
  }

  /** What this run takes, but for what it is through with. */
  get #wanted(): Wanted {
    const { filter, only } = this.options;
    return { filter, isExcluded: (id) => this.#through.has(id) || !(only?.includes(id) ?? true) };
  }

  #watchForStop(): { close(): void } {
    let isClosed = false;
    let wake = () => {};
    const { timers } = this.parts.workspace.surroundings.platform;
    const look = async () => {
      while (!isClosed) {
        const sleep = timers.sleep(STOP_LOOK_MS);
        wake = sleep.wake;
        await sleep.done;
        const how = isClosed ? null : await stopAsked(this.parts.workspace, this.runId).catch(() => null);
        if (how !== null) this.options.onStop(how);
        if (how !== null) this.#wakeAll();
      }
    };
    const stopped = () => this.#wakeAll();
    const { signal, drained } = this.options;
    for (const one of [signal, drained]) one.addEventListener("abort", stopped);
    void look();
    return {
      close: () => {
        isClosed = true;
        wake();
        for (const one of [signal, drained]) one.removeEventListener("abort", stopped);
      },
    };
  }

  #eta(): number | null {
    const worked = this.#outcomes.filter(
      ({ end }) => end === "done" || end === "gated" || end === "given_back",
    );
    if (worked.length === 0 || this.#left === null) return null;
    const mean = worked.reduce((sum, { durationMs }) => sum + durationMs, 0) / worked.length / 1000;
    return Math.round((mean * (this.#left + this.#working / 2)) / Math.max(1, this.options.agents));
  }

  /** What the worker of an event does now, as its events tell. */
  #follow({ kind, data, issueId }: DispatchEvent, worker: number): void {
    const before = this.#workers.get(worker);
    if (before === undefined) return;
    const text = (field: string, other: string | null) =>
      typeof data[field] === "string" ? (data[field] as string) : other;
    const silent = kind === "stalled" ? (data["silent_secs"] as number | null) : before.silentSecs;
    this.#workers.set(worker, {
      ...before,
      doing: DOING[kind] ?? before.doing,
      issueId: issueId ?? before.issueId,
      shortId: text("short_id", before.shortId),
      title: text("title", before.title),
      branch: text("branch", before.branch),
      log: text("log", before.log),
      silentSecs: kind === "stalled" ? silent : DOING[kind] === undefined ? silent : null,
    });
  }

  /** One write at a time, and after the last change one more. */
  #write(): void {
    if (this.#isWriteDue) return;
    this.#isWriteDue = true;
    this.#written = this.#written.then(async () => {
      this.#isWriteDue = false;
      await writeRun(this.parts.workspace, this.state());
    });
  }

  async #exclusively<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(act, act);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #sleep(ms: number): Promise<void> {
    const sleep = this.parts.workspace.surroundings.platform.timers.sleep(ms);
    this.#wakes.add(sleep.wake);
    await sleep.done;
    this.#wakes.delete(sleep.wake);
  }

  #wakeAll(): void {
    for (const wake of this.#wakes) wake();
  }

  get #clock() {
    return this.parts.workspace.surroundings.platform.clock;
  }

  #now(): string {
    return new Date(this.#clock.wallMs()).toISOString();
  }
}

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

function idle({ number, agentId }: Slot, doing: string): WorkerState {
  const nothing = { issueId: null, shortId: null, title: null, branch: null, log: null, since: null };
  return { number, agentId, doing, ...nothing, worktree: null, silentSecs: null };
}

export function countEnds(outcomes: readonly IssueOutcome[]): RunState["ends"] {
  const ends: Partial<Record<IssueOutcome["end"], number>> = {};
  for (const { end } of outcomes) ends[end] = (ends[end] ?? 0) + 1;
  return ends;
}
