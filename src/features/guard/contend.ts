import type { LeaseStatus } from "../../coordinator/contract";
import type { Acquired } from "../../coordinator/session";
import { CotenantError } from "../../errors/cotenant-error";
import { type AgentId, trusted, UNKNOWN_AGENT } from "../../kernel/ids";
import { instantOf } from "../../kernel/time";
import { ALLOWED, canTell, saying } from "./answers";
import { acquire, type Checking, giveBack, granted, isConflict, type Outcome } from "./check";
import {
  type Contention,
  contentionFromFact,
  contentionName,
  dueAt,
  isoOf,
  nextStep,
  type Owner,
} from "./contention";
import { giveWay, holdersSince, type InTheWay, obstacles, reachOf } from "./holders";
import { writeRefusal } from "./pass-writer";
import { recordBlocked, recordDenied, recordResolved } from "./records";
import { changedMeanwhile, deniedFirst, hardStop, hasWaited, tooEarly, type Words, waitsFor } from "./words";
import type { GuardedWorktree } from "./worktree";
import type { World } from "./world";
import type { WriteTarget } from "./write-target";

const ATTEMPTS = 5;
const LOOK_EVERY_MS = 1_000;

/** The whole of the contention contract, for a check that could not simply be granted (docs/AGENTS.md). */
export function contend(
  checking: Checking,
  worktree: GuardedWorktree,
  targets: readonly WriteTarget[],
): Promise<Outcome> {
  return new Attempt(checking, worktree, targets).run();
}

/** One agent's attempt to have its targets, for as long as its hook waits. */
class Attempt {
  readonly #checking: Checking;
  readonly #worktree: GuardedWorktree;
  readonly #targets: readonly WriteTarget[];
  #waitedMs = 0;

  constructor(checking: Checking, worktree: GuardedWorktree, targets: readonly WriteTarget[]) {
    this.#checking = checking;
    this.#worktree = worktree;
    this.#targets = targets;
  }

  async run(): Promise<Outcome> {
    for (;;) {
      if (this.#checking.report.harness === "cursor") {
        const { settleRelatives } = await import("./cursor-family");
        await settleRelatives(this.#worktree, this.#targets);
      }
      const open = await this.#openContentions();
      const outcome = (await this.#stopOrWait(open)) ?? (await this.#try(open));
      if (outcome !== "again") return this.#explained(outcome, open);
    }
  }

  get #now() {
    return this.#worktree.coordinator.store.now();
  }

  /** What an earlier denial asks for, as things stand now; null where it is time to try. */
  async #stopOrWait(open: readonly Contention[]): Promise<Outcome | "again" | null> {
    if (open.length === 0) return null;
    // A subagent that has finished blocks nobody any more.
    await giveWay(this.#worktree, this.#targets);
    const seen = await obstacles(this.#worktree, this.#targets);
    const now = this.#now;
    // The holder may have changed since the first denial.
    const current = open.map((one) => ({ ...one, owner: seen.get(one.key) ?? one.owner }));
    if (this.#worktree.settings.policy.escalateAfterSecs > 0) {
      const { noteEscalated } = await import("./escalation");
      await noteEscalated(
        this.#worktree,
        current.filter(({ key }) => seen.has(key)),
      );
    }
    const asking = (step: "report" | "wait") =>
      current.filter((one) => nextStep(one, now, !seen.has(one.key)) === step);
    const blocked = asking("report");
    if (blocked.length > 0) return refused(hardStop(await recordBlocked(this.#worktree, blocked, seen), now));
    const waiting = asking("wait");
    return waiting.length === 0 ? null : this.#waitFor(waiting, (last) => tooEarly(last, now));
  }

  /** "again" where it was denied for the first time, and there is time to wait. */
  async #try(open: readonly Contention[]): Promise<Outcome | "again"> {
    const attempt = await this.#takeAll();
    if ("grant" in attempt) return this.#settled(attempt.grant, open);
    const { inTheWay } = attempt;
    const now = this.#now;
    const retried = open.filter(({ key, state }) => inTheWay.has(key) && state !== "freed");
    if (retried.length > 0)
      return refused(hardStop(await recordBlocked(this.#worktree, retried, inTheWay), now));
    const denied = await recordDenied(this.#worktree, await this.#denials(inTheWay));
    return this.#waitFor(denied, () => deniedFirst(denied));
  }

  /** After a wait, the agent is told what it was for. */
  #explained(outcome: Outcome, waited: readonly Contention[]): Outcome {
    const { verdict, grant } = outcome;
    const isTold = this.#waitedMs > 0 && waited.length > 0 && canTell(this.#checking.report);
    if (!verdict.isAllowed || !isTold) return outcome;
    return { grant, verdict: saying(hasWaited(waited, this.#waitedMs, grant !== null), verdict) };
  }

  /** Leases the targets to be taken, and checks the others. */
  async #takeAll(): Promise<{ readonly grant: Acquired | null } | { readonly inTheWay: InTheWay }> {
    const worktree = this.#worktree;
    let why: unknown = null;
    for (let i = 0; i < ATTEMPTS; i++) {
      // A finished subagent, or a twin that another settings file called, does not count as a holder.
      const rest = await giveWay(worktree, this.#targets);
      const taken = rest.filter(({ mode }) => mode === "take");
      const checked = rest.filter(({ mode }) => mode === "look");
      try {
        const grant = taken.length === 0 ? null : await acquire(worktree, taken, this.#checking.requestId);
        const inTheWay = await obstacles(worktree, checked);
        if (inTheWay.size === 0) return { grant };
        if (grant !== null) await giveBack(worktree, grant);
        return { inTheWay };
      } catch (error) {
        if (!isConflict(error)) throw error;
        why = error;
      }
      const inTheWay = await obstacles(worktree, rest);
      if (inTheWay.size > 0) return { inTheWay };
      const queue = queuedBefore(why, rest);
      if (queue !== null) return { inTheWay: queue };
      // Free again in the meantime.
    }
    throw why;
  }

  async #settled(grant: Acquired | null, open: readonly Contention[]): Promise<Outcome> {
    const worktree = this.#worktree;
    const changed: Contention[] = [];
    for (const contention of open) {
      const { mode, absolutePath } = this.#targets.find(({ key }) => key === contention.key)!;
      const isChanged =
        mode === "take" && (await fingerprint(worktree.world, absolutePath)) !== contention.content;
      if (isChanged) changed.push(contention);
    }
    if (open.length > 0) await recordResolved(worktree, open, "granted");
    // The grant stays: whoever has read the file again may write it.
    if (changed.length > 0) {
      const reach = reachOf(worktree.settings.acrossWorktrees);
      const seen: { contention: Contention; holders: readonly Owner[] }[] = [];
      for (const contention of changed)
        seen.push({ contention, holders: await holdersSince(worktree.coordinator, contention, reach) });
      return { verdict: { isAllowed: false, ...changedMeanwhile(seen) }, grant };
    }
    const kinds = await worktree.coordinator.glance(["left"]);
    const verdict =
      grant === null ? ALLOWED : await granted(this.#checking, worktree, this.#targets, grant, kinds);
    return { verdict, grant };
  }

  async #denials(inTheWay: InTheWay): Promise<Contention[]> {
    const { world, settings, session } = this.#worktree;
    const { retrySecs } = settings;
    const deniedAt = instantOf(this.#now);
    const { agentId, sessionId, worktreeId, holder } = session.actor;
    const party = { agentId, sessionId, worktreeId, holder };
    const times = { deniedAt, retryAt: dueAt(deniedAt, retrySecs), retrySecs, endedAt: null };
    const denied: Contention[] = [];
    for (const { key, path, absolutePath, mode } of this.#targets) {
      const owner = inTheWay.get(key);
      if (owner === undefined) continue;
      const content = mode === "take" ? await fingerprint(world, absolutePath) : null;
      denied.push({ ...party, key, path, owner, ...times, content, state: "waiting" });
    }
    return denied;
  }

  /** "again" once the last of their retries is due; the refusal where the hook cannot wait for that. */
  async #waitFor(
    contentions: readonly Contention[],
    words: (last: Contention) => Words,
  ): Promise<Outcome | "again"> {
    const last = contentions.reduce((a, b) => (b.retryAt.wallMs > a.retryAt.wallMs ? b : a));
    if (await this.#hasWaitedFor(last)) return "again";
    await writeRefusal(this.#checking, this.#worktree, this.#targets, last);
    return refused(words(last));
  }

  /**
   * Waits inside the hook until the retry is due, on the monotonic clock. False where the harness has less patience than
   * that, or where there is nobody left to answer to. Ends early when the file was released and that is what was asked for.
   */
  async #hasWaitedFor(contention: Contention): Promise<boolean> {
    const { alarm, report } = this.#checking;
    const { retryAt } = contention;
    const { world, settings, who } = this.#worktree;
    const { timers, processes } = world.platform;
    const leftMs = () => retryAt.monotonicMs - this.#now.monotonicMs;
    if (retryAt.clockId !== this.#now.clockId || leftMs() > alarm.patienceMs) return false;
    if (report.isShowingWaits && leftMs() > 0)
      world.onWait?.({ message: waitsFor([contention]), until: isoOf(retryAt), waitMs: leftMs() });
    const startedMs = this.#now.monotonicMs;
    let isGone = false;
    await alarm.pausing(async () => {
      for (let left = leftMs(); left > 0; left = leftMs()) {
        await timers.sleep(Math.min(left, LOOK_EVERY_MS)).done;
        isGone = (await processes.liveness(who.holder)) === "dead";
        if (isGone) return;
        const seen = await obstacles(this.#worktree, this.#targets).catch(() => null);
        if (seen !== null && seen.size === 0 && (settings.retry === "on_release" || seen.lapsed.length > 0))
          return;
      }
    });
    this.#waitedMs += this.#now.monotonicMs - startedMs;
    return !isGone;
  }

  async #openContentions(): Promise<Contention[]> {
    const { coordinator, session, world } = this.#worktree;
    const { digest } = world.platform;
    const names = this.#targets.map(({ key }) => contentionName(digest, session.actor, key));
    const facts = await coordinator.facts({ names });
    return [...facts.values()].flatMap(({ value }) => contentionFromFact(value) ?? []);
  }
}

/** Reserved for a waiter in the queue: as good as held. */
function queuedBefore(error: unknown, targets: readonly WriteTarget[]): InTheWay | null {
  if (!(error instanceof CotenantError) || error.code !== "E_QUEUED") return null;
  const { waiting } = error.data as { waiting?: readonly string[] };
  const agentId = trusted<AgentId>(waiting?.[0] ?? UNKNOWN_AGENT);
  const unknown = { sessionId: null, leaseId: null, heldKey: null, acquiredAt: null, lastBeat: null };
  const found = new Map(targets.map(({ key }) => [key, { agentId, ...unknown }]));
  return Object.assign(found, { lapsed: [] as LeaseStatus[] });
}

function refused(words: Words): Outcome {
  return { verdict: { isAllowed: false, ...words }, grant: null };
}

/** Beyond this, size and time must do. */
const LARGEST = 32 << 20;

/** What a file is like; null when it is not there. */
async function fingerprint({ platform }: World, path: string): Promise<string | null> {
  const { files, digest } = platform;
  const stat = await files.stat(path);
  if (stat === null) return null;
  if (stat.kind !== "file" || stat.size > LARGEST) return `${stat.kind} ${stat.size} ${stat.mtimeMs}`;
  const bytes = await files.readFile(path);
  return bytes === null ? null : digest.sha256(bytes);
}
