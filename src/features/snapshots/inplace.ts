import { type PathsToWrite, refuseRuledPaths } from "../../coordinator/path-rules";
import { CotenantError, errorFrom } from "../../errors/cotenant-error";
import { type ByteText, fromByteText, toByteText } from "../../git/byte-text";
import { prepareDataDirectory } from "../../identity/worktree-file";
import { type FactName, factName } from "../../kernel/facts";
import { printable } from "../../kernel/ids";
import { freshSuffix } from "../../platform/hex";
import { accessOf, refuseShared } from "../worktrees/access";
import { removeTree } from "../worktrees/tree-removal";
import { writerKey } from "../worktrees/writer-lock";
import { type Captured, capture } from "./capture";
import { type Contents, type KeptFile, readContents } from "./contents";
import type { Descriptor } from "./descriptor";
import { writeFiles } from "./file-writer";
import { type Watch, watchOver } from "./leased";
import { pulseOf, refuseToken, takeSnapshot } from "./new-snapshot";
import { clearTheWay } from "./obstacles";
import { isUnchangedPath } from "./picture";
import { isNothing, nowOf, planReplacement, type Replacement } from "./replacement";
import { pruneAutomatic } from "./retention";
import type { SnapshotContext, SnapshotReader } from "./snapshot-context";

export interface Preview {
  readonly plan: Replacement;
  /** Names this plan from this state; another state gives another. */
  readonly planId: string;
  readonly contents: Contents;
  readonly captured: Captured;
  /** See `clearTheWay`. */
  readonly hidden: readonly ByteText[];
}

/** What an in-place restore would change. Writes nothing, takes no lock. */
export async function previewInPlace(context: SnapshotReader, descriptor: Descriptor): Promise<Preview> {
  const { machine, place } = context;
  const contents = await readContents(machine, place, descriptor);
  const captured = await capture(machine, place, {
    id: "preview",
    withIgnored: descriptor.includes_ignored,
    isQuiesced: false,
    remembered: null,
    nowMs: 0,
    isDry: true,
    pulse: async () => {},
  });
  await captured.sink.close();
  const { plan, hidden } = await clearTheWay(context, planReplacement(nowOf(captured), contents), captured);
  const { digest } = machine.platform;
  const planId = digest.sha256(`${descriptor.snapshot_id}\n${captured.parts.digest}`).slice(0, 16);
  return { plan, planId, contents, captured, hidden };
}

export interface RunOptions {
  readonly planId: string;
  readonly fencingToken: number | null;
  readonly secret: string | null;
}

/**
 * Brings the worktree to what the snapshot holds, if it is still as it was previewed: first it is kept as it is, then new
 * contents are laid out beside, then names change in small steps, each of which proves the writer lock.
 */
export async function restoreInPlace(
  context: SnapshotContext,
  descriptor: Descriptor,
  options: RunOptions,
): Promise<{ readonly before: Descriptor | null; readonly plan: Replacement }> {
  const { session } = context;
  const { worktreeId } = session.actor;
  refuseShared(
    await accessOf(session.coordinator, worktreeId),
    worktreeId,
    "others may be writing, so nothing is restored in place",
  );
  refuseNoPlan(descriptor, options.planId);
  await proveLock(context, options);
  const preview = await previewInPlace(context, descriptor);
  if (preview.planId !== options.planId) throw changedSince(descriptor);
  if (isNothing(preview.plan)) return { before: null, plan: preview.plan };
  await refuseRuledPaths(context.workspace, pathsIn(preview.plan));
  const refuseHeld = watchOver(context, preview.plan, descriptor);
  await refuseHeld();
  const { descriptor: before, captured } = await takeSnapshot(context, {
    automatic: "restore",
    consistency: "quiesced",
    withIgnored: descriptor.includes_ignored || preview.hidden.length > 0,
    fencingToken: options.fencingToken,
  });
  if (preview.hidden.length === 0 && before.digest !== preview.captured.parts.digest)
    throw changedSince(descriptor);
  await apply(context, descriptor, before, preview, captured!, { ...options, refuseHeld });
  await pruneAutomatic(context).catch(() => {});
  return { before, plan: preview.plan };
}

function pathsIn(plan: Replacement): PathsToWrite {
  const { makeDirectories, removeDirectories, chmodDirectories } = plan;
  const files = [...[...plan.write, ...plan.chmod].map(({ path }) => path), ...plan.remove];
  const directories = [
    ...[...makeDirectories, ...chmodDirectories].map(([path]) => path),
    ...removeDirectories,
  ];
  return { files: files.map(fromByteText), directories: directories.map(fromByteText) };
}

/** Half a digest. */
const PLAN_ID = /^[0-9a-f]{16}$/;

function refuseNoPlan({ snapshot_id: id }: Descriptor, planId: string): void {
  if (PLAN_ID.test(planId)) return;
  throw new CotenantError("E_USAGE", `"${printable(planId, 100)}" is not the id of a plan`, {
    hint: `the preview ends with it: cotenant restore ${id} --inplace`,
    data: { snapshot_id: id },
  });
}

function changedSince({ snapshot_id: id }: Descriptor): CotenantError {
  return new CotenantError(
    "E_CONSISTENCY_UNAVAILABLE",
    "that plan is not for this: the worktree has changed since the preview, or it was of another snapshot",
    { hint: `look again: cotenant restore ${id} --inplace`, data: { snapshot_id: id } },
  );
}

/** Throws what the holder's proof is refused with; where there is no lock at all, that one is needed. */
async function proveLock(
  context: SnapshotContext,
  options: Pick<RunOptions, "fencingToken" | "secret">,
): Promise<void> {
  await fenced(context, options, async () => {});
}

/** One small step under the mutex, with the lock proved. Nothing is logged for it. */
async function fenced(
  { session }: SnapshotContext,
  { fencingToken, secret }: Pick<RunOptions, "fencingToken" | "secret">,
  act: () => Promise<void>,
): Promise<void> {
  const { worktreeId } = session.actor;
  const key = writerKey(worktreeId);
  const write = session.write([{ key, leaseId: null }], {
    about: `restore in ${worktreeId}`,
    facts: [],
    secret,
    body: async ({ refusal, leases }) => {
      if (refusal !== null) throw errorFrom(refusal);
      refuseToken(fencingToken, leases[0]?.fencingToken ?? null);
      await act();
      return null;
    },
  });
  await write.catch((error: unknown) => {
    if (error instanceof CotenantError && error.code === "E_NOT_FOUND") throw needsLock(worktreeId);
    throw error;
  });
}

function needsLock(worktreeId: string): CotenantError {
  return new CotenantError("E_LEASE_REQUIRED", `restoring in place needs the writer lock of ${worktreeId}`, {
    hint: "take it first: cotenant worktree lock",
    data: { worktree_id: worktreeId },
  });
}

/** In-place restores that somebody has begun, by worktree. */
export const RESTORING = "restoring";

function restoringName(worktreeId: string): FactName {
  return factName(RESTORING, worktreeId);
}

/** How many names change in one critical section. */
const STEP = 200;

async function apply(
  context: SnapshotContext,
  descriptor: Descriptor,
  before: Descriptor,
  { plan, captured: seen }: Preview,
  captured: Captured,
  options: RunOptions & { readonly refuseHeld: Watch },
): Promise<void> {
  const { machine, place } = context;
  const { trees, platform } = machine;
  const root = toByteText(place.root);
  // A name that our own ignore rules cover.
  const bench = `${root}/.cotenant/restore.new-${freshSuffix(platform.random)}`;
  const note = (type: string, value: Readonly<Record<string, unknown>> | null) =>
    logStep(context, options, descriptor, before, { type, value });
  await note("snapshot.restoring", {
    ...{ snapshot_id: descriptor.snapshot_id, before: before.snapshot_id, bench: fromByteText(bench) },
    maker: { ...platform.processes.self() },
  });
  try {
    await prepareDataDirectory(platform, place.root);
    await trees.makeDirectory(bench, 0o700);
    const laid = new Map<ByteText, ByteText>();
    await writeFiles(
      machine,
      place.commonDir,
      plan.write,
      async (file) => {
        const path = `${bench}/${laid.size}`;
        laid.set(file.path, path);
        return path;
      },
      pulseOf(context),
    );
    await trees.syncAll(bench);
    const still = (path: ByteText) => isUnchangedPath(trees, root, path, captured.picture, seen.picture);
    for (const step of inSteps(stepsOf(context, root, plan, laid, still)))
      await fenced(context, options, async () => {
        await options.refuseHeld();
        for (const act of step) await act();
      });
    await trees.syncAll(root);
  } catch (error) {
    await removeTree(trees, bench);
    await note("snapshot.interrupted", null).catch(() => {});
    throw cutOff(error, before);
  }
  await removeTree(trees, bench);
  await note("snapshot.restored", null);
}

function cutOff(error: unknown, before: Descriptor): unknown {
  if (!(error instanceof CotenantError)) return error;
  return error.with({
    message: `${error.message}; some files may be restored already`,
    hint: `${error.hint}; what was there is snapshot ${before.snapshot_id}`,
    data: { before: before.snapshot_id },
  });
}

type Act = () => Promise<void>;

/** In an order in which each finds its place free: names go, directories go, directories come, names come. */
function stepsOf(
  { machine }: SnapshotContext,
  root: ByteText,
  plan: Replacement,
  laid: ReadonlyMap<ByteText, ByteText>,
  still: (path: ByteText) => Promise<boolean>,
): Act[] {
  const { trees } = machine;
  const at = (path: ByteText) => `${root}/${path}`;
  const check = async (path: ByteText) => {
    if (!(await still(path)))
      throw new CotenantError(
        "E_CONSISTENCY_UNAVAILABLE",
        `${printable(fromByteText(path), 300)} was changed meanwhile`,
        { hint: "find out who writes here, then look again" },
      );
  };
  const put = async (file: KeptFile) => {
    await check(file.path);
    await trees.rename(laid.get(file.path)!, at(file.path));
  };
  return [
    ...plan.openDirectories.map(
      ([path, mode]) =>
        async () =>
          trees.chmod(at(path), mode | 0o700),
    ),
    ...plan.remove.map((path) => async () => {
      await check(path);
      await trees.unlink(at(path));
    }),
    // One with something in it that nobody asked about stays.
    ...plan.removeDirectories.map((path) => async () => void (await trees.removeDirectory(at(path)))),
    ...plan.makeDirectories.map(([path, mode]) => async () => {
      await trees.makeDirectory(at(path), mode | 0o700);
    }),
    ...plan.write.map((file) => () => put(file)),
    ...plan.chmod.map((file) => async () => {
      await check(file.path);
      await trees.chmod(at(file.path), file.mode);
    }),
    ...[...plan.openDirectories, ...plan.makeDirectories, ...plan.chmodDirectories].reverse().map(
      ([path, mode]) =>
        async () =>
          trees.chmod(at(path), mode),
    ),
  ];
}

function* inSteps(acts: readonly Act[]): Generator<readonly Act[]> {
  for (let from = 0; from < acts.length; from += STEP) yield acts.slice(from, from + STEP);
}

async function logStep(
  { session }: SnapshotContext,
  options: RunOptions,
  descriptor: Descriptor,
  before: Descriptor,
  { type, value }: { readonly type: string; readonly value: Readonly<Record<string, unknown>> | null },
): Promise<void> {
  const { worktreeId } = session.actor;
  const needsProof = type === "snapshot.restoring";
  await session.write(needsProof ? [{ key: writerKey(worktreeId), leaseId: null }] : [], {
    about: `restore in ${worktreeId}`,
    facts: [],
    secret: options.secret,
    body: async ({ refusal }) => {
      if (refusal !== null) throw errorFrom(refusal);
      return {
        type,
        payload: {
          snapshot_id: descriptor.snapshot_id,
          worktree_id: worktreeId,
          before: before.snapshot_id,
          inplace: true,
        },
        facts: new Map([[restoringName(worktreeId), value]]),
        answer: null,
      };
    },
  });
}
