import { CotenantError } from "../../errors/cotenant-error";
import { encodeCommit, type Signature } from "../../git/commit";
import { NewRef } from "../../git/new-ref";
import type { ObjectId } from "../../git/object-name";
import { RefMoved, RefWriter, RefWriterLost } from "../../git/refs";
import type { Captured } from "./capture";
import { refOf } from "./descriptor-store";
import type { TreePlace } from "./listing";
import { encodeRest } from "./parts";
import type { SnapshotMachine } from "./snapshot-context";

export interface Caption {
  readonly id: string;
  readonly worktreeId: string;
  readonly agentId: string;
  readonly note: string | null;
  readonly atMs: number;
  /** Commits that nothing else leads to. */
  readonly tips: readonly ObjectId[];
}

/**
 * Two commits. The first has the files as its tree, so that plain Git can show and check it out, and the commit that the
 * worktree was on as its parent, so that it stays; its second parent has what Git's trees cannot say.
 */
export async function commitCaptured(captured: Captured, caption: Caption): Promise<ObjectId> {
  const { picture, parts, sink } = captured;
  const rest = await sink.put("tree", encodeRest(parts));
  const author: Signature = {
    name: caption.agentId,
    email: "cotenant@localhost",
    time: Math.floor(caption.atMs / 1000),
    zone: "+0000",
  };
  const commit = (tree: ObjectId, parents: readonly ObjectId[], message: string) =>
    sink.put("commit", encodeCommit({ tree, parents, author, committer: author, message }));
  const trailers = [
    `Cotenant-Snapshot: ${caption.id}`,
    `Cotenant-Worktree: ${caption.worktreeId}`,
    `Cotenant-Agent: ${caption.agentId}`,
  ].join("\n");
  const second = await commit(rest, caption.tips, `what belongs to snapshot ${caption.id}\n\n${trailers}\n`);
  const parents = [...(parts.head === null ? [] : [parts.head]), second];
  return commit(picture.tree, parents, `${caption.note ?? `snapshot ${caption.id}`}\n\n${trailers}\n`);
}

/** The Git that will make the ref, started before it is needed: it gets ready while files are read. */
export async function startRef(machine: SnapshotMachine, place: TreePlace, id: string): Promise<RefWriter> {
  const writer = refWriter(machine, place, `snapshot ${id}`);
  await writer.start([]);
  return writer;
}

/** The ref that keeps it; on the disk when this returns. Its Git may still be on the way out: the caller closes it. */
export async function makeRef(writer: RefWriter, id: string, commit: ObjectId): Promise<void> {
  try {
    // One that was ended meanwhile is replaced.
    await writer.start([]);
    await writer.prepare([{ ref: refOf(id), next: commit, previous: null }]);
    if (!(await writer.commit())) throw notMade(id, "Git ended without a word");
    await writer.sync([refOf(id)]);
  } catch (error) {
    throw error instanceof RefMoved || error instanceof RefWriterLost ? notMade(id, error.message) : error;
  }
}

/** For one that is made without Git; null where only Git can. */
export function newRef(machine: SnapshotMachine, place: TreePlace, id: string, aside: string): NewRef | null {
  const { platform, format: objectFormat, refFormat } = machine;
  if (refFormat !== "files") return null;
  const config = { objectFormat, refFormat };
  return new NewRef(
    platform,
    { worktreeRoot: place.root, commonDir: place.commonDir, config, aside },
    refOf(id),
  );
}

/** Whether or not it is there. */
export async function dropRef(machine: SnapshotMachine, place: TreePlace, id: string): Promise<void> {
  const { status, stderr } = await machine.git.run(["update-ref", "--no-deref", "-d", refOf(id)], {
    cwd: place.commonDir,
  });
  if (status !== 0)
    throw new CotenantError("E_GIT", `Git did not take away ${refOf(id)}: ${stderr.trim().slice(0, 300)}`, {
      hint: "run it again; if it stays so, look whether another Git is at work in this repository",
      data: { ref: refOf(id) },
    });
}

function refWriter(
  { platform, git, format, refFormat }: SnapshotMachine,
  { commonDir }: TreePlace,
  reason: string,
): RefWriter {
  const config = { objectFormat: format, refFormat };
  return new RefWriter(platform, git, { worktreeRoot: commonDir, commonDir, config }, reason);
}

function notMade(id: string, said: string): CotenantError {
  return new CotenantError("E_GIT", `Git did not make ${refOf(id)}: ${said}`, { data: { ref: refOf(id) } });
}
