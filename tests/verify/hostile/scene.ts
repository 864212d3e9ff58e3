import type { WorktreeId } from "../../../src/kernel/ids";
import { tidy } from "../../../src/store/housekeeping";
import type { Prng, SimWorld } from "../../../testing/simulator";
import { byKey, CONTROL, enter, freshId, type Party, quietWorld } from "../../store/stage";

/** A simulated repository in which something has happened, and who was there. */
export interface Scene {
  readonly world: SimWorld;
  readonly parties: readonly Party[];
}

const KEYS = [
  "file:a",
  "file:src/b",
  "dir:src",
  "file:d/é",
  "resource:Staging db",
  "ref:refs/heads/main",
  "scope:config",
];

/** Grants, renewals, hand-overs and endings of every kind, in an order of the seed's choice. */
export async function makeScene(prng: Prng, steps = prng.between(4, 9), shortTtlSecs = 1): Promise<Scene> {
  const world = quietWorld(prng.below(1_000_000));
  const [a, b] = [enter(world, "agent:a"), enter(world, "agent:b", { worktree: "wt:00000002" })];
  const human = enter(world, "human:h");
  await a.acquire("file:first");
  await human.acquire("scope:forever", { ttlSecs: 0, reason: "for good" });
  for (let step = 0; step < steps; step++) {
    const name = prng.pick(KEYS);
    const party = prng.pick([a, b]);
    const other = party === a ? b : a;
    // Many are refused, and that is part of the story.
    await happening(prng, { party, other, human, name, shortTtlSecs }).catch(() => {});
    if (prng.chance(0.15)) world.advance(prng.pick([500, 2_000, 60_000]));
  }
  if (prng.chance(0.25)) await tidy(human.store, human.logActor, { compact: true, flatIndex: {} });
  await a.acquire(`file:last${prng.below(3)}`);
  return { world, parties: [a, b, human] };
}

interface Cast {
  readonly party: Party;
  readonly other: Party;
  readonly human: Party;
  readonly name: string;
  readonly shortTtlSecs: number;
}

async function happening(prng: Prng, { party, other, human, name, shortTtlSecs }: Cast): Promise<unknown> {
  switch (prng.below(8)) {
    case 0:
      return party.release(name);
    case 1:
      return party.renew(name, prng.between(60, 900));
    case 2:
      return human.session.evict([byKey(name)], { reason: "enough" });
    case 3:
      return party.session.transfer(byKey(name), {
        toAgent: other.actor.agentId,
        toWorktree: other.actor.worktreeId as WorktreeId,
        toBranch: null,
        reason: "yours",
      });
    case 4:
      return party.acquire([name, `${name.startsWith("file:") ? name : "file:x"}.two`], {
        ttlSecs: shortTtlSecs,
      });
    case 5:
      return party.acquire(name, { requestId: freshId(party.platform), note: "é \u{1f4be}" });
    case 6:
      return party.acquire({ key: "file:wide", reach: "worktree" }, { bind: "process" });
    default:
      return party.acquire(name);
  }
}

/** Every file of the control plane. */
export function photograph(world: SimWorld): Map<string, Uint8Array> {
  const photo = new Map<string, Uint8Array>();
  for (const path of world.disk.paths()) {
    const bytes = path.startsWith(`${CONTROL}/`) ? world.disk.peek(path) : null;
    if (bytes !== null) photo.set(path, bytes);
  }
  return photo;
}

/** A machine that finds these files as another one left them. */
export function develop(photo: ReadonlyMap<string, Uint8Array>, seed: number): SimWorld {
  const world = quietWorld(seed);
  const folders = new Set([...photo.keys()].map((path) => path.slice(0, path.lastIndexOf("/"))));
  for (const name of ["archive", "index", "queue", "heartbeat", "locks", "secrets"])
    folders.add(`${CONTROL}/${name}`);
  for (const folder of folders) world.disk.makePath(folder, 0o700);
  for (const [path, bytes] of photo) world.disk.install(path, bytes);
  return world;
}

/** What is there besides the control plane: nothing we do may change it. */
export function surroundings(world: SimWorld): string {
  return world.disk
    .paths()
    .filter((path) => !path.startsWith(`${CONTROL}/`))
    .join("\n");
}
