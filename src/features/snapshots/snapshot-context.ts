import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import type { ByteText } from "../../git/byte-text";
import { ObjectDatabase } from "../../git/database";
import type { ObjectFormat, ObjectId } from "../../git/object-name";
import type { LastingGit } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import type { Trees } from "../../platform/trees";
import { type DescriptorStore, descriptorsOf } from "./descriptor-store";
import type { TreePlace } from "./listing";

/** Everything that a snapshot of one worktree takes. */
export interface SnapshotContext {
  readonly workspace: Workspace;
  readonly session: Session;
  readonly trees: Trees;
  readonly machine: SnapshotMachine;
  readonly place: TreePlace;
  readonly descriptors: DescriptorStore;
}

/** For those who only look. */
export type SnapshotReader = Omit<SnapshotContext, "session">;

/** What snapshots are made with. */
export interface SnapshotMachine {
  readonly platform: Platform;
  readonly git: LastingGit;
  readonly trees: Trees;
  readonly format: ObjectFormat;
  readonly refFormat: "files" | "reftable";
  /** What changed less than this before it was read is not believed the next time. */
  readonly youngMs?: number;
}

/** A repository inside that is kept by its commit alone. */
export interface ByCommit {
  readonly path: ByteText;
  readonly commit: ObjectId;
}

export async function snapshotContext(workspace: Workspace): Promise<SnapshotContext> {
  return { ...(await snapshotReader(workspace)), session: await workspace.session("write") };
}

export async function snapshotReader(workspace: Workspace): Promise<SnapshotReader> {
  const { surroundings, repository } = workspace;
  const { platform, git } = surroundings;
  const { worktreeRoot: root, gitDir, commonDir, config } = repository;
  const trees = await surroundings.tools.trees();
  return {
    ...{ workspace, trees },
    machine: { platform, git, trees, format: config.objectFormat, refFormat: config.refFormat },
    place: { root, gitDir, commonDir },
    descriptors: descriptorsOf(workspace),
  };
}

export function objectPlace({ format }: SnapshotMachine, { root, commonDir }: TreePlace) {
  return { worktreeRoot: root, commonDir, config: { objectFormat: format } };
}

export async function headTree(
  machine: SnapshotMachine,
  place: TreePlace,
  head: ObjectId | null,
): Promise<ObjectId | null> {
  if (head === null) return null;
  const database = new ObjectDatabase(machine.platform, machine.git, objectPlace(machine, place));
  try {
    return (await database.readCommit(head)).tree;
  } finally {
    await database.close();
  }
}
