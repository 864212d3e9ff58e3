import type { ByteText } from "../../git/byte-text";
import { ObjectDatabase } from "../../git/database";
import type { ObjectFormat, ObjectId } from "../../git/object-name";
import type { LastingGit } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import type { Trees } from "../../platform/trees";
import type { TreePlace } from "./listing";

/** What snapshots are made with. */
export interface Studio {
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

export function objectPlace({ format }: Studio, { root, commonDir }: TreePlace) {
  return { worktreeRoot: root, commonDir, config: { objectFormat: format } };
}

export async function headTree(
  studio: Studio,
  place: TreePlace,
  head: ObjectId | null,
): Promise<ObjectId | null> {
  if (head === null) return null;
  const database = new ObjectDatabase(studio.platform, studio.git, objectPlace(studio, place));
  try {
    return (await database.readCommit(head)).tree;
  } finally {
    await database.close();
  }
}
