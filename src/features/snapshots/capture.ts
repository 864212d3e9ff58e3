import { CotenantError } from "../../errors/cotenant-error";
import { type ByteText, fromByteText } from "../../git/byte-text";
import { nameOf } from "../../git/pack-writer";
import { currentBranch } from "../../identity/branch";
import { headCommit } from "../../identity/head-commit";
import { printable } from "../../kernel/ids";
import { readIndex, type TreePlace } from "./listing";
import { ObjectSink } from "./object-sink";
import { encodeRest, type Parts, partsOf } from "./parts";
import { type Picture, spoilYoung } from "./picture";
import { headTree, objectPlace, type SnapshotMachine } from "./snapshot-context";
import { keepStaged } from "./staged";
import type { Remembered } from "./stat-cache";
import type { Put } from "./tree-builder";
import { TreeScan } from "./tree-scan";

export interface Captured {
  readonly picture: Picture;
  readonly parts: Parts;
  /** Nothing at all is different from what is remembered. */
  readonly isSame: boolean;
  readonly sink: ObjectSink;
  /** When the look at it began, by the clock that stamps files. */
  readonly atMs: number;
  /** How many files were read. */
  readonly read: number;
}

export interface CaptureOptions {
  readonly id: string;
  readonly withIgnored: boolean;
  /** Whether it must be one state that was there at one time. */
  readonly isQuiesced: boolean;
  readonly remembered: Remembered | null;
  /** The present, by the clock that stamps files: this machine's own may say anything. */
  readonly nowMs: number;
  /** Only to see what it would be: nothing is written. */
  readonly isDry?: boolean;
  /** Called once there turns out to be something to read. */
  readonly onChange?: () => Promise<void>;
  /** Called every now and then while there is much to read. It may throw. */
  readonly pulse: () => Promise<void>;
}

/** Reads a working tree into objects. Nothing refers to them yet; the user's index, stash and branches are only read. */
export async function capture(
  machine: SnapshotMachine,
  place: TreePlace,
  options: CaptureOptions,
): Promise<Captured> {
  const old = options.remembered?.picture ?? null;
  const { id, isDry = false } = options;
  const sinkFor = (known: ReadonlySet<string>) =>
    new ObjectSink(machine.platform, machine.git, objectPlace(machine, place), { known, id, isDry });
  const look = new TreeScan(machine, place, { withIgnored: options.withIgnored, old });
  const marks = await look.marks(options.nowMs);
  const seen = await look.first();
  const head = await headCommit(machine.platform, machine.git, { ...place, worktreeRoot: place.root });
  const branch = await currentBranch(machine.platform, machine.git, place.gitDir);
  const before = options.remembered?.rest as unknown as Parts | undefined;
  const isIndexSame = before !== undefined && before.indexMark === marks.indexMark && before.head === head;
  const isRootSame = before?.rootMark === marks.rootMark;
  if (seen.isSame && isIndexSame && isRootSame && before.branch === branch) {
    // The last snapshot has the very same tree beside its files.
    const sink = sinkFor(new Set([nameOf(machine.platform, machine.format, "tree", encodeRest(before))]));
    return {
      picture: options.remembered!.picture,
      parts: before,
      isSame: true,
      sink,
      read: 0,
      atMs: options.nowMs,
    };
  }
  await options.onChange?.();
  const staged = isIndexSame && seen.few ? null : await readIndex(machine.git, place);
  const known = await look.known(staged, head);
  const sink = sinkFor(known);
  const put: Put = (type, content) => sink.put(type, content);
  const { picture, unlisted, hasher, byCommit } = await look.develop(put, seen, staged, {
    pulse: options.pulse,
    isDry,
  });
  if (options.isQuiesced && (hasher.restless.length > 0 || !(await look.isStill(picture))))
    throw notStill(hasher.restless);
  const stagedParts =
    staged === null ? before! : await keepStaged(put, staged, await headTree(machine, place, head));
  const parts = await partsOf(machine, put, { picture, unlisted, hasher, byCommit }, stagedParts, {
    head,
    branch,
    ...marks,
  });
  return { picture, parts, isSame: false, sink, read: look.read, atMs: options.nowMs };
}

/** Whether a tree is as it was when the picture was made. */
export async function isUnchanged(
  machine: SnapshotMachine,
  place: TreePlace,
  picture: Picture,
  withIgnored: boolean,
): Promise<boolean> {
  return new TreeScan(machine, place, { withIgnored, old: null }).isStill(picture);
}

function notStill(paths: readonly ByteText[]): CotenantError {
  const named = paths.slice(0, 5).map((path) => fromByteText(path));
  const which = named.length === 0 ? "files" : named.map((name) => printable(name, 100)).join(", ");
  return new CotenantError("E_CONSISTENCY_UNAVAILABLE", `${which} changed while the snapshot was taken`, {
    hint: "wait until nobody writes here, or take it with --consistency best_effort",
    data: { paths: named },
  });
}

/** For the next time. */
export function remember(
  { youngMs }: SnapshotMachine,
  snapshotId: string,
  { picture, parts, atMs }: Captured,
): Remembered {
  spoilYoung(picture.rows, atMs, youngMs);
  spoilYoung(picture.directoryRows, atMs, youngMs);
  return { snapshotId, picture, rest: parts as unknown as Readonly<Record<string, unknown>> };
}
