import { toByteText } from "../../git/byte-text";
import { type FactName, factId } from "../../kernel/facts";
import { settleMakings } from "../worktrees/making";
import { settleRemovals } from "../worktrees/removing";
import { removeTree } from "../worktrees/tree-removal";
import { dropRef, makeRef, startRef } from "./committing";
import type { Darkroom } from "./darkroom";
import { type Ailment, examine, examineStrictly, isDead, markedPacks } from "./examining";
import { RESTORING } from "./inplace";
import { forget, logReady } from "./milestones";
import { refOf } from "./shelf";

/**
 * Clears up after those who died: what nobody ever saw goes, what everybody sees is logged, what is half made or half
 * removed is finished or undone. Nothing that anybody could miss is touched. Answers what was done, for people.
 */
export async function clearUp(room: Darkroom): Promise<string[]> {
  const { session, studio, place, shelf } = room;
  const done: string[] = [];
  const { ailments } = await examine({ shelf, coordinator: session.coordinator, studio, place });
  for (const ailment of ailments) done.push(...(await mendSimple(room, ailment)));
  for (const { id, path } of await markedPacks({ studio, place })) {
    const intent = ailments.find((ailment) => ailment.id === id && ailment.what === "underway");
    if (intent === undefined) await studio.platform.files.unlink(path);
  }
  done.push(...(await settleMakings(room)).map((root) => `settled a worktree that was being made: ${root}`));
  done.push(
    ...(await settleRemovals(room)).map((root) => `settled a worktree that was being removed: ${root}`),
  );
  done.push(...(await settleRestores(room)));
  return done;
}

/** The same, and what only a close look finds. */
export async function repair(room: Darkroom): Promise<string[]> {
  const done = await clearUp(room);
  const { session, studio, place, shelf } = room;
  const { ailments } = await examineStrictly({ shelf, coordinator: session.coordinator, studio, place });
  for (const ailment of ailments) {
    if (ailment.what === "lost") done.push(await setAside(room, ailment.id));
    if (ailment.what !== "unkept") continue;
    const { status } = await studio.git.run(["cat-file", "-e", `${ailment.commit}^{commit}`], {
      cwd: place.commonDir,
    });
    const taken = await studio.git.run(["show-ref", "--verify", "--quiet", refOf(ailment.id)], {
      cwd: place.commonDir,
    });
    if (status !== 0 || taken.status === 0) continue;
    const writer = await startRef(studio, place, ailment.id);
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
async function setAside({ session, shelf }: Darkroom, id: string): Promise<string> {
  await session.write([], {
    about: `snapshot ${id}`,
    facts: [],
    body: async () => {
      await shelf.setAside(id);
      return { type: "snapshot.set_aside", payload: { snapshot_id: id }, facts: new Map(), answer: null };
    },
  });
  return `set aside snapshot ${id}, whose .READY is gone; its files: git show ${refOf(id)}`;
}

async function mendSimple(room: Darkroom, ailment: Ailment): Promise<string[]> {
  const { studio, place, shelf } = room;
  const { id } = ailment;
  if (ailment.what === "unlogged") {
    await logReady(room, ailment.descriptor);
    return [`logged snapshot ${id}, which was ready`];
  }
  if (ailment.what !== "unfinished" && ailment.what !== "remains") return [];
  await clearRefLock(room, id);
  if (ailment.what === "unfinished") await forget(room, id);
  else {
    await dropRef(studio, place, id);
    await shelf.clear(id);
  }
  return [`cleared away what was left of snapshot ${id}`];
}

/** As PROTOCOL 19: whoever locked the ref is dead, and nobody else ever names it. */
const QUIET_MS = 10_000;

async function clearRefLock({ studio, place }: Darkroom, id: string): Promise<void> {
  const { files, clock } = studio.platform;
  const lock = `${place.commonDir}/${refOf(id)}.lock`;
  const stat = await files.lstat(lock);
  if (stat !== null && stat.mtimeMs < clock.wallMs() - QUIET_MS) await files.unlink(lock);
}

/** In-place restores whose process died: what was laid out goes; what was there before is a snapshot. */
async function settleRestores(room: Darkroom): Promise<string[]> {
  const { session, studio, trees } = room;
  const done: string[] = [];
  for (const [name, { value }] of await session.coordinator.facts({ kinds: [RESTORING] })) {
    const { maker, bench, before } = value;
    if (typeof maker !== "object" || maker === null || typeof bench !== "string") continue;
    if (!(await isDead(studio, maker as Parameters<typeof isDead>[1]))) continue;
    if (/\/\.cotenant\/restore\.new-[0-9a-f]{12}$/.test(bench)) await removeTree(trees, toByteText(bench));
    await session.write([], {
      about: `restore in ${worktreeOf(name)}`,
      facts: [],
      body: async () => ({
        type: "snapshot.interrupted",
        payload: { worktree_id: worktreeOf(name), before, inplace: true },
        facts: new Map([[name, null]]),
        answer: null,
      }),
    });
    done.push(`an in-place restore was cut off; what was there before is snapshot ${String(before)}`);
  }
  return done;
}

function worktreeOf(name: FactName): string {
  return factId(name);
}
