import { type HolderRequest, proofOf } from "../../coordinator/requests";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, orThrow } from "../../errors/cotenant-error";
import { decode } from "../../identity/path-text";
import { printable } from "../../kernel/ids";
import { checkText } from "../../kernel/policy";
import { accessOf, refuseShared } from "../worktrees/access";
import { settleMakings } from "../worktrees/construction";
import { ask, LONG_MS } from "../worktrees/git-calls";
import { meantWorktree } from "../worktrees/meant";
import { checkBranch, defaultPlace } from "../worktrees/names";
import { refuseBranch, refusePlace } from "../worktrees/new-worktree";
import { placeNamed } from "../worktrees/place";
import { capture } from "./capture";
import { type Compared, compareFiles, filesOf } from "./comparison";
import { readContents } from "./contents";
import { CONSISTENCY_LEVELS, type Consistency, checkTags, type Descriptor } from "./descriptor";
import {
  descriptorsOf,
  type KnownSnapshot,
  meantSnapshot,
  shortSnapshotId,
  snapshotMeant,
} from "./descriptor-store";
import { type Preview, previewInPlace, restoreInPlace } from "./inplace";
import { refuseWrongSecret, type Taken, takeSnapshot } from "./new-snapshot";
import { nowOf, type Replacement } from "./replacement";
import { type Restored, restoreAnew } from "./restored-worktree";
import { type Doomed, planId, planRetention, removeSnapshot } from "./retention";
import { type SnapshotReader, snapshotContext, snapshotReader } from "./snapshot-context";

/** A snapshot is named by its id, whole or short, by a tag, or as "latest". */

export interface SnapshotRequest extends HolderRequest {
  /** What it is, for whoever looks. */
  readonly message?: string | undefined;
  /** Names to find it by; tagged ones are never cleared away. */
  readonly tags?: readonly string[] | undefined;
  /** `quiesced`: fails if anything changes meanwhile; `best_effort`: says so instead. Default: as strict as can be. */
  readonly consistency?: string | undefined;
  /** Also what Git ignores. Default: as `snapshot.ignored` says. */
  readonly ignored?: boolean | undefined;
  /** Fail unless this is the writer lock's token now. */
  readonly fencingToken?: number | undefined;
}

export type SnapshotTaken = Taken & KnownSnapshot;

/** Keeps this worktree as it is. `E_CONSISTENCY_UNAVAILABLE` where it does not hold still. */
async function take(workspace: Workspace, request: SnapshotRequest = {}): Promise<SnapshotTaken> {
  const note = request.message ?? null;
  orThrow(checkText(note, "note"));
  const tags = checkTags(request.tags ?? []);
  const consistency = levelOf(request.consistency);
  const proof = await proofOf(workspace, request);
  const context = await snapshotContext(workspace);
  const taken = await takeSnapshot(context, {
    ...{ note, tags, consistency, ...proof },
    fencingToken: request.fencingToken ?? null,
    ...(request.ignored === undefined ? {} : { withIgnored: request.ignored }),
  });
  return { ...taken, all: await context.descriptors.all() };
}

function levelOf(text: string | undefined): Consistency | null {
  if (text === undefined) return null;
  const level = CONSISTENCY_LEVELS.find((known) => known === text);
  if (level !== undefined) return level;
  throw new CotenantError("E_USAGE", `--consistency is quiesced or best_effort, not "${printable(text)}"`, {
    hint: "leave it out for the strictest that this worktree allows",
  });
}

export interface Difference {
  readonly before: Descriptor;
  /** Null: the worktree as it is now. */
  readonly after: Descriptor | null;
  readonly all: readonly Descriptor[];
  readonly files: readonly Compared[];
  readonly patch: string | null;
}

/** What differs between two snapshots, or between one and this worktree as it is now. Writes nothing. */
async function diff(
  workspace: Workspace,
  request: {
    readonly from: string;
    readonly to?: string | undefined;
    /** Of two snapshots only: the changes line by line. */
    readonly patch?: boolean;
  },
): Promise<Difference> {
  const reader = await snapshotReader(workspace);
  const { descriptor: before, all } = await snapshotMeant(workspace, request.from);
  const after = request.to === undefined ? null : (await snapshotMeant(workspace, request.to)).descriptor;
  if (request.patch === true && after === null)
    throw new CotenantError("E_USAGE", "--patch compares two snapshots", {
      hint: "take one of the worktree as it is now (cotenant snapshot), and name both",
    });
  const { machine, place } = reader;
  const contents = await readContents(machine, place, before);
  const now =
    after === null
      ? await presentFiles(reader, before.includes_ignored)
      : filesOf(await readContents(machine, place, after));
  const files = compareFiles(filesOf(contents), now);
  const isPatch = request.patch === true && after !== null;
  return { before, after, all, files, patch: isPatch ? await patchOf(reader, before, after) : null };
}

async function presentFiles({ machine, place }: SnapshotReader, withIgnored: boolean) {
  const captured = await capture(machine, place, {
    ...{ id: "diff", isQuiesced: false, remembered: null, nowMs: 0, isDry: true, pulse: async () => {} },
    withIgnored,
  });
  return nowOf(captured).files;
}

async function patchOf(
  { machine, place }: SnapshotReader,
  { tree: from }: Descriptor,
  { tree: to }: Descriptor,
): Promise<string> {
  const args = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", from, to];
  const options = { cwd: place.root, timeoutMs: LONG_MS };
  return decode(await ask(machine.git, args, options, "comparing two snapshots"));
}

export interface PruneRequest {
  /** Exactly these. Default: automatic ones beyond `snapshot.keep_automatic`. */
  readonly snapshots?: readonly string[];
  readonly olderThanMs?: number | undefined;
  /** With an age: also those that somebody took. */
  readonly manual?: boolean;
  /** How many automatic ones of a worktree stay. */
  readonly keep?: number | undefined;
  /** Of every worktree, not only of this one. */
  readonly all?: boolean;
  /** Do it: the plan's id, as the same request without it has answered. */
  readonly run?: string | undefined;
}

export interface Pruning {
  readonly doomed: readonly Doomed[];
  readonly all: readonly Descriptor[];
  readonly planId: string;
  readonly removed: boolean;
}

/** Takes old snapshots away: nothing that was not shown before. */
async function prune(workspace: Workspace, request: PruneRequest = {}): Promise<Pruning> {
  const { digest, clock } = workspace.surroundings.platform;
  const all = await descriptorsOf(workspace).all();
  const { worktreeId } = (await workspace.worktree("read")).identity;
  const { manual: withManual = false, olderThanMs = null, run, snapshots = [] } = request;
  const nowMs = clock.wallMs();
  const rules = {
    keepAutomatic: request.keep ?? workspace.config.values["snapshot.keep_automatic"],
    ...{ olderThanMs, withManual },
    worktreeId: request.all === true ? null : worktreeId,
    named: snapshots.map((word) => meantSnapshot(word, all, worktreeId).snapshot_id),
  };
  if (withManual && olderThanMs === null)
    throw new CotenantError("E_USAGE", "--manual takes away by age: --older-than is missing", {
      hint: "for example --older-than 30d --manual; or name the snapshots",
    });
  const doomed = planRetention(all, rules, nowMs);
  const plan = planId((text) => digest.sha256(text), doomed);
  if (run !== undefined && run !== plan)
    throw new CotenantError("E_CONSISTENCY_UNAVAILABLE", "there are other snapshots now than were shown", {
      hint: "look again: the same command without --run",
      data: { plan_id: plan },
    });
  if (run !== undefined) {
    const context = await snapshotContext(workspace);
    for (const { descriptor, why } of doomed) await removeSnapshot(context, descriptor, why);
  }
  return { doomed, all, planId: plan, removed: run !== undefined };
}

export const snapshot = Object.assign(take, { diff, prune });

export interface HistoryRequest {
  /** Those of every worktree, also of removed ones. */
  readonly all?: boolean;
  /** Those of this one: by its id, branch or directory. Default: the caller's. */
  readonly worktree?: string | undefined;
  readonly tag?: string | undefined;
  readonly limit?: number | undefined;
}

export interface History {
  /** Newest first. */
  readonly snapshots: readonly Descriptor[];
  /** Every one that there is, oldest first. */
  readonly all: readonly Descriptor[];
}

/** The snapshots that were taken. Writes nothing, takes no lock. */
export async function history(
  workspace: Workspace,
  { all: wantsAll = false, worktree, tag, limit }: HistoryRequest = {},
): Promise<History> {
  const all = await descriptorsOf(workspace).all();
  const wanted =
    worktree === undefined
      ? (await workspace.worktree("read")).identity.worktreeId
      : /^wt:[0-9a-f]{8}$/.test(worktree)
        ? worktree
        : (await meantWorktree(workspace, worktree)).worktreeId;
  const snapshots = all
    .filter(({ worktree_id: id }) => (wantsAll && worktree === undefined) || id === wanted)
    .filter(({ tags }) => tag === undefined || tags.includes(tag))
    .reverse()
    .slice(0, limit);
  return { snapshots, all };
}

export interface RestoreRequest extends HolderRequest {
  readonly snapshot: string;
  /** Where the new worktree goes. Default: beside the main one. */
  readonly path?: string | undefined;
  /** A new branch for it. Default: none; HEAD is detached. */
  readonly branch?: string | undefined;
  /** Change the files of this worktree instead. */
  readonly inplace?: boolean;
  /** In place: do it; the id that the preview has. */
  readonly run?: string | undefined;
  /** In place: fail unless this is the writer lock's token now. */
  readonly fencingToken?: number | undefined;
}

export interface RestoredWorktree extends KnownSnapshot {
  readonly how: "anew";
  readonly worktree: Restored & { readonly branch: string | null };
}

/** A new worktree; or, in place, what would be done, and what was done. */
export type Restoration =
  | RestoredWorktree
  | (KnownSnapshot & { readonly how: "previewed"; readonly preview: Preview })
  | (KnownSnapshot & {
      readonly how: "inplace";
      readonly plan: Replacement;
      readonly before: Descriptor | null;
    });

/** Brings a snapshot back. */
export async function restore(
  workspace: Workspace,
  request: RestoreRequest & { readonly inplace?: false },
): Promise<RestoredWorktree>;
export async function restore(workspace: Workspace, request: RestoreRequest): Promise<Restoration>;
export async function restore(workspace: Workspace, request: RestoreRequest): Promise<Restoration> {
  const isInPlace = request.inplace === true;
  refuseMixed(request, isInPlace);
  const known = await snapshotMeant(workspace, request.snapshot);
  if (!isInPlace) return { ...known, how: "anew", worktree: await restoredAnew(workspace, known, request) };
  const { worktreeId } = (await workspace.worktree("read")).identity;
  const access = await accessOf(workspace.coordinator, worktreeId);
  refuseShared(access, worktreeId, "others may be writing, so nothing is restored in place");
  const { secret = null } = await proofOf(workspace, request);
  const { run, fencingToken = null } = request;
  const { descriptor } = known;
  if (run === undefined) {
    await refuseWrongSecret(await workspace.session("read"), secret);
    const preview = await previewInPlace(await snapshotReader(workspace), descriptor);
    return { ...known, how: "previewed", preview };
  }
  const context = await snapshotContext(workspace);
  const options = { planId: run, secret, fencingToken };
  return { ...known, how: "inplace", ...(await restoreInPlace(context, descriptor, options)) };
}

async function restoredAnew(
  workspace: Workspace,
  { descriptor, all }: KnownSnapshot,
  { path, branch }: RestoreRequest,
): Promise<Restored & { readonly branch: string | null }> {
  const { repository, config } = workspace;
  if (branch !== undefined) checkBranch(branch);
  const context = await snapshotContext(workspace);
  const mainRoot = repository.mainWorktreeRoot ?? repository.worktreeRoot;
  const usualName = branch ?? `restored-${shortSnapshotId(descriptor.snapshot_id, all)}`;
  const place =
    path === undefined
      ? defaultPlace(mainRoot, config.values["worktree.directory"], usualName)
      : placeNamed(workspace, path);
  await settleMakings(context);
  await refusePlace(context, place);
  if (branch !== undefined)
    await refuseBranch(
      context,
      branch,
      "--branch makes a new one, and moves none: name another, or leave it out",
    );
  const restored = await restoreAnew(context, descriptor, { place, branch: branch ?? null });
  return { ...restored, branch: branch ?? null };
}

function refuseMixed(request: RestoreRequest, isInPlace: boolean): void {
  const { path, branch, run, secretFile } = request;
  const others = isInPlace
    ? { path, branch }
    : { run, "fencing-token": request.fencingToken, "secret-file": secretFile };
  const wrong = Object.entries(others).find(([, value]) => value !== undefined)?.[0];
  if (wrong !== undefined)
    throw new CotenantError("E_USAGE", `--${wrong} goes ${isInPlace ? "without" : "with"} --inplace`, {
      hint: "see 'cotenant restore --help'",
    });
}
