import type { Session } from "../../coordinator/session";
import { CotenantError } from "../../errors/cotenant-error";
import { fromByteText } from "../../git/byte-text";
import type { RefWriter } from "../../git/refs";
import { makeUlid, type Ulid } from "../../kernel/ids";
import { modesFor } from "../../store/layout";
import { SCHEMA_VERSION } from "../../store/schema";
import { accessOf } from "../worktrees/access";
import { recordName } from "../worktrees/records";
import { underWriterLock, writerKey } from "../worktrees/writer-lock";
import { type BaseSnapshot, baseSnapshotOf, isKept } from "./base-snapshot";
import { type Captured, capture, remember } from "./capture";
import type { Consistency, Descriptor, Occasion } from "./descriptor";
import { latestName, openIntents } from "./intents";
import { aboutOf, forget, intend, logReady, makeReady } from "./milestones";
import { commitCaptured, makeRef, newRef, startRef } from "./snapshot-commit";
import type { SnapshotContext } from "./snapshot-context";
import { cachePath, saveRemembered } from "./stat-cache";

export interface SnapshotWish {
  readonly note?: string | null;
  readonly tags?: readonly string[];
  /** Default: as strict as the worktree allows. */
  readonly consistency?: Consistency | null;
  readonly withIgnored?: boolean;
  readonly automatic?: Occasion | null;
  readonly requestId?: Ulid | null;
  readonly secret?: string | null;
  /** What the caller believes its lock's token to be. */
  readonly fencingToken?: number | null;
  /** Commits that nothing else leads to, to be kept with it. */
  readonly tips?: readonly string[];
}

export interface Taken {
  readonly descriptor: Descriptor;
  /** Null where it is the answer to an earlier call with the same request id. */
  readonly captured: Captured | null;
  readonly replayed: boolean;
}

/**
 * PROTOCOL 22: intent, objects and ref, descriptor, and then the token check, `.READY` and the log's line in one critical
 * section. Whoever dies before that leaves nothing that anybody sees.
 */
export async function takeSnapshot(context: SnapshotContext, wish: SnapshotWish = {}): Promise<Taken> {
  const { session } = context;
  const { worktreeId } = session.actor;
  const earlier = await remembered(context, wish);
  if (earlier !== null) return { descriptor: earlier, captured: null, replayed: true };
  await refuseWrongSecret(session, wish.secret ?? null);
  if ((await accessOf(session.coordinator, worktreeId)) === "shared") {
    refuseQuiesced(wish, worktreeId);
    refuseToken(wish.fencingToken ?? null, null);
    return make(context, { ...wish, consistency: "best_effort" }, null);
  }
  for (let attempt = 1; ; attempt++) {
    let isOfProcess = false;
    try {
      return await underWriterLock(session, ({ fencingToken, bind }) => {
        isOfProcess = bind === "process";
        refuseToken(wish.fencingToken ?? null, fencingToken);
        return make(context, { ...wish, consistency: wish.consistency ?? "quiesced" }, fencingToken);
      });
    } catch (error) {
      if (!isToBeTriedAgain(error, session, isOfProcess) || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}

const MOST_ATTEMPTS = 10;

/**
 * Another process of this session has given the lock back, and perhaps taken it again, or somebody took away the snapshot
 * that this one was to build on: nothing to do but to start over. A lock that lasts as long as a process is that of the
 * last of this session's processes that asked for it, and is over when that one ends, although we are alive.
 */
function isToBeTriedAgain(error: unknown, { actor }: Session, isOfProcess: boolean): boolean {
  if (!(error instanceof CotenantError)) return false;
  const { code, data } = error;
  if (code === "E_NOT_FOUND" || data["end"] === "given_back" || "ground" in data) return true;
  if (isOfProcess && (data["end"] === "dead" || data["end"] === "taken_over")) return true;
  const [holder] = (data["holders"] ?? []) as readonly Readonly<Record<string, unknown>>[];
  return (
    code === "E_LOCK_NOT_HELD" &&
    holder?.["agent_id"] === actor.agentId &&
    holder["worktree_id"] === actor.worktreeId
  );
}

function withoutBase({ keeper }: BaseSnapshot): CotenantError {
  return new CotenantError("E_PARTIAL_SNAPSHOT", `snapshot ${keeper.snapshot_id} was removed meanwhile`, {
    hint: "take it again",
    data: { ground: keeper.snapshot_id },
  });
}

function refuseQuiesced({ consistency }: SnapshotWish, worktreeId: string): void {
  if (consistency !== "quiesced") return;
  throw new CotenantError(
    "E_CONSISTENCY_UNAVAILABLE",
    `${worktreeId} is shared: nobody can say that it holds still`,
    { hint: "take it with --consistency best_effort, or make the worktree exclusive first" },
  );
}

/** Of the writer lock, if there is one. */
export async function refuseWrongSecret(session: Session, secret: string | null): Promise<void> {
  if (secret === null) return;
  const found = await session.coordinator.find([{ key: writerKey(session.actor.worktreeId), leaseId: null }]);
  session.refuseWrong(
    secret,
    found.map(({ lease }) => lease),
  );
}

export function refuseToken(believed: number | null, actual: number | null): void {
  if (believed === null || believed === actual) return;
  throw new CotenantError(
    "E_FENCING_MISMATCH",
    `token ${believed} is not that of the writer lock${actual === null ? "" : `, which is ${actual}`}`,
    { data: { fencing_token: believed, current: actual } },
  );
}

/** What an earlier call with the same request id came to, finished if it only lacked the last word. */
async function remembered(
  context: SnapshotContext,
  { requestId = null }: SnapshotWish,
): Promise<Descriptor | null> {
  const { session, descriptors } = context;
  if (requestId === null) return null;
  for (const intent of await openIntents(session.coordinator)) {
    if (intent.requestId !== requestId || intent.agentId !== session.actor.agentId) continue;
    const { isReady, descriptor } = await descriptors.look(intent.snapshotId);
    if (isReady && descriptor !== null) await logReady(context, descriptor, requestId);
  }
  const about = aboutOf(session.actor.worktreeId);
  const written = await session.write([], { about, facts: [], requestId, body: async () => null });
  if (!written.replayed) return null;
  const id = String(written.record.result?.["snapshot_id"] ?? "");
  const { isReady, descriptor } = await descriptors.look(id);
  if (isReady && descriptor !== null) return descriptor;
  throw new CotenantError("E_NOT_FOUND", `snapshot ${id} was taken with that request id, and is gone since`, {
    hint: "make a new request id for a new snapshot",
    data: { snapshot_id: id },
  });
}

async function make(context: SnapshotContext, wish: SnapshotWish, token: number | null): Promise<Taken> {
  const { workspace, session, machine, place, descriptors } = context;
  const { platform } = machine;
  const id = makeUlid(platform.clock.wallMs(), platform.random.bytes(10));
  await intend(context, id, wish.requestId ?? null, token);
  let captured: Captured | null = null;
  let writer: RefWriter | null = null;
  try {
    const withIgnored = wish.withIgnored ?? workspace.config.values["snapshot.ignored"];
    const base = await baseSnapshotOf(context, withIgnored);
    captured = await capture(machine, place, {
      id,
      withIgnored,
      isQuiesced: wish.consistency === "quiesced",
      remembered: base?.remembered ?? null,
      nowMs: await fileTimeMs(context),
      onChange: async () => {
        writer = await startRef(machine, place, id);
      },
      pulse: token === null ? async () => {} : pulseOf(context),
    });
    const descriptor = await develop(context, { id, wish, token, withIgnored, writer, base }, captured);
    await makeReady(context, descriptor, wish, token);
    const path = cachePath(workspace.repository.controlDir, session.actor.worktreeId, withIgnored);
    const modes = modesFor(workspace.repository.config.sharedRepository);
    if (!captured.isSame) await saveRemembered(platform, path, remember(machine, id, captured), modes);
    return { descriptor, captured, replayed: false };
  } catch (error) {
    // Once it is ready it stays, whatever failed afterwards.
    if (!(await descriptors.look(id)).isReady) await forget(context, id).catch(() => {});
    throw error;
  } finally {
    await (writer as RefWriter | null)?.close();
    await captured?.sink.close();
  }
}

/** The log was written just now: its time is the present, as files are stamped. */
async function fileTimeMs({ workspace, machine }: SnapshotContext): Promise<number> {
  return (await machine.platform.files.stat(workspace.store.layout.log))?.mtimeMs ?? 0;
}

/** Objects, ref and descriptor, each on the disk before the next. */
async function develop(
  context: SnapshotContext,
  order: {
    readonly id: Ulid;
    readonly wish: SnapshotWish;
    readonly token: number | null;
    readonly withIgnored: boolean;
    /** The Git that makes the ref; null where it may be done without. */
    readonly writer: RefWriter | null;
    readonly base: BaseSnapshot | null;
  },
  captured: Captured,
): Promise<Descriptor> {
  const { id, wish, token, withIgnored, writer, base } = order;
  const { session, machine, place, descriptors } = context;
  const { worktreeId, agentId } = session.actor;
  const { picture, parts, sink } = captured;
  const { note = null, tags = [], tips = [], automatic = null } = wish;
  const atMs = machine.platform.clock.wallMs();
  const commit = await commitCaptured(captured, { id, worktreeId, agentId, note, atMs, tips });
  const gone = await keep(context, { id, writer, commit }, sink);
  await sink.settle();
  // What the other one kept until now, this one keeps from now on; else something may be gone already.
  if (base !== null && !(await isKept(context, base.keeper))) throw withoutBase(base);
  const parent = await cameBefore(context);
  const { head, branch, index, stages, skipped, files, bytes, digest } = parts;
  const descriptor: Descriptor = {
    schema_version: SCHEMA_VERSION,
    snapshot_id: id,
    worktree_id: worktreeId,
    root: place.root,
    parent,
    tree: picture.tree,
    commit,
    created_at: new Date(atMs).toISOString(),
    agent_id: agentId,
    consistency_level: wish.consistency ?? "best_effort",
    fencing_token: token,
    note,
    tags,
    digest,
    automatic,
    includes_ignored: withIgnored,
    ...{ head, branch, index, stages, skipped, files, bytes },
    by_commit: parts.byCommit.slice(0, MOST_NAMED).map((one) => ({ ...one, path: fromByteText(one.path) })),
    left_out: parts.leftOut.slice(0, MOST_NAMED).map((one) => ({ ...one, path: fromByteText(one.path) })),
  };
  await descriptors.put(descriptor);
  await gone.git;
  return descriptor;
}

/** The objects, and then the ref that keeps them. Where nothing has changed, not even that takes the start of a Git. */
async function keep(
  { machine, place, descriptors }: SnapshotContext,
  order: { readonly id: Ulid; readonly writer: RefWriter | null; readonly commit: string },
  sink: Captured["sink"],
): Promise<{ readonly git: Promise<void> }> {
  const { id, commit } = order;
  const own = order.writer === null ? newRef(machine, place, id, await descriptors.aside(id)) : null;
  // Together: a disk takes them as one. It is no ref before the objects are there.
  await Promise.all([own?.stage(commit), sink.flush()]);
  if (own !== null && (await own.appear(machine.git))) return { git: Promise.resolve() };
  const writer = order.writer ?? (await startRef(machine, place, id));
  try {
    await makeRef(writer, id, commit);
  } catch (error) {
    await writer.close();
    throw error;
  }
  // It is on its way out while the rest is written, and nothing that it may still say matters.
  return { git: writer.close().catch(() => {}) };
}

/** The last one of this worktree, or the one that it was restored from. */
async function cameBefore({ session }: SnapshotContext): Promise<string | null> {
  const { worktreeId } = session.actor;
  const names = [latestName(worktreeId), recordName(worktreeId)];
  const facts = await session.coordinator.facts({ names });
  for (const name of names) {
    const id = facts.get(name)?.value["snapshot_id"];
    if (typeof id === "string") return id;
  }
  return null;
}

const MOST_NAMED = 1_000;

const PULSE_MS = 20_000;

/** A long read must not outlive its own lock, and stops where it has lost it. */
export function pulseOf({ session, machine }: SnapshotContext): () => Promise<void> {
  const { clock } = machine.platform;
  let last = clock.monotonicMs();
  return async () => {
    if (clock.monotonicMs() - last < PULSE_MS) return;
    last = clock.monotonicMs();
    const key = writerKey(session.actor.worktreeId);
    await session.heartbeat([{ key, leaseId: null }]);
  };
}
