import type { LeaseStatus } from "../../coordinator/contract";
import type { Acquired } from "../../coordinator/session";
import { CotenantError } from "../../errors/cotenant-error";
import type { AgentId, Ulid } from "../../kernel/ids";
import { instantOf } from "../../kernel/time";
import { ALLOWED, canTell, saying, type Verdict } from "./answers";
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

/** The whole of the contention contract, for a check that could not simply be granted (docs/GUARD.md). */
export async function contend(
  checking: Checking,
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
): Promise<Outcome> {
  const pause: Pause = { ms: 0 };
  for (;;) {
    if (checking.report.harness === "cursor") {
      const { settleRelatives } = await import("./cursor-family");
      await settleRelatives(place, targets);
    }
    const open = await openContentions(place, targets);
    // A subagent that has finished blocks nobody any more.
    if (open.length > 0) await giveWay(place, targets);
    const seen = await obstacles(place, targets);
    const now = place.coordinator.store.now();
    const steps = open.map((contention) => ({
      // The holder may have changed since the first denial.
      contention: { ...contention, owner: seen.get(contention.key) ?? contention.owner },
      step: nextStep(contention, now, !seen.has(contention.key)),
    }));
    if (open.length > 0 && place.settings.policy.escalateAfterSecs > 0) {
      const { noteEscalated } = await import("./escalation");
      const held = steps.filter(({ contention }) => seen.has(contention.key));
      await noteEscalated(
        place,
        held.map(({ contention }) => contention),
      );
    }
    const blocked = steps.filter(({ step }) => step === "report").map(({ contention }) => contention);
    if (blocked.length > 0) return refused(hardStop(await recordBlocked(place, blocked, seen), now));
    const waiting = steps.filter(({ step }) => step === "wait").map(({ contention }) => contention);
    if (waiting.length > 0) {
      const last = waiting.reduce((a, b) => (b.retryAt.wallMs > a.retryAt.wallMs ? b : a));
      if (await waitFor(checking, place, last, targets, pause)) continue;
      await writeRefusal(checking, place, targets, last);
      return refused(tooEarly(last, now));
    }
    const outcome = await tryNow(checking, place, targets, open, pause);
    if (outcome !== "again") return pause.ms === 0 ? outcome : explained(checking, outcome, open, pause);
  }
}

/** How long this hook has waited. */
interface Pause {
  ms: number;
}

/** After a wait, the agent is told what it was for. */
function explained(
  { report }: Checking,
  outcome: Outcome,
  waited: readonly Contention[],
  { ms }: Pause,
): Outcome {
  const { verdict, grant } = outcome;
  if (!verdict.isAllowed || waited.length === 0 || !canTell(report)) return outcome;
  return { grant, verdict: saying(hasWaited(waited, ms, grant !== null), verdict) };
}

/** One attempt; "again" when it was denied for the first time, and there is time to wait. */
async function tryNow(
  checking: Checking,
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  open: readonly Contention[],
  pause: Pause,
): Promise<Outcome | "again"> {
  const attempt = await attemptAll(place, targets, checking.requestId ?? null);
  if ("grant" in attempt) return settled(checking, place, targets, attempt.grant, open);
  const { inTheWay } = attempt;
  const now = place.coordinator.store.now();
  const retried = open.filter(({ key, state }) => inTheWay.has(key) && state !== "freed");
  if (retried.length > 0) return refused(hardStop(await recordBlocked(place, retried, inTheWay), now));
  const fresh = await denials(place, targets, inTheWay);
  const denied = await recordDenied(place, fresh);
  const last = denied.reduce((a, b) => (b.retryAt.wallMs > a.retryAt.wallMs ? b : a));
  if (await waitFor(checking, place, last, targets, pause)) return "again";
  await writeRefusal(checking, place, targets, last);
  return refused(deniedFirst(denied));
}

const ATTEMPTS = 5;

/** Leases the targets to be taken, and checks the others. */
async function attemptAll(
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  requestId: Ulid | null,
): Promise<{ readonly grant: Acquired | null } | { readonly inTheWay: InTheWay }> {
  let why: unknown = null;
  for (let i = 0; i < ATTEMPTS; i++) {
    // A finished subagent, or a twin that another settings file called, does not count as a holder.
    const rest = await giveWay(place, targets);
    const taken = rest.filter(({ mode }) => mode === "take");
    try {
      const grant = taken.length === 0 ? null : await acquire(place, taken, requestId);
      const inTheWay = await obstacles(
        place,
        rest.filter(({ mode }) => mode === "check"),
      );
      if (inTheWay.size === 0) return { grant };
      if (grant !== null) await giveBack(place, grant);
      return { inTheWay };
    } catch (error) {
      if (!isConflict(error)) throw error;
      why = error;
    }
    const inTheWay = await obstacles(place, rest);
    if (inTheWay.size > 0) return { inTheWay };
    const queue = queuedBefore(why, rest);
    if (queue !== null) return { inTheWay: queue };
    // Free again in the meantime.
  }
  throw why;
}

/** Reserved for a waiter in the queue: as good as held. */
function queuedBefore(error: unknown, targets: readonly WriteTarget[]): InTheWay | null {
  if (!(error instanceof CotenantError) || error.code !== "E_QUEUED") return null;
  const { waiting } = error.data as { waiting?: readonly AgentId[] };
  const owner: Owner = {
    agentId: waiting?.[0] ?? ("agent:unknown" as AgentId),
    sessionId: null,
    leaseId: null,
    heldKey: null,
    acquiredAt: null,
    lastBeat: null,
  };
  const found = new Map(targets.map(({ key }) => [key, owner]));
  return Object.assign(found, { lapsed: [] as LeaseStatus[] });
}

async function settled(
  checking: Checking,
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  grant: Acquired | null,
  open: readonly Contention[],
): Promise<Outcome> {
  const changed: Contention[] = [];
  for (const contention of open) {
    const target = targets.find(({ key }) => key === contention.key)!;
    if (
      target.mode === "take" &&
      (await fingerprint(place.world, target.absolutePath)) !== contention.content
    )
      changed.push(contention);
  }
  if (open.length > 0) await recordResolved(place, open, "granted");
  // The grant stays: whoever has read the file again may write it.
  if (changed.length > 0) return { verdict: await haveChanged(place, changed), grant };
  const seen = await place.coordinator.glance(["left"]);
  const verdict = grant === null ? ALLOWED : await granted(checking, place, targets, grant, seen);
  return { verdict, grant };
}

async function haveChanged(place: GuardedWorktree, changed: readonly Contention[]): Promise<Verdict> {
  const reach = reachOf(place.settings.acrossWorktrees);
  const seen: { contention: Contention; holders: readonly Owner[] }[] = [];
  for (const contention of changed)
    seen.push({ contention, holders: await holdersSince(place.coordinator, contention, reach) });
  return { isAllowed: false, ...changedMeanwhile(seen) };
}

async function denials(
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  inTheWay: InTheWay,
): Promise<Contention[]> {
  const { world, settings, session } = place;
  const now = instantOf(place.coordinator.store.now());
  const { agentId, sessionId, worktreeId, holder } = session.actor;
  const denied: Contention[] = [];
  for (const { key, path, absolutePath, mode } of targets) {
    const owner = inTheWay.get(key);
    if (owner === undefined) continue;
    denied.push({
      agentId,
      sessionId,
      worktreeId,
      holder,
      key,
      path,
      owner,
      deniedAt: now,
      retryAt: dueAt(now, settings.retrySecs),
      retrySecs: settings.retrySecs,
      content: mode === "take" ? await fingerprint(world, absolutePath) : null,
      state: "waiting",
      endedAt: null,
    });
  }
  return denied;
}

const LOOK_EVERY_MS = 1_000;

/**
 * Waits inside the hook until the retry is due, on the monotonic clock. False where the harness has less patience than
 * that, or where there is nobody left to answer to. Ends early when the file was released and that is what was asked for.
 */
async function waitFor(
  { alarm, report }: Checking,
  place: GuardedWorktree,
  contention: Contention,
  targets: readonly WriteTarget[],
  pause: Pause,
): Promise<boolean> {
  const { retryAt } = contention;
  const { world, settings, coordinator, who } = place;
  const { timers, processes } = world.platform;
  const leftMs = () => retryAt.monotonicMs - coordinator.store.now().monotonicMs;
  if (retryAt.clockId !== coordinator.store.now().clockId || leftMs() > alarm.patienceMs) return false;
  if (report.isShowingWaits && leftMs() > 0)
    world.onWait?.({ message: waitsFor([contention]), until: isoOf(retryAt), waitMs: leftMs() });
  const startedMs = coordinator.store.now().monotonicMs;
  let isGone = false;
  await alarm.pausing(async () => {
    for (let left = leftMs(); left > 0; left = leftMs()) {
      await timers.sleep(Math.min(left, LOOK_EVERY_MS)).done;
      isGone = (await processes.liveness(who.holder)) === "dead";
      if (isGone) return;
      const seen = await obstacles(place, targets).catch(() => null);
      if (seen !== null && seen.size === 0 && (settings.retry === "on_release" || seen.lapsed.length > 0))
        return;
    }
  });
  pause.ms += coordinator.store.now().monotonicMs - startedMs;
  return !isGone;
}

async function openContentions(
  { coordinator, session, world }: GuardedWorktree,
  targets: readonly WriteTarget[],
): Promise<Contention[]> {
  const { digest } = world.platform;
  const names = targets.map(({ key }) => contentionName(digest, session.actor, key));
  const facts = await coordinator.facts({ names });
  const found: Contention[] = [];
  for (const { value } of facts.values()) {
    const contention = contentionFromFact(value);
    if (contention !== null) found.push(contention);
  }
  return found;
}

function refused(words: Words): Outcome {
  return { verdict: { isAllowed: false, ...words }, grant: null };
}

/** Beyond this, size and time must do. */
const LARGEST = 32 << 20;

/** What a file is like; null when it is not there. */
export async function fingerprint({ platform }: World, path: string): Promise<string | null> {
  const { files, digest } = platform;
  const stat = await files.stat(path);
  if (stat === null) return null;
  if (stat.kind !== "file" || stat.size > LARGEST) return `${stat.kind} ${stat.size} ${stat.mtimeMs}`;
  const bytes = await files.readFile(path);
  return bytes === null ? null : digest.sha256(bytes);
}
