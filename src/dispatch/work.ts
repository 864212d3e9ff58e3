import { CotenantError } from "../errors/cotenant-error";
import { makeCaches } from "../exec/making";
import { printable, type Ulid } from "../kernel/ids";
import type { LandOutcome } from "../land/operations";
import { tipOf } from "../publish/base";
import { branchName } from "../publish/branch-rules";
import { branchForIssue } from "../worktrees/naming";
import { type AttemptEnd, runAgent } from "./attempt";
import { ClaimKeeper, type ClaimState } from "./attending";
import {
  branchOf,
  checkOutBranch,
  clearIndexLock,
  commitAll,
  commitData,
  commitsSince,
  detachAt,
  headOf,
  isDirty,
  leftUnderWay,
} from "./branches";
import type { ClaimedIssue } from "./claiming";
import type { Crew } from "./crew";
import { landData } from "./data-landing";
import { openRequest, pushBranch } from "./forge";
import { AttemptLog, writePrompt } from "./logs";
import { promptFor } from "./prompt";
import { note, type WorkRecord } from "./record";
import type { EventKind, IssueEnd, IssueOutcome } from "./report";
import type { Station } from "./slots";
import { keepSnapshot } from "./snapshotting";
import { commentOn, finishIssue, putBackIssue, runGates, standingOf, syncThere, taskOf } from "./writing";

/** Why an attempt came to nothing, and what was printed. */
interface Failure {
  readonly why: string;
  readonly output: string;
  /** Not the agent's fault: its work stays as it is, and the next run goes on with it. */
  readonly isAside?: boolean;
  readonly hint?: string;
}

/** What ends an issue's work. */
interface Ending {
  readonly end: IssueEnd;
  readonly why?: string | null;
  readonly hint?: string | null;
}

/** One worker's work on one issue, from the claim to its end. Nothing of it is done twice, also after a kill. */
export class IssueWork {
  readonly #crew: Crew;
  readonly #station: Station;
  readonly #issue: ClaimedIssue;
  readonly #stop = new AbortController();
  readonly #keeper: ClaimKeeper;
  readonly #startedMs: number;
  #record: WorkRecord | null;
  #claim: ClaimState = { kind: "held" };
  #branch: string | null = null;
  #base = "";
  #attempts = 0;
  #landed: string | null = null;
  #pullRequest: string | null = null;
  #snapshotId: string | null = null;
  #log: string | null = null;
  #costUsd: number | null = null;

  constructor(crew: Crew, station: Station, issue: ClaimedIssue, record: WorkRecord | null) {
    this.#crew = crew;
    this.#station = station;
    this.#issue = issue;
    this.#record = record;
    this.#startedMs = this.#clock.monotonicMs();
    this.#keeper = new ClaimKeeper(station, issue.claim, (state) => {
      this.#claim = state;
      if (state.kind === "lost") this.#stop.abort();
    });
  }

  async run(): Promise<IssueOutcome> {
    const { signal } = this.#crew.options;
    const stop = () => this.#stop.abort();
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    this.#keeper.start();
    try {
      const ending = await this.#guarded(() => this.#toTheEnd());
      return await this.#over(ending);
    } finally {
      await this.#keeper.stop();
      signal.removeEventListener("abort", stop);
    }
  }

  /** Gives back what a killed run has left, with its work on its branch. */
  async abandon(): Promise<void> {
    const branch = this.#record?.branch ?? null;
    if (branch !== null && (await branchOf(this.#station)) === branch) this.#branch = branch;
    try {
      await clearIndexLock(this.#station);
      const isDelivered = await this.#hasLandedBefore();
      if (isDelivered) [this.#branch, this.#landed] = [branch, this.#record!.landed];
      await this.#over(isDelivered ? await this.#finish() : await this.#interrupted());
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      this.#note(`${this.#issue.row.shortId} is left as it is: ${error.message}`);
    }
  }

  /** Leaves a worker's worktree to whoever comes next, on no branch; what was not committed there is kept. */
  static async clear(crew: Crew, station: Station): Promise<void> {
    try {
      await clearIndexLock(station);
      if (await isDirty(station)) {
        const { snapshotId, failure } = await keepSnapshot(crew.parts, station);
        if (failure !== null) throw failure;
        const text = `kept what was left in its worktree as snapshot ${snapshotId}`;
        crew.tell("note", text, station.slot.number, null, { snapshot_id: snapshotId });
      }
      await detachAt(station, await headOf(station));
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      crew.tell("note", `its worktree is left as it is: ${error.message}`, station.slot.number, null);
    }
  }

  /** What goes wrong around the work, rather than in it, ends this issue's turn and not the whole run. */
  async #guarded(act: () => Promise<Ending>): Promise<Ending> {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      const stopped = await this.#stopped();
      if (stopped !== null) return stopped;
      // What is deleted cannot be read any more.
      if ((await standingOf(this.#station.workspace, this.#issue.row.id)).isDeleted) return this.#deleted();
      return this.#giveBack({ why: error.message, output: "", hint: error.hint, isAside: true });
    }
  }

  async #toTheEnd(): Promise<Ending> {
    this.#base = await this.#crew.base();
    await this.#checkOut();
    for (;;) {
      const failure = await this.#once();
      if (failure === null) return this.#finish();
      const stopped = await this.#stopped();
      if (stopped !== null) return stopped;
      if ("end" in failure) return failure;
      if (failure.isAside === true) return this.#giveBack(failure);
      const failures = (this.#record?.failures ?? 0) + 1;
      await this.#remember(
        "dispatch.failed",
        { stage: "working", failures },
        { why: failure.why.slice(0, 500) },
      );
      this.#tell("attempt_failed", `attempt ${failures} failed: ${failure.why}`, {
        attempt: failures,
        why: failure.why,
      });
      if (failures > this.#crew.options.retries || this.#isTooDear) return this.#giveBack(failure);
      this.#earlier = failure;
      await this.#pause(this.#crew.options.backoffMs * 2 ** (failures - 1));
      const ended = await this.#stopped();
      if (ended !== null) return ended;
    }
  }

  #earlier: Failure | null = null;

  /** Everything up to where the work has left this worktree; null where it has. */
  async #once(): Promise<Failure | Ending | null> {
    const { stage } = this.#record!;
    if (stage === "delivered") {
      this.#landed = this.#record!.landed;
      return null;
    }
    if (stage === "working") {
      const end = await this.#attempt();
      if (end.how === "lost" || end.how === "interrupted") return { why: end.why ?? "", output: end.output };
      const said = end.words ?? end.output;
      if (end.how !== "finished") return { why: end.why ?? "it failed", output: said };
      await this.#remember("dispatch.worked", { stage: "worked" });
    }
    return this.#deliver();
  }

  // --- the agent --------------------------------------------------------------------------------------------

  async #checkOut(): Promise<void> {
    const station = this.#station;
    const { row } = this.#issue;
    const before = this.#record?.branch ?? null;
    await clearIndexLock(station);
    if (await this.#hasLandedBefore()) {
      this.#branch = before;
      return;
    }
    const stage = this.#record?.stage ?? null;
    if (before !== null && (await branchOf(station)) === before) {
      // Where a killed run of this very worker was at it: what it has left uncommitted is the agent's.
      this.#branch = before;
    } else {
      await this.#putAside("left in a worker's worktree");
      await detachAt(station, this.#base);
      const wanted = before ?? branchForIssue(row.shortId, row.title);
      this.#branch = await checkOutBranch(station, wanted, this.#base, { keeps: stage === "worked" });
    }
    if (this.#record?.branch === this.#branch) return;
    const startedAt = new Date(this.#clock.wallMs()).toISOString();
    const { runId } = this.#crew;
    const fresh = { stage: "working", failures: 0, landed: null, startedAt } as const;
    const ids = { issueId: row.id, runId, agentId: station.slot.agentId, branch: this.#branch };
    this.#record = { ...fresh, ...ids };
    await this.#remember("dispatch.started", {}, { branch: this.#branch, worker: station.slot.number });
  }

  /** Whether a killed run has landed it already, or had only to wait for it; then all that is missing is the end. */
  async #hasLandedBefore(): Promise<boolean> {
    const { lander } = this.#crew;
    if (this.#record === null || lander === null) return false;
    const { stage, branch, startedAt } = this.#record;
    if (stage === "delivered") return this.#record.landed !== null;
    const before =
      stage === "worked" ? await lander.landedSince(branch, this.#issue.row.id, startedAt) : null;
    if (before === null) return false;
    await this.#remember("dispatch.delivered", {
      stage: "delivered",
      landed: before.commit ?? (await this.#targetTip()),
    });
    return true;
  }

  async #attempt(): Promise<AttemptEnd> {
    const { parts, options } = this.#crew;
    const station = this.#station;
    const { id } = this.#issue.row;
    const attempt = this.#record!.failures + 1;
    this.#attempts++;
    const ports = await this.#crew.ports(station.slot.number);
    const task = await taskOf(station.workspace, id);
    const prompt = promptFor({
      ...task,
      ...{ branch: this.#branch!, target: this.#crew.targetName, worktree: station.root, attempt, ports },
      ...{ earlier: this.#earlier, commits: options.commits },
    });
    const log = await AttemptLog.open(station.workspace, id);
    this.#log = log.path;
    log.line(`attempt ${attempt} at ${task.issue.shortId} on ${this.#branch}, in ${station.root}`);
    this.#tell("working", `works on it, attempt ${attempt}`, {
      attempt,
      log: log.path,
      branch: this.#branch,
    });
    try {
      const briefing = {
        ...{ branch: this.#branch!, base: this.#base, attempt, ports },
        promptFile: await writePrompt(station.workspace, id, prompt),
        caches: options.ownCaches ? await this.#caches() : {},
      };
      const end = await runAgent(parts, options, station, this.#issue, briefing, log, {
        stop: this.#stop.signal,
        claim: () => this.#claim,
        onStall: (silentMs) => this.#stalled(silentMs),
      });
      log.line(end.why === null ? "the command ended with status 0" : end.why);
      this.#count(end.costUsd);
      return end;
    } finally {
      await log.close();
    }
  }

  async #caches(): Promise<Readonly<Record<string, string>>> {
    const { slot, workspace, root } = this.#station;
    const { platform, env } = workspace.surroundings;
    return (await makeCaches(platform, root, slot.agentId, env)).variables;
  }

  #stalled(silentMs: number | null): void {
    const text =
      silentMs === null
        ? "is heard of again"
        : `has printed nothing and asked for nothing for ${Math.round(silentMs / 1000)} s`;
    this.#tell("stalled", text, { silent_secs: silentMs === null ? null : Math.round(silentMs / 1000) });
  }

  #count(costUsd: number | null): void {
    if (costUsd === null) return;
    this.#costUsd = (this.#costUsd ?? 0) + costUsd;
    this.#crew.count(costUsd);
  }

  get #isTooDear(): boolean {
    const { costPerIssue } = this.#crew.options;
    return (costPerIssue !== null && (this.#costUsd ?? 0) >= costPerIssue) || this.#crew.isTooDear;
  }

  // --- what becomes of its work -----------------------------------------------------------------------------

  async #deliver(): Promise<Failure | Ending | null> {
    const { parts, options } = this.#crew;
    const station = this.#station;
    const { id } = this.#issue.row;
    const { isOver, isDeleted } = await standingOf(station.workspace, id);
    if (isDeleted) return this.#deleted();
    if (this.#claim.kind === "released" && !isOver)
      return { why: "the agent has given its claim back", output: "" };
    let pending: readonly string[] = [];
    if (!isOver) {
      const onStart = (gate: string) => this.#tell("gate", `gate ${gate} runs`, { gate });
      const gates = await runGates(station, parts.commands, id, { onStart, signal: this.#stop.signal });
      if (gates.failed !== null)
        return { why: `gate ${gates.failed.gate.key} did not pass`, output: gates.failed.run.output };
      pending = gates.pending;
    }
    const unsynced = await syncThere(station);
    if (unsynced !== null) this.#note(`the ledger was not synced: ${unsynced}`);
    if ((await standingOf(station.workspace, id)).isDeleted) return this.#deleted();
    const refused = await this.#commit();
    if (refused !== null) return refused;
    if (pending.length > 0) return this.#gated(pending);
    const failure = await this.#handOver(options.delivery);
    if (failure !== null) return failure;
    const landed = this.#landed === null ? {} : { landed: this.#landed };
    await this.#remember("dispatch.delivered", { stage: "delivered", landed: this.#landed }, landed);
    return null;
  }

  /** What the agent has left uncommitted; null where all is well. */
  async #commit(): Promise<Failure | null> {
    const station = this.#station;
    const { options } = this.#crew;
    const head = await branchOf(station);
    if (head !== this.#branch) {
      const where = head === null ? "no branch" : `branch ${printable(head, 200)}`;
      return {
        why: `the agent left ${where} checked out instead of ${printable(this.#branch!, 200)}`,
        output: "",
      };
    }
    const underWay = await leftUnderWay(station);
    if (underWay !== null) return { why: `the agent left ${underWay} in the middle`, output: "" };
    if (options.commits) {
      try {
        const commit = await commitAll(station, this.#message);
        if (commit !== null)
          this.#tell("committed", `committed what was left: ${commit.slice(0, 12)}`, { commit });
      } catch (error) {
        if (!(error instanceof CotenantError) || error.code === "E_GIT") throw error;
        return { why: error.message, output: "" };
      }
    } else await this.#putAside("left uncommitted");
    if (options.allowsEmpty || (await commitsSince(station, this.#base)) > 0) return null;
    return { why: "the agent changed nothing", output: "" };
  }

  get #message(): string {
    const { title, shortId } = this.#issue.row;
    return `${printable(title, 200)}\n\nIssue ${shortId}.`;
  }

  async #handOver(delivery: "branch" | "land" | "pr"): Promise<Failure | null> {
    const station = this.#station;
    const branch = this.#branch!;
    if (delivery === "branch") {
      this.#tell("delivered", `its work is on branch ${branch}`, { branch });
      return null;
    }
    if (delivery === "pr") {
      const { options, parts } = this.#crew;
      await pushBranch(parts, station, branch, options.push ?? null);
      const { title, shortId, id } = this.#issue.row;
      this.#pullRequest = await openRequest(parts, this.#crew.forge!, station, {
        ...{ head: branch, base: this.#crew.targetName, title: printable(title, 200) },
        body: `Issue ${shortId} (${id}).`,
      });
      this.#tell("delivered", `a pull request is open: ${this.#pullRequest}`, { url: this.#pullRequest });
      return null;
    }
    // Nobody's checkout is in the way when the branch is deleted after it.
    const commit = await headOf(station);
    await detachAt(station, commit);
    this.#tell("landing", `${branch} waits to land on ${this.#crew.targetName}`, { branch });
    const outcome = await this.#land(branch, commit);
    if (outcome.outcome === "landed") {
      this.#landed = outcome.commit ?? (await this.#targetTip());
      const text = `landed on ${this.#crew.targetName} as ${this.#landed.slice(0, 12)}`;
      this.#tell("delivered", text, { branch, commit: this.#landed });
      return null;
    }
    await checkOutBranch(station, branch, this.#base);
    const paths = outcome.paths.length === 0 ? "" : ` (${outcome.paths.slice(0, 10).join(", ")})`;
    const why = `it did not land on ${this.#crew.targetName}: ${outcome.message ?? outcome.why ?? ""}${paths}`;
    const output =
      outcome.output || `Merge ${this.#crew.targetName} into ${branch}, and resolve what conflicts.`;
    return { why, output };
  }

  /** What a killed run has landed already is not landed again. */
  async #land(
    branch: string,
    commit: string,
  ): Promise<LandOutcome | Pick<LandOutcome, "outcome" | "commit" | "paths" | "message" | "why" | "output">> {
    const entry = await this.#crew.lander!.added(branch, commit);
    if (entry?.state === "landed")
      return {
        outcome: "landed",
        commit: entry.landed?.commit ?? null,
        paths: [],
        message: null,
        why: null,
        output: "",
      };
    return this.#crew.lander!.land(branch, { issueId: this.#issue.row.id });
  }

  async #targetTip(): Promise<string> {
    return (await tipOf(this.#crew.parts.workspace, this.#crew.target)) ?? this.#base;
  }

  // --- ends -------------------------------------------------------------------------------------------------

  /** It is where it belongs: the issue is done, which goes the same way as the work. */
  async #finish(): Promise<Ending> {
    const { delivery } = this.#crew.options;
    const station = this.#station;
    const { row } = this.#issue;
    const where =
      this.#landed === null ? `on branch ${this.#branch}` : `landed as ${this.#landed.slice(0, 12)}`;
    const resolution = this.#pullRequest === null ? where : `pull request ${this.#pullRequest}`;
    if (delivery === "land") {
      await this.#landData(
        `Close ${row.shortId}: ${printable(row.title, 150)}`,
        `done-${row.shortId}`,
        async () => {
          if (this.#claim.kind !== "released") await finishIssue(station, row.id, resolution);
        },
      );
    } else {
      if (this.#claim.kind !== "released") await finishIssue(station, row.id, resolution);
      await this.#commitData(`Close ${row.shortId}: ${printable(row.title, 150)}`);
      if (delivery === "pr")
        await pushBranch(this.#crew.parts, station, this.#branch!, this.#crew.options.push ?? null);
    }
    await this.#letGo();
    return { end: "done" };
  }

  /** Somebody has to say so of a gate: the work waits on its branch, and nobody holds the issue. */
  async #gated(pending: readonly string[]): Promise<Ending> {
    const { row } = this.#issue;
    await finishIssue(this.#station, row.id, `on branch ${this.#branch}`);
    await this.#commitData(`${row.shortId} waits for its gates: ${printable(row.title, 150)}`);
    await this.#letGo();
    const names = pending.map((gate) => printable(gate, 80)).join(", ");
    const next = this.#crew.options.delivery === "land" ? `, then cotenant land add ${this.#branch}` : "";
    return {
      end: "gated",
      why: `${names} still has to be passed`,
      hint: `look at branch ${this.#branch}; then cotenant gate pass ${row.shortId} ${printable(pending[0]!, 80)}${next}`,
    };
  }

  async #giveBack(failure: Failure): Promise<Ending> {
    const { parts, options } = this.#crew;
    const station = this.#station;
    const { row } = this.#issue;
    await this.#keepWork();
    const text = commentFor(failure, { branch: this.#branch, log: this.#log, attempts: this.#attempts });
    const write = async () => {
      if (failure.isAside !== true) await commentOn(station.workspace, row.id, station.slot.agentId, text);
      const unwritten = this.#claim.kind === "held" ? await putBackIssue(station, row.id) : null;
      if (unwritten !== null) this.#note(unwritten);
    };
    if (options.delivery === "land" && failure.isAside !== true) {
      await this.#landData(
        `Give back ${row.shortId}: ${printable(row.title, 150)}`,
        `note-${row.shortId}`,
        write,
      );
    } else if (failure.isAside !== true) {
      // Where people look first; its branch may never be merged.
      await commentOn(parts.workspace, row.id, station.slot.agentId, text);
      const unwritten = this.#claim.kind === "held" ? await putBackIssue(station, row.id) : null;
      if (unwritten !== null) this.#note(unwritten);
    }
    await this.#letGo();
    return { end: "given_back", why: failure.why, hint: failure.hint ?? null };
  }

  /** Somebody else has it now, or nobody; what was done here is kept, and not committed: there is no claim to do so under. */
  async #lost(why: string): Promise<Ending> {
    await this.#putAside("its claim was lost");
    const hint =
      this.#snapshotId === null ? null : `what it had not committed: cotenant restore ${this.#snapshotId}`;
    return { end: "lost", why: `the claim was lost: ${why}`, hint };
  }

  async #deleted(): Promise<Ending> {
    await this.#putAside("its issue was deleted", true);
    await this.#letGo();
    const hint = this.#snapshotId === null ? null : `its work: cotenant restore ${this.#snapshotId}`;
    return { end: "deleted", why: "the issue was deleted meanwhile", hint };
  }

  async #interrupted(): Promise<Ending> {
    await this.#keepWork();
    const unwritten = await putBackIssue(this.#station, this.#issue.row.id);
    if (unwritten !== null) this.#note(unwritten);
    await this.#letGo();
    return { end: "interrupted", why: "interrupted", hint: "run the same command again: it goes on" };
  }

  /** What has stopped the work from outside; null where nothing has. */
  async #stopped(): Promise<Ending | null> {
    if (this.#claim.kind === "lost") return this.#lost(this.#claim.why);
    return this.#crew.options.signal.aborted ? this.#interrupted() : null;
  }

  /** Tells of the end, and leaves the worktree to the next issue. */
  async #over(ending: Ending): Promise<IssueOutcome> {
    await this.#keeper.stop();
    const { row } = this.#issue;
    const { end, why = null, hint = null } = ending;
    // An interrupted one goes on where it was; so does one whose work only lacks its way out.
    const isOver = end !== "interrupted" && !(end === "given_back" && this.#record?.stage !== "working");
    const payload = {
      end,
      worker: this.#station.slot.number,
      ...(why === null ? {} : { why: why.slice(0, 500) }),
    };
    await note(this.#station.session, row.id, "dispatch.ended", isOver ? null : this.#record, payload);
    await this.#neutral();
    const outcome: IssueOutcome = {
      ...{ issueId: row.id, shortId: row.shortId, title: row.title, end, why, hint },
      ...{ worker: this.#station.slot.number, attempts: this.#attempts, branch: this.#branch },
      ...{ landed: this.#landed, pullRequest: this.#pullRequest, snapshotId: this.#snapshotId },
      ...{ log: this.#log, costUsd: this.#costUsd },
      durationMs: Math.round(this.#clock.monotonicMs() - this.#startedMs),
    };
    this.#tell("ended", why === null ? end : `${end}: ${why}`, {
      end,
      why,
      hint,
      snapshot_id: this.#snapshotId,
    });
    return outcome;
  }

  async #neutral(): Promise<void> {
    if ((await branchOf(this.#station)) !== null || (await isDirty(this.#station)))
      await IssueWork.clear(this.#crew, this.#station);
  }

  /** On its branch, for whoever goes on; what may not be committed, as a snapshot. */
  async #keepWork(): Promise<void> {
    const station = this.#station;
    if (!(await isDirty(station))) return;
    const canCommit =
      this.#crew.options.commits &&
      this.#claim.kind === "held" &&
      (await branchOf(station)) === this.#branch &&
      (await leftUnderWay(station)) === null;
    if (canCommit) {
      try {
        await commitAll(station, `Work in progress: ${this.#message}`);
        return;
      } catch (error) {
        if (!(error instanceof CotenantError)) throw error;
      }
    }
    await this.#putAside("not committed");
  }

  /** A snapshot of what is not committed, where anything is. */
  async #putAside(why: string, always = false): Promise<void> {
    if (!always && !(await isDirty(this.#station))) return;
    const { snapshotId, failure } = await keepSnapshot(this.#crew.parts, this.#station);
    if (failure !== null) throw failure;
    this.#snapshotId = snapshotId;
    this.#note(`kept what was ${why} as snapshot ${snapshotId}`);
  }

  /** What was written of the issue itself, on its branch. */
  async #commitData(message: string): Promise<void> {
    try {
      await commitData(this.#station, message);
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      this.#note(`what was written of the issue is not committed: ${error.message}`);
    }
  }

  /** The same on top of the target, where it lands at once: only what is merged is seen by everybody. */
  async #landData(message: string, name: string, write: () => Promise<void>): Promise<void> {
    const branch = `cotenant/${name}`;
    const { target } = this.#crew;
    const resumes = this.#record?.stage === "delivered";
    try {
      const why = await landData({
        ...{ station: this.#station, lander: this.#crew.lander!, issueId: this.#issue.row.id },
        ...{ target, message, branch, resumes, write },
      });
      if (why !== null) this.#note(`what was written of the issue is on ${branch} only: ${why}`);
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      this.#note(`what was written of the issue has not landed: ${error.message}`);
    }
  }

  /** The claim and the files, given back; what other machines have to know of it, told to them. */
  async #letGo(): Promise<void> {
    const station = this.#station;
    await this.#keeper.stop();
    const unsynced = await syncThere(station);
    if (unsynced !== null) this.#note(`the ledger was not synced: ${unsynced}`);
    const { claim, files } = this.#issue;
    const leases = this.#claim.kind === "held" ? [claim, ...files] : files;
    for (const { key, leaseId } of leases) {
      try {
        await station.session.release([{ key, leaseId }], { reason: "dispatch" });
      } catch (error) {
        if (!(error instanceof CotenantError)) throw error;
        // It runs out by itself.
        if (key === claim.key) this.#note(`its claim could not be given back: ${error.message}`);
      }
    }
  }

  // --- small things -----------------------------------------------------------------------------------------

  get #clock() {
    return this.#crew.parts.workspace.surroundings.platform.clock;
  }

  async #remember(
    type: Parameters<typeof note>[2],
    change: Partial<WorkRecord>,
    payload: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    this.#record = { ...this.#record!, ...change };
    const { issueId } = this.#record;
    await note(this.#station.session, issueId, type, this.#record, {
      branch: this.#record.branch,
      ...payload,
    });
  }

  /** Between two attempts, unless somebody stops it. */
  async #pause(ms: number): Promise<void> {
    if (this.#stop.signal.aborted || ms <= 0) return;
    const sleep = this.#crew.parts.workspace.surroundings.platform.timers.sleep(ms);
    this.#stop.signal.addEventListener("abort", sleep.wake, { once: true });
    await sleep.done;
    this.#stop.signal.removeEventListener("abort", sleep.wake);
  }

  #note(text: string): void {
    this.#tell("note", text);
  }

  #tell(kind: EventKind, text: string, data: Readonly<Record<string, unknown>> = {}): void {
    const { shortId, id, title } = this.#issue.row;
    this.#crew.tell(kind, text, this.#station.slot.number, id as Ulid, { short_id: shortId, title, ...data });
  }
}

const MOST_OUTPUT = 4_000;

function commentFor(
  { why, output }: Failure,
  about: { readonly branch: string | null; readonly log: string | null; readonly attempts: number },
): string {
  const tries = about.attempts === 1 ? "One attempt" : `${about.attempts} attempts`;
  const where =
    about.branch === null ? "" : ` What was done is on branch ${branchName(`refs/heads/${about.branch}`)}.`;
  const log = about.log === null ? "" : ` The log: ${about.log}.`;
  const end =
    output.trim() === "" ? "" : `\n\nThe end of what was printed:\n\n${output.trim().slice(-MOST_OUTPUT)}`;
  return `${tries} of a dispatch worker failed: ${why}.${where}${log}${end}`;
}
