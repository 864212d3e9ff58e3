import { CotenantError } from "../../errors/cotenant-error";
import type { ObjectId } from "../../git/object-name";
import type { Ulid } from "../../kernel/ids";
import { printable } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";
import { pause } from "../publish/branch-pusher";
import { branchName } from "../publish/branch-rules";
import { settleIntents } from "../publish/settlement";
import { candidateOn } from "./candidate";
import { checked } from "./candidate-checks";
import { cleanUp } from "./clean-up";
import type { LandEntry } from "./entry";
import { park } from "./entry-records";
import { interrupted, type LandRun, naming, queuedIn } from "./land-run";
import { TargetLander } from "./landing";
import { landedOutcome, parkedOutcome, refusalRejection, rejectionOf, waitingOutcome } from "./outcomes";
import type { Base } from "./remote-tip";
import type { LandOutcome } from "./report";
import { refusalOf } from "./rules";
import { type Rejection, type Slot, Speculation, type Verdict } from "./speculation";
import { neverStill, shownBranch } from "./target";

interface RunningCheck {
  readonly entryId: Ulid;
  readonly commit: ObjectId;
  readonly controller: AbortController;
  readonly over: Promise<void>;
}

/** So often it is looked whether somebody has paused, or taken an entry out, while checks run. */
const LOOK_EVERY_MS = 1_000;

/** Builds, checks and lands what is in the queue until nothing is left that can land. */
export class LandLoop {
  readonly #lander: TargetLander;
  readonly #outcomes = new Map<Ulid, LandOutcome>();
  readonly #known = new Map<Ulid, LandEntry>();
  #checks: readonly RunningCheck[] = [];
  #failure: unknown = null;
  #wake: () => void = () => {};
  #misses = 0;
  #moves = 0;

  constructor(private readonly landRun: LandRun) {
    this.#lander = new TargetLander(landRun);
  }

  async run(): Promise<{ outcomes: readonly LandOutcome[]; stopped: CotenantError | null }> {
    let stopped: CotenantError | null = null;
    try {
      await this.#run();
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      stopped = error;
    } finally {
      await this.#end(this.#checks);
    }
    for (const entry of await queuedIn(this.landRun))
      if (!this.#outcomes.has(entry.entryId)) this.#outcomes.set(entry.entryId, waitingOutcome(entry));
    const outcomes = [...this.#outcomes.values()].sort((a, b) => (a.entryId < b.entryId ? -1 : 1));
    return { outcomes, stopped };
  }

  async #run(): Promise<void> {
    const base = await this.#lander.start((entry, commit, isRemoteOnly) =>
      this.#outcomes.set(
        entry.entryId,
        landedOutcome(entry, { commit, ref: this.landRun.target, isRemoteOnly }),
      ),
    );
    const train = new Speculation(base.tip, this.landRun.parallel);
    for (;;) {
      this.#refuseStopped();
      const queue = await this.#queue(train);
      const step = train.next(queue.map(({ entryId }) => entryId));
      if (step.do === "end") return this.#tellUnpushed();
      if (step.do === "wait") await this.#wait();
      else if (step.do === "build") await this.#build(train, this.#entry(step.entryId), step.onto);
      else await this.#settle(train, step.slot, step.do === "park" ? step.rejection : null);
    }
  }

  /** What waits now. Where somebody has taken an entry out that others stand on, those are built anew. */
  async #queue(train: Speculation): Promise<LandEntry[]> {
    const queue = await queuedIn(this.landRun);
    this.#known.clear();
    for (const entry of queue) this.#known.set(entry.entryId, entry);
    if (train.slots.some(({ entryId }) => !this.#known.has(entryId))) {
      train.restart(train.tip);
      await this.#drop(train);
    }
    return queue;
  }

  #entry(entryId: Ulid): LandEntry {
    return this.#known.get(entryId)!;
  }

  async #build(train: Speculation, entry: LandEntry, onto: ObjectId): Promise<void> {
    const { tools, parts } = this.landRun;
    const built = await naming(entry, () => candidateOn(tools, entry, onto));
    const add = (commit: ObjectId | null, verdict: Verdict) =>
      train.add({ entryId: entry.entryId, commit, verdict });
    const rejection = rejectionOf(entry, built, this.landRun);
    if (rejection !== null) return add(null, { kind: "rejected", rejection });
    if (built.kind !== "candidate") return add(null, { kind: "contained" });
    // Every Git that looks at it finds it; nothing refers to it yet.
    await tools.objects.reveal();
    const refusal = await naming(entry, () =>
      refusalOf(parts.workspace, tools.objects, entry, { onto, ...built }),
    );
    if (refusal !== null)
      return add(null, { kind: "rejected", rejection: refusalRejection(entry, refusal, this.landRun) });
    if (parts.workspace.config.values["land.checks"].length === 0)
      return add(built.commit, { kind: "passed" });
    add(built.commit, { kind: "pending" });
    this.#check(train, entry, { base: onto, commit: built.commit });
  }

  #check(
    train: Speculation,
    entry: LandEntry,
    at: { readonly base: ObjectId; readonly commit: ObjectId },
  ): void {
    const { parts, room, tell } = this.landRun;
    const controller = new AbortController();
    let isTold = false;
    const { workspace, commands } = parts;
    const { usualTarget } = this.landRun;
    const asked = {
      ...{ workspace, commands, room, usualTarget },
      signal: controller.signal,
      onStart: () => {
        if (!isTold)
          tell("checking", `checking ${shownBranch(entry.branch)} as ${at.commit.slice(0, 12)}`, entry);
        isTold = true;
      },
    };
    const over = naming(entry, () => checked(asked, entry, at))
      .then((verdict) => train.judge(entry.entryId, at.commit, verdict))
      .catch((error: unknown) => {
        if (!controller.signal.aborted) this.#failure ??= error;
      })
      .finally(() => {
        this.#checks = this.#checks.filter((one) => one.controller !== controller);
        this.#wake();
      });
    this.#checks = [...this.#checks, { entryId: entry.entryId, commit: at.commit, controller, over }];
  }

  /** The first one has its verdict. */
  async #settle(train: Speculation, slot: Slot, rejection: Rejection | null): Promise<void> {
    const { yard, tell, parts, target, clean } = this.landRun;
    const entry = this.#entry(slot.entryId);
    if (rejection !== null) {
      const at = new Date(parts.workspace.surroundings.platform.clock.wallMs()).toISOString();
      if (await park(yard.session, entry, rejection, at)) {
        this.#outcomes.set(entry.entryId, parkedOutcome(entry, rejection));
        tell("parked", `put aside ${shownBranch(entry.branch)}: ${rejection.message}`, entry);
      }
      if (slot.commit !== null && train.slots.length > 1)
        tell("rebuilding", `building ${train.slots.length - 1} behind it anew`, entry);
      train.left();
      return this.#drop(train);
    }
    const landed =
      slot.commit === null
        ? await this.#lander.contained(entry)
        : await this.#lander.land(entry, slot.commit, train.tip);
    if (landed === "again") return this.#again(train);
    this.#misses = 0;
    this.#moves = 0;
    if (slot.commit === null) train.left();
    else train.landed();
    if (landed === "left") return;
    const cleaned = clean ? await cleanUp(this.landRun, entry) : [];
    this.#outcomes.set(entry.entryId, landedOutcome(entry, { ...landed, ref: target }, cleaned));
    const as = landed.commit === null ? "nothing to land" : `as ${landed.commit.slice(0, 12)}`;
    const only = landed.isRemoteOnly ? `, on ${this.landRun.remote} only` : "";
    tell("landed", `landed ${shownBranch(entry.branch)} ${as}${only}`, entry);
  }

  /** The target has moved under our hands: everything is built anew on where it is now. */
  async #again(train: Speculation): Promise<void> {
    const { parts, yard, mover, target, tell } = this.landRun;
    const most = parts.workspace.config.values["publish.retries"];
    if (++this.#misses > most)
      throw await neverStill(parts.workspace, target, { tries: this.#misses, moves: this.#moves });
    await settleIntents(parts.workspace, yard.session, mover.committer.left, true);
    await pause(parts.workspace, this.#misses - 1);
    const base: Base = await this.#lander.base();
    // Another Git only had its lock: what was built and checked still stands on it.
    if (base.tip === train.tip) return;
    this.#moves++;
    tell("rebuilding", `${shownBranch(target)} has moved: building on ${base.tip.slice(0, 12)}`);
    train.restart(base.tip);
    await this.#drop(train);
  }

  /** What has landed here without a push goes with the next one; where nothing else lands, nobody would know. */
  #tellUnpushed(): void {
    const { remote, target, tell } = this.landRun;
    if (remote === null || !this.#lander.isAhead) return;
    const push = `git push ${shellWord(remote)} ${shellWord(branchName(target))}`;
    const name = shownBranch(target);
    tell(
      "note",
      `${name} here has landings that ${printable(remote, 100)} lacks: they go with the next one, or by: ${push}`,
    );
  }

  /** Ends checks of what is not wanted any more. */
  async #drop({ slots }: Speculation): Promise<void> {
    const isWanted = ({ entryId, commit }: RunningCheck) =>
      slots.some((slot) => slot.entryId === entryId && slot.commit === commit);
    await this.#end(this.#checks.filter((one) => !isWanted(one)));
  }

  async #end(checks: readonly RunningCheck[]): Promise<void> {
    for (const { controller } of checks) controller.abort();
    await Promise.all(checks.map(({ over }) => over));
  }

  async #wait(): Promise<void> {
    const { signal, parts } = this.landRun;
    const sleep = parts.workspace.surroundings.platform.timers.sleep(LOOK_EVERY_MS);
    const wake = () => sleep.wake();
    this.#wake = wake;
    signal.addEventListener("abort", wake, { once: true });
    await sleep.done;
    signal.removeEventListener("abort", wake);
    await this.#lander.refusePaused();
  }

  #refuseStopped(): void {
    const { signal, lead, target } = this.landRun;
    if (this.#failure !== null) throw this.#failure;
    if (lead.lost !== null) throw lead.lost;
    if (signal.aborted) throw interrupted(target);
  }
}
