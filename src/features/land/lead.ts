import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, orThrow, saysLost } from "../../errors/cotenant-error";
import { refKey } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import type { Descriptor } from "../../platform/platform";
import { modesFor } from "../../store/layout";
import { takeLandingRight } from "./landing-right";
import { shownBranch } from "./target";

/** A lander that is killed loses the target at once, one that is stopped after this. */
const AT_MOST_SECS = 120;
const BEAT_EVERY_MS = 20_000;
const WAIT_MS = 24 * 60 * 60_000;
const LOOK_EVERY_MS = 500;

/** The target's only lander: its branch's lease here, and its landing right where claims are shared (PROTOCOL 30). */
export class Lead {
  readonly leases: readonly Lease[];
  /** The claim that a push is fenced by. */
  readonly right: Lease | null;
  /** Why it is over before it was given back. */
  lost: CotenantError | null = null;
  readonly #own: readonly Lease[];
  readonly #lock: Descriptor;
  #isOver = false;
  #wake: () => void = () => {};

  constructor(
    private readonly workspace: Workspace,
    private readonly session: Session,
    held: {
      readonly leases: readonly Lease[];
      readonly right: Lease | null;
      readonly own: readonly Lease[];
      readonly lock: Descriptor;
    },
  ) {
    this.leases = held.leases;
    this.right = held.right;
    this.#own = held.own;
    this.#lock = held.lock;
  }

  /** Shows life until it is given back. `onLost` is called where that is refused. */
  async keep(onLost: () => void): Promise<void> {
    // The landing right lasts longer, and is renewed by any sign of life when it is due: each of its beats is a push.
    const refs = this.leases
      .filter((lease) => lease !== this.right)
      .map(({ key, leaseId }) => ({ key, leaseId }));
    const { timers } = this.workspace.surroundings.platform;
    while (!this.#isOver) {
      const sleep = timers.sleep(BEAT_EVERY_MS);
      this.#wake = () => sleep.wake();
      await sleep.done;
      if (this.#isOver) return;
      try {
        await this.session.heartbeat(refs);
      } catch (error) {
        // A store that is busy, or a remote that is away, is asked again; the commit point decides.
        if (!saysLost(error)) continue;
        this.lost = error;
        onLost();
        return;
      }
    }
  }

  async giveBack(): Promise<void> {
    this.#isOver = true;
    this.#wake();
    const { files, locks } = this.workspace.surroundings.platform;
    for (const { key, leaseId } of this.#own)
      await this.session.release([{ key, leaseId }], { reason: "landed" }).catch(() => {});
    try {
      await locks.unlock(this.#lock);
      await files.close(this.#lock);
    } catch {
      // It goes with this process.
    }
  }
}

/** Refused with the holder's name, unless it is to be waited for. */
export async function takeLead(
  workspace: Workspace,
  session: Session,
  target: string,
  wish: { readonly wait: boolean; readonly onWait: (message: string) => void; readonly signal?: AbortSignal },
): Promise<Lead> {
  const lock = await lockSession(workspace, session, target, wish);
  const own: Lease[] = [];
  try {
    const timing = { timeoutMs: WAIT_MS, onWait: wish.onWait };
    const right = await takeLandingRight(workspace, session, target, wish.wait ? timing : null, wish.signal);
    if (right?.isNew === true) own.push(right.lease);
    const key = orThrow(refKey(target));
    const grant = await session.acquire([{ key, reach: "repository" }], {
      ...{ ttlSecs: 0, bind: "process", reason: `landing on ${shownBranch(target)}` },
      atMostSecs: await workspace.withinPolicy(AT_MOST_SECS),
      wait: wish.wait
        ? {
            timeoutMs: WAIT_MS,
            onWait: ({ message }) => wish.onWait(message),
            ...(wish.signal === undefined ? {} : { signal: wish.signal }),
          }
        : null,
    });
    own.push(...grant.fresh);
    const branch = grant.leases.filter((lease) => lease.key === key);
    const leases = right === null ? branch : [...branch, right.lease];
    return new Lead(workspace, session, { leases, right: right?.lease ?? null, own, lock });
  } catch (error) {
    await new Lead(workspace, session, { leases: [], right: null, own, lock }).giveBack();
    throw inWords(error, target);
  }
}

function inWords(error: unknown, target: string): unknown {
  if (!(error instanceof CotenantError) || error.code !== "E_LOCK_CONFLICT") return error;
  const hint = "one lander at a time: run it again when that one is done, or with --wait";
  const message = error.message.includes("landing right")
    ? error.message
    : `somebody lands on ${shownBranch(target)} already: ${error.message}`;
  return error.with({ message, hint });
}

/** Leases keep sessions apart; this keeps processes of one session apart. */
async function lockSession(
  workspace: Workspace,
  { actor }: Session,
  target: string,
  { wait, onWait, signal }: Parameters<typeof takeLead>[3],
): Promise<Descriptor> {
  const { files, locks, digest, timers } = workspace.surroundings.platform;
  const { layout } = workspace.store;
  const name = digest
    .sha256(`${target}\n${actor.agentId}\n${actor.sessionId}\n${actor.worktreeId}`)
    .slice(0, 16);
  await workspace.store.prepare();
  const { file } = modesFor(workspace.repository.config.sharedRepository);
  const fd = await files.open(`${layout.locks}/land-run-${name}.lock`, "update-or-create", file);
  for (let isTold = false; !(await locks.tryLock(fd)); isTold = true) {
    const message = `another run of ${actor.agentId} lands on ${shownBranch(target)}`;
    if (wait && signal?.aborted !== true) {
      if (!isTold) onWait(message);
      await timers.sleep(LOOK_EVERY_MS).done;
      continue;
    }
    await files.close(fd);
    throw new CotenantError("E_LOCK_CONFLICT", message, {
      hint: "run it again when that one is done, or with --wait",
      data: { holder: actor.agentId, target },
    });
  }
  return fd;
}
