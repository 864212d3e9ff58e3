import { toByteText } from "../../git/byte-text";
import { type FactName, factId } from "../../kernel/facts";
import { settleMakings } from "../worktrees/construction";
import { settleRemovals } from "../worktrees/removal";
import { removeTree } from "../worktrees/tree-removal";
import { refOf } from "./descriptor-store";
import { type Ailment, examine, examineStrictly, isDead, markedPacks } from "./examination";
import { RESTORING } from "./inplace";
import { forget, logReady } from "./milestones";
import { dropRef, makeRef, startRef } from "./snapshot-commit";
import type { SnapshotContext } from "./snapshot-context";

/**
 * Clears up after those who died: what nobody ever saw goes, what everybody sees is logged, what is half made or half
 * removed is finished or undone. Nothing that anybody could miss is touched. Answers what was done, for people.
 */
export async function clearUp(context: SnapshotContext): Promise<string[]> {
  const { session, machine, place, descriptors } = context;
  const done: string[] = [];
  const { ailments } = await examine({ descriptors, coordinator: session.coordinator, machine, place });
  for (const ailment of ailments) done.push(...(await mendSimple(context, ailment)));
  for (const { id, path } of await markedPacks({ machine, place })) {
    const intent = ailments.find((ailment) => ailment.id === id && ailment.what === "underway");
    if (intent === undefined) await machine.platform.files.unlink(path);
  }
  done.push(
    ...(await settleMakings(context)).map((root) => `settled a worktree that was being made: ${root}`),
  );
  done.push(
    ...(await settleRemovals(context)).map((root) => `settled a worktree that was being removed: ${root}`),
  );
  done.push(...(await settleRestores(context)));
  return done;
}

/** The same, and what only a close look finds. */
export async function repair(context: SnapshotContext): Promise<string[]> {
  const done = await clearUp(context);
  const { session, machine, place, descriptors } = context;
  const { ailments } = await examineStrictly({
    descriptors,
    coordinator: session.coordinator,
    machine,
    place,
  });
  for (const ailment of ailments) {
    if (ailment.what === "lost") done.push(await setAside(context, ailment.id));
    if (ailment.what !== "unkept") continue;
    const { status } = await machine.git.run(["cat-file", "-e", `${ailment.commit}^{commit}`], {
      cwd: place.commonDir,
    });
    const taken = await machine.git.run(["show-ref", "--verify", "--quiet", refOf(ailment.id)], {
      cwd: place.commonDir,
    });
    if (status !== 0 || taken.status === 0) continue;
    const writer = await startRef(machine, place, ailment.id);
    try {
      await makeRef(writer, ailment.id, ailment.commit);
    } finally {
      await writer.close();
    }
    done.push(`made the ref of snapshot ${ailment.id} again`);
  }
  return done;
}

/** Its ref stays, and with it all that it holds. */
async function setAside({ session, descriptors }: SnapshotContext, id: string): Promise<string> {
  await session.write([], {
    about: `snapshot ${id}`,
    facts: [],
    body: async () => {
      await descriptors.setAside(id);
      return { type: "snapshot.set_aside", payload: { snapshot_id: id }, facts: new Map(), answer: null };
    },
  });
  return `set aside snapshot ${id}, whose .READY is gone; its files: git show ${refOf(id)}`;
}

async function mendSimple(context: SnapshotContext, ailment: Ailment): Promise<string[]> {
  const { machine, place, descriptors } = context;
  const { id } = ailment;
  if (ailment.what === "unlogged") {
    await logReady(context, ailment.descriptor);
    return [`logged snapshot ${id}, which was ready`];
  }
  if (ailment.what !== "unfinished" && ailment.what !== "remains") return [];
  await clearRefLock(context, id);
  if (ailment.what === "unfinished") await forget(context, id);
  else {
    await dropRef(machine, place, id);
    await descriptors.clear(id);
  }
  return [`cleared away what was left of snapshot ${id}`];
}

/** As PROTOCOL 19: whoever locked the ref is dead, and nobody else ever names it. */
const QUIET_MS = 10_000;

async function clearRefLock({ machine, place }: SnapshotContext, id: string): Promise<void> {
  const { files, clock } = machine.platform;
  const lock = `${place.commonDir}/${refOf(id)}.lock`;
  const stat = await files.lstat(lock);
  if (stat !== null && stat.mtimeMs < clock.wallMs() - QUIET_MS) await files.unlink(lock);
}

/** In-place restores whose process died: what was laid out goes; what was there before is a snapshot. */
async function settleRestores(context: SnapshotContext): Promise<string[]> {
  const { session, machine, trees } = context;
  const done: string[] = [];
  for (const [name, { value }] of await session.coordinator.facts({ kinds: [RESTORING] })) {
    const { maker, bench, before } = value;
    if (typeof maker !== "object" || maker === null || typeof bench !== "string") continue;
    if (!(await isDead(machine, maker as Parameters<typeof isDead>[1]))) continue;
    if (/\/\.cotenant\/restore\.new-[0-9a-f]{12}$/.test(bench)) await removeTree(trees, toByteText(bench));
    await session.log(`restore in ${worktreeOf(name)}`, {
      type: "snapshot.interrupted",
      payload: { worktree_id: worktreeOf(name), before, inplace: true },
      facts: new Map([[name, null]]),
    });
    done.push(`an in-place restore was cut off; what was there before is snapshot ${String(before)}`);
  }
  return done;
}

function worktreeOf(name: FactName): string {
  return factId(name);
}
