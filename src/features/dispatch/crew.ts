import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, notFoundError } from "../../errors/cotenant-error";
import { DATA_DIRECTORY } from "../../identity/worktree-file";
import { printable, type Ulid } from "../../kernel/ids";
import { newUlid } from "../../platform/new-ulid";
import { issuesIn } from "../issues/desk";
import { EVENTS } from "../issues/stamps";
import { refuseUnready } from "../land/readiness";
import { targetRef } from "../land/target";
import { tipOf } from "../publish/base";
import { branchName } from "../publish/branch-rules";
import { remoteFor } from "../publish/push";
import { branchOf, isDirty, requireBranchRoom, requireCommitting } from "./branches";
import { availableAt, type ClaimedIssue, claimNext, claimsLeft, type Wanted } from "./claims";
import { commandsOf } from "./commands";
import { type Forge, forgeHere } from "./forge";
import { BranchLander } from "./landing";
import { tidyLogs } from "./logs";
import { isStanding } from "./pinned-git";
import { type WorkRecord, workRecords } from "./record";
import type { DispatchEvent, DispatchOptions, DispatchParts, DispatchReport, EventKind } from "./report";
import { freePorts } from "./resources";
import { stopAsked, tidyRuns } from "./run-file";
import { countEnds, RunView } from "./run-view";
import { clearWorktree } from "./safety-snapshot";
import {
  abandonedSlots,
  giveBackSlot,
  type Slot,
  type Station,
  stationFor,
  stationOf,
  takeSlots,
} from "./slots";
import { Turn } from "./turn";
import { abandon, workOn } from "./work";

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

async function baseOf(workspace: Workspace, target: string): Promise<string> {
  const tip = await tipOf(workspace, target);
  if (tip !== null) return tip;
  throw notFoundError(
    `there is no branch ${printable(branchName(target), 200)} to begin from`,
    "see which there are: git branch --list; and name one with --target",
    { ref: target },
  );
}

/** The workers of one run, and what they share. */
export class Crew {
  readonly parts: DispatchParts;
  readonly runId: Ulid;
  readonly lander: BranchLander | null;
  readonly #view: RunView;
  readonly #startedMs: number;
  readonly #ports = new Map<number, readonly [number, number]>();
  /** Issues that this run does not take, or not again. */
  readonly #through = new Set<Ulid>();
  readonly #sleepers = new Set<() => void>();
  /** Ends all workers, where something is wrong with us rather than with what they were asked. */
  readonly #halt = new AbortController();
  #taken = 0;
  #working = 0;
  /** Counts the ends of issues: whoever found nothing before one looks again after it. */
  #epoch = 0;
  #failure: CotenantError | null = null;
  #crash: unknown = null;
  #endedBy: DispatchReport["endedBy"] = null;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(
    parts: DispatchParts,
    readonly options: DispatchOptions /** Where work is to land, and from where it begins. */,
    readonly target: string,
    readonly forge: Forge | null,
  ) {
    const { workspace, session } = parts;
    this.parts = { ...parts, commands: commandsOf(parts.commands, options.signal) };
    this.runId = newUlid(workspace.surroundings.platform);
    this.#startedMs = this.#clock.monotonicMs();
    const { agentId: by } = session.actor;
    const about = { runId: this.runId, by, startedAt: this.#now(), target: branchName(target) };
    this.#view = new RunView(workspace, options, about);
    const said = new Set<string>();
    const say = (line: string) => {
      // Each landing says such things anew.
      if (!said.has(line)) this.tell("note", line, null, null);
      said.add(line);
    };
    this.lander = options.delivery === "land" ? new BranchLander(this.parts, options, target, say) : null;
  }

  /** Refuses at once what would fail at the end of every issue. */
  static async assemble(parts: DispatchParts, options: DispatchOptions): Promise<Crew> {
    const { workspace, session, trees, hasProgram } = parts;
    const target = await targetRef(workspace, options.target);
    const { template, delivery } = options;
    if (template !== null && !(await hasProgram(template.program)))
      throw new CotenantError(
        "E_NO_COMMAND",
        `${template.title} cannot be run: there is no program ${template.program} on the PATH`,
        {
          hint: `install ${template.title}; or say what to run: cotenant dispatch --command '<line>'`,
          data: { program: template.program },
        },
      );
    const remote = options.push === undefined ? null : await remoteFor(workspace, options.push, target);
    if (delivery === "land")
      await refuseUnready({ workspace, session, trees }, target, {
        remote,
        adds: [`${DATA_DIRECTORY}/${EVENTS}`],
      });
    await requireBranchRoom(workspace);
    const forge = delivery === "pr" ? await forgeHere(parts) : null;
    await requireCommitting(workspace, await baseOf(workspace, target));
    return new Crew(parts, options, target, forge);
  }

  get targetName(): string {
    return branchName(this.target);
  }

  /** The commit that new work begins from. */
  base(): Promise<string> {
    return baseOf(this.parts.workspace, this.target);
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
    this.#view.costUsd = (this.#view.costUsd ?? 0) + costUsd;
  }

  get isTooDear(): boolean {
    const { costInAll } = this.options;
    return costInAll !== null && (this.#view.costUsd ?? 0) >= costInAll;
  }

  tell(
    kind: EventKind,
    text: string,
    worker: number | null,
    issueId: Ulid | null,
    data: Readonly<Record<string, unknown>> = {},
  ): void {
    const event: DispatchEvent = { kind, at: this.#now(), worker, issueId, text, data };
    this.#view.follow(event);
    this.options.onEvent(event, this.#view.state);
  }

  async run(): Promise<DispatchReport> {
    const { parts, options } = this;
    await tidyLogs(parts.workspace);
    await tidyRuns(parts.workspace);
    const slots = await takeSlots(parts, options.name, options.agents);
    const watch = this.#watchForStop();
    try {
      for (const slot of slots) this.#view.place(slot, "starting");
      this.tell(
        "started",
        slots.length === 1 ? "one worker begins" : `${slots.length} workers begin`,
        null,
        null,
      );
      const resumed = await this.#takeOver(slots);
      await Promise.all(slots.map((slot) => this.#keepAtWork(slot, resumed.get(slot.number) ?? null)));
      if (this.#crash !== null) throw this.#crash;
      return await this.#report();
    } finally {
      watch.close();
      for (const slot of slots) await giveBackSlot(parts, slot);
      await this.#view.close(this.#now());
    }
  }

  // --- workers ----------------------------------------------------------------------------------------------

  /** Whatever ends one worker leaves the others at work, unless it is a fault of ours. */
  async #keepAtWork(slot: Slot, resumed: ClaimedIssue | null): Promise<void> {
    try {
      await this.#work(slot, resumed);
    } catch (error) {
      if (error instanceof CotenantError) {
        if (this.options.signal.aborted) {
          // What an interrupt has cut off has not failed.
          this.tell("note", "stops: interrupted", slot.number, null, { code: "E_INTERRUPTED" });
          return;
        }
        this.#failure ??= error;
        this.tell("note", `stops: ${error.message}`, slot.number, null, {
          code: error.code,
          hint: error.hint,
        });
      } else {
        this.#crash ??= error;
        this.#halt.abort();
      }
    } finally {
      this.#view.place(slot, "ended");
      this.#wakeAll();
    }
  }

  async #work(slot: Slot, resumed: ClaimedIssue | null): Promise<void> {
    const say = (line: string) => this.tell("note", line, slot.number, null);
    let station = await this.#station(slot, say);
    if (resumed !== null) await this.#do(station, resumed, true);
    while (!this.#isOver) {
      if (!(await isStanding(this.parts.workspace.surroundings.platform, station)))
        station = await this.#station(slot, say);
      const epoch = this.#epoch;
      const issue = await this.#claim(station, say);
      if (issue !== null) await this.#do(station, issue, false);
      else if (!(await this.#hasMore(epoch))) return;
    }
  }

  async #station(slot: Slot, say: (line: string) => void): Promise<Station> {
    const base = await this.base();
    const station = await this.#exclusively(() =>
      stationFor(this.parts, slot, base, this.options.template, say),
    );
    const { root } = station;
    this.#view.place(slot, "idle", { worktree: root });
    this.tell("worker", `works in ${root}`, slot.number, null, { agent_id: slot.agentId, worktree: root });
    return station;
  }

  /** The next issue; null where there is none now. What is over in a moment is waited for, so many times. */
  async #claim(station: Station, say: (line: string) => void): Promise<ClaimedIssue | null> {
    for (let failures = 1; ; failures++) {
      try {
        return await this.#next(station, say);
      } catch (error) {
        if (!(error instanceof CotenantError)) throw error;
        const { code, message } = error;
        this.tell("claimed", `no issue could be claimed: ${message}`, station.slot.number, null, {
          ...{ success: false, reason: message, offline: false, degraded: false, error: code },
        });
        const isPassing = PASSING.includes(code) && failures < MOST_CLAIM_FAILURES;
        if (!isPassing && !(code === "E_PAUSED" && this.options.waits)) throw error;
        await this.#sleep(CLAIM_PAUSE_MS * Math.min(failures, MOST_CLAIM_FAILURES));
        if (this.#isOver) return null;
      }
    }
  }

  /** One worker after the other: each is to see what the one before it has taken. */
  #next(station: Station, say: (line: string) => void): Promise<ClaimedIssue | null> {
    return this.#exclusively(async () => {
      if (this.#isOver) return null;
      const issue = await claimNext(station, this.#wanted, say);
      if (issue === null) return null;
      this.#through.add(issue.row.id);
      this.#taken++;
      this.#working++;
      this.#view.left = (
        await availableAt(station, await issuesIn(station.workspace), this.#wanted)
      ).issues.length;
      return issue;
    });
  }

  async #do(station: Station, issue: ClaimedIssue, isResumed: boolean): Promise<void> {
    const { row, claim, outcome } = issue;
    const { slot, root, workspace } = station;
    if (isResumed) this.#working++;
    this.#through.add(row.id);
    try {
      if (outcome.offline) this.#view.offlineClaims++;
      const where = outcome.offline ? ", on this machine only: no other one knows of it yet" : "";
      this.#view.place(slot, "claimed", { worktree: root, since: this.#now() });
      const text = `${isResumed ? "goes on with" : "takes"} ${row.shortId} ${row.title}${where}`;
      this.tell("claimed", text, slot.number, row.id, {
        ...{ short_id: row.shortId, title: row.title, agent_id: slot.agentId, lease_id: claim.leaseId },
        ...{ fencing_token: claim.fencingToken, resumed: isResumed, ...outcome },
      });
      this.#tellOfNeeds(issue, slot.number);
      const record = (await workRecords(workspace.coordinator)).get(row.id) ?? null;
      this.#view.outcomes.push(await workOn(new Turn(this, station, issue, record)));
    } catch (error) {
      // Something is wrong with us: nobody is to wait for what this worker held.
      if (!(error instanceof CotenantError)) await letGoOfAll(station);
      throw error;
    } finally {
      this.#working--;
      this.#epoch++;
      this.#view.place(slot, "idle", { worktree: root });
      this.#wakeAll();
    }
  }

  /** What an issue needs is done, but on a branch: work that begins from the target begins without it. */
  #tellOfNeeds({ row }: ClaimedIssue, worker: number): void {
    if (this.lander !== null) return;
    for (const { issueId, shortId, end, branch } of this.#view.outcomes)
      if (end === "done" && row.dependencies.includes(issueId))
        this.tell(
          "note",
          `begins without ${shortId}, which it needs: that is on ${branch} only`,
          worker,
          row.id,
        );
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

  /** What this run takes, but for what it is through with. */
  get #wanted(): Wanted {
    const { filter, only } = this.options;
    return { filter, isExcluded: (id) => this.#through.has(id) || !(only?.includes(id) ?? true) };
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
   * Before anybody takes anything, the worktrees of all workers are looked at: branches of issues that nobody holds any more are
   * to be free, and nothing in them lost. Answers what our own workers hold still, by their number.
   */
  async #takeOver(slots: readonly Slot[]): Promise<ReadonlyMap<number, ClaimedIssue>> {
    const held = new Map<number, ClaimedIssue>();
    const abandoned = await abandonedSlots(this.parts, this.options.name, slots);
    try {
      const records = await workRecords(this.parts.workspace.coordinator);
      for (const slot of [...slots, ...abandoned]) {
        const station = await stationOf(this.parts, slot);
        if (station === null) continue;
        const claims = await claimsLeft(station);
        const [first, ...others] = abandoned.includes(slot) ? [undefined, ...claims] : claims;
        // A worker goes on with one; whoever is next takes the others.
        for (const other of others) await this.#giveUp(station, other!, records);
        if (first !== undefined) held.set(slot.number, first);
        else if ((await branchOf(station)) !== null || (await isDirty(station)))
          await clearWorktree(this, station);
      }
    } finally {
      for (const slot of abandoned) await giveBackSlot(this.parts, slot);
    }
    return held;
  }

  async #giveUp(
    station: Station,
    issue: ClaimedIssue,
    records: ReadonlyMap<Ulid, WorkRecord>,
  ): Promise<void> {
    const { id, shortId } = issue.row;
    this.tell("note", `gives back ${shortId}, which a run that was killed has left`, station.slot.number, id);
    await abandon(new Turn(this, station, issue, records.get(id) ?? null));
  }

  // --- the run ------------------------------------------------------------------------------------------------

  async #report(): Promise<DispatchReport> {
    const isOver = this.#isOver;
    const { workspace, session } = this.parts;
    const { outcomes, offlineClaims, costUsd } = this.#view;
    const { filter, only } = this.options;
    const isDone = (id: Ulid) => outcomes.some(({ issueId, end }) => issueId === id && end === "done");
    const isExcluded = (id: Ulid) => isDone(id) || !(only?.includes(id) ?? true);
    const { issues } = await availableAt({ workspace, session }, await issuesIn(workspace), {
      filter,
      isExcluded,
    });
    const left = issues.length;
    this.#view.left = left;
    this.tell("finished", "over", null, null, { ends: countEnds(outcomes), left });
    return {
      runId: this.runId,
      issues: outcomes,
      ...{ offlineClaims, costUsd, left },
      durationMs: Math.round(this.#clock.monotonicMs() - this.#startedMs),
      // What was asked for may be done, whatever ended it.
      endedBy: isOver && (left > 0 || this.#endedBy === "interrupt") ? this.#endedBy : null,
      stopped: this.#failure,
    };
  }

  /** `dispatch stop` leaves word in a file; and whoever sleeps is to hear of any end. */
  #watchForStop(): { close(): void } {
    const { workspace } = this.parts;
    const { signal, drained, onStop } = this.options;
    const closed = new AbortController();
    const wakeAll = () => this.#wakeAll();
    for (const one of [signal, drained]) one.addEventListener("abort", wakeAll, { signal: closed.signal });
    const look = async () => {
      while (!closed.signal.aborted) {
        const sleep = workspace.surroundings.platform.timers.sleep(STOP_LOOK_MS);
        closed.signal.addEventListener("abort", sleep.wake, { once: true });
        await sleep.done;
        closed.signal.removeEventListener("abort", sleep.wake);
        const how = closed.signal.aborted ? null : await stopAsked(workspace, this.runId).catch(() => null);
        if (how !== null) onStop(how);
      }
    };
    void look();
    return { close: () => closed.abort() };
  }

  async #exclusively<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(act, act);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #sleep(ms: number): Promise<void> {
    const sleep = this.parts.workspace.surroundings.platform.timers.sleep(ms);
    this.#sleepers.add(sleep.wake);
    await sleep.done;
    this.#sleepers.delete(sleep.wake);
  }

  #wakeAll(): void {
    for (const wake of this.#sleepers) wake();
  }

  get #clock() {
    return this.parts.workspace.surroundings.platform.clock;
  }

  #now(): string {
    return new Date(this.#clock.wallMs()).toISOString();
  }
}

async function letGoOfAll({ session }: Station): Promise<void> {
  try {
    const held = await session.mine();
    for (const { lease } of held)
      await session.release([{ key: lease.key, leaseId: lease.leaseId }]).catch(() => {});
  } catch {
    // It runs out by itself.
  }
}
