import { conflict } from "../../../src/kernel/conflicts";
import type { LeaseId } from "../../../src/kernel/ids";
import { type Lease, sameParty } from "../../../src/kernel/lease";
import { recover } from "../../../src/store/recover";
import type { Prng, SimWorld } from "../../../testing/simulator";
import { byKey, CONTROL, codeOf, enter, LOG, type Party, sha256 } from "../../store/stage";
import { expectThat, outcomeOf, successOf } from "./finding";
import { encode, Mutator } from "./mutator";
import { makeScene, photograph, surroundings } from "./scene";
import type { Count } from "./target";

/** What the log says, before anybody touches the index. */
interface Truth {
  readonly leases: readonly string[];
  readonly held: readonly Lease[];
  /** A lease that was taken from its holder. */
  readonly taken: LeaseId;
}

const VICTIM = "file:taken";
const TRIALS_PER_WORLD = 25;

/** Files below index/, one at a time, changed, cut short, exchanged and lost. */
export class HostileIndexes {
  #world: SimWorld | null = null;
  #truth: Truth | null = null;
  #left = 0;

  async try(prng: Prng, count: Count): Promise<void> {
    if (this.#left-- <= 0 || this.#world === null) {
      const { world, parties } = await makeScene(prng, 5, 600);
      const taken = await takeAway(parties[0]!, parties[2]!);
      this.#world = world;
      this.#truth = await truthOf(world, taken);
      this.#left = TRIALS_PER_WORLD;
    }
    const world = this.#world;
    const truth = this.#truth!;
    const around = surroundings(world);
    // Whatever goes wrong now, the next trial starts from something sound.
    this.#world = null;
    const change = await spoil(world, new Mutator(prng));
    count(`index: ${change.kind} ${change.how}`);
    if (change.how === "forged") await checkForged(world);
    else {
      await checkReads(world, truth, change);
      if (prng.chance(0.5)) await checkWrites(world, truth, change);
      await checkReads(world, truth, change);
    }
    expectThat(surroundings(world) === around, "something was written outside the control plane");
    // A forged index is believed, as it may be; nobody goes on from there.
    if (change.how === "forged" || change.how === "deleted") return;
    this.#world = world;
  }
}

async function takeAway(holder: Party, human: Party): Promise<LeaseId> {
  const { leases } = await holder.acquire(VICTIM);
  await human.session.evict([byKey(VICTIM)], { reason: "enough" });
  return leases[0]!.leaseId;
}

async function truthOf(world: SimWorld, taken: LeaseId): Promise<Truth> {
  const reader = enter(world, "agent:truth");
  const held = (await reader.coordinator.list()).map(({ lease }) => lease);
  return { leases: await listed(world), held, taken };
}

async function listed(world: SimWorld): Promise<string[]> {
  const reader = enter(world, "agent:reader");
  const all = await successOf("list", () => reader.coordinator.list({ lapsed: true }));
  return all.map(({ lease }) => JSON.stringify(lease)).sort();
}

interface Change {
  readonly kind: string;
  readonly how: "mutated" | "rewritten" | "exchanged" | "deleted" | "forged";
}

const TOO_DEEP = "[".repeat(5_000);

async function spoil(world: SimWorld, mutator: Mutator): Promise<Change> {
  const { prng } = mutator;
  const photo = [...photograph(world)].filter(([path]) => path.startsWith(`${CONTROL}/index/`));
  // Every kind alike: there are many leases, and one census.
  const kind = prng.pick([...new Set(photo.map(([path]) => kindOf(path)))]);
  const [path, bytes] = prng.pick(photo.filter(([path]) => kindOf(path) === kind));
  const text = Buffer.from(bytes).toString("utf8");
  const lot = prng.below(10);
  if (lot === 0) {
    await enter(world, "agent:vandal").platform.files.unlink(path);
    return { kind, how: "deleted" };
  }
  if (lot === 1) {
    world.disk.install(path, prng.pick(photo)[1]);
    return { kind, how: "exchanged" };
  }
  // What an earlier one has nested too deep to be copied is only spoilt further as bytes.
  const sealed = lot < 6 && !text.includes(TOO_DEEP) ? sealedIn(text) : null;
  if (sealed !== null) {
    const { sum, value } = sealed;
    const body = mutator.json(value);
    const isForged = lot === 2;
    const seal = isForged ? sha256(body).slice(0, 32) : sum;
    world.disk.install(path, encode(`{"sum":"${seal}","value":${body}}`.padEnd(bytes.length - 1) + "\n"));
    return { kind, how: isForged ? "forged" : "rewritten" };
  }
  const isZeroed = kind === "census" && lot < 8;
  world.disk.install(path, isZeroed ? withLostSectors(bytes, prng) : mutator.bytes(bytes));
  return { kind, how: "mutated" };
}

/** Zeros where a sector or a page was. */
function withLostSectors(bytes: Uint8Array, prng: Prng): Uint8Array {
  const size = prng.pick([512, 4096]);
  const at = prng.below(Math.ceil(bytes.length / size)) * size;
  return bytes.slice().fill(0, at, at + size);
}

/** Null for what is no document, or no longer one. */
function sealedIn(text: string): { sum: string; value: unknown } | null {
  try {
    return JSON.parse(text) as { sum: string; value: unknown };
  } catch {
    return null;
  }
}

function kindOf(path: string): string {
  const name = path.slice(`${CONTROL}/index/`.length).split("/")[0]!;
  return name.startsWith("census") ? "census" : name;
}

/** Promise 5: the same answers, whatever has become of the index. */
async function checkReads(world: SimWorld, truth: Truth, change: Change): Promise<void> {
  const now = await listed(world);
  const lost = truth.leases.find((lease) => !now.includes(lease));
  expectThat(lost === undefined, `index ${change.kind} ${change.how}: a lease is not shown: ${lost}`);
  const extra = now.find((lease) => !truth.leases.includes(lease));
  expectThat(extra === undefined, `index ${change.kind} ${change.how}: a lease is made up: ${extra}`);
}

async function checkWrites(world: SimWorld, truth: Truth, change: Change): Promise<void> {
  const stranger = enter(world, "agent:stranger", { worktree: "wt:0000000f" });
  for (const lease of truth.held.filter(({ reach }) => reach === "repository")) {
    const again = await outcomeOf(`acquire ${lease.key}`, () => stranger.acquire(lease.key));
    expectThat(!again.ok && again.code === "E_LOCK_CONFLICT", `granted twice: ${lease.key}`);
  }
  await successOf("acquire", () => stranger.acquire("resource:fresh"));
  await successOf("release", () => stranger.release("resource:fresh"));
  const former = enter(world, "agent:a");
  const told = await codeOf(
    former.session.renew([{ key: null, leaseId: truth.taken }], {
      ttlSecs: null,
      overrideMax: false,
      reason: null,
    }),
  );
  // The one thing that may be lost with a file of the index, and docs/GUARANTEES.md says so.
  const mayNotKnow = change.kind === "ended" && change.how === "deleted";
  const isRight = told === "E_FENCING_MISMATCH" || (mayNotKnow && told === "E_NOT_FOUND");
  expectThat(isRight, `index ${change.kind} ${change.how}: a former holder is told ${told}`);
}

/** Somebody who makes new seals is believed; but nothing crashes, and without the index all is well again. */
async function checkForged(world: SimWorld): Promise<void> {
  const party = enter(world, "agent:b", { worktree: "wt:0000000e" });
  await outcomeOf("list", () => party.coordinator.list({ lapsed: true }));
  await outcomeOf("acquire", () => party.acquire("resource:fresh"));
  await outcomeOf("acquire without expiry", () => party.acquire("scope:fresh", { ttlSecs: 0, reason: "r" }));
  await outcomeOf("acquire all", () => party.acquire("dir:."));
  await outcomeOf("gc", () => party.coordinator.gc({ actor: party.actor }));
  await outcomeOf("recover", () => recover(party.store, party.logActor));
  const { files } = party.platform;
  for (const path of world.disk.paths())
    if (path.startsWith(`${CONTROL}/index/`) && !path.endsWith("/")) await files.unlink(path);
  const log = world.disk.peek(LOG);
  const after = enter(world, "agent:c");
  const leases = (await successOf("list", () => after.coordinator.list())).map(({ lease }) => lease);
  expectThat(log !== null && leases.length > 0, "a forged index cost the log");
  for (const [i, one] of leases.entries())
    for (const other of leases.slice(i + 1))
      expectThat(!conflict(one, other) || sameParty(one, other), `both stand: ${one.key} and ${other.key}`);
}
