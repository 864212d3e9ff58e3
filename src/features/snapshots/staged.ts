import { type ByteText, bytesOf } from "../../git/byte-text";
import type { ObjectId } from "../../git/object-name";
import { isSubmodule, type Staged } from "./listing";
import { buildTrees, type Put } from "./tree-builder";

/** The user's index, as objects. Null where it says nothing that the commit does not say. */
export interface StagedParts {
  readonly index: ObjectId | null;
  /** Of a merge that is not settled: `1/`, `2/` and `3/`, each with the versions of that stage. */
  readonly stages: ObjectId | null;
  /** Names that are left out of the working tree on purpose. */
  readonly skipped: ObjectId | null;
}

export async function keepStaged(
  put: Put,
  staged: readonly Staged[],
  headTree: ObjectId | null,
): Promise<StagedParts> {
  const settled = staged.filter(({ stage }) => stage === 0);
  const unsettled = staged.filter(({ stage }) => stage !== 0);
  const skipped = settled.filter(({ isSkipped }) => isSkipped).map(({ path }) => path);
  // Git names it for a file that is only meant to be added, whether there is such an object or not.
  await put("blob", new Uint8Array());
  const leaf = ({ path, mode, oid }: Staged) => ({ path, mode, oid });
  const { root } = await buildTrees(put, settled.map(leaf));
  const isSame = unsettled.length === 0 && root === headTree;
  const stages =
    unsettled.length === 0
      ? null
      : (
          await buildTrees(
            put,
            unsettled.map((one) => ({ ...leaf(one), path: `${one.stage}/${one.path}` })),
          )
        ).root;
  return {
    index: isSame ? null : root,
    stages,
    skipped: skipped.length === 0 ? null : await put("blob", joinNames(skipped)),
  };
}

function joinNames(names: readonly ByteText[]): Uint8Array {
  return bytesOf(names.map((name) => `${name}\0`).join(""));
}

/** Objects that the index keeps alive. */
export function blobsOf(staged: readonly Staged[]): ObjectId[] {
  return staged.filter((entry) => !isSubmodule(entry)).map(({ oid }) => oid);
}
