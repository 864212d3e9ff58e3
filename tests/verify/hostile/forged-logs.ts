import { tidy } from "../../../src/store/housekeeping";
import { recover } from "../../../src/store/recover";
import type { Prng, SimWorld } from "../../../testing/simulator";
import { enter, freshId, history, LOG, sha256 } from "../../store/stage";
import { expectThat, outcomeOf, successOf } from "./finding";
import { encode, Mutator } from "./mutator";
import { develop, makeScene, photograph, surroundings } from "./scene";
import type { Count } from "./target";

/** What somebody who recomputes the sums may see. Nothing else may happen, and all of it must end well. */
const REFUSALS = ["E_LOG_CORRUPT", "E_SCHEMA_NEWER"];

/**
 * Logs whose sums are right and whose content is absurd: other programs, bugs of ours, somebody's script. Nobody is
 * asked to find out that they were forged; but no reader may crash on them, and no writer may make it worse.
 */
export class ForgedLogs {
  readonly #photos: Map<string, Uint8Array>[] = [];

  async try(prng: Prng, count: Count): Promise<void> {
    if (this.#photos.length < 8) this.#photos.push(photograph((await makeScene(prng)).world));
    const photo = new Map(prng.pick(this.#photos));
    for (const path of photo.keys()) if (prng.chance(0.5) && path.includes("/index/")) photo.delete(path);
    photo.set(LOG, encode(forged(new Mutator(prng), Buffer.from(photo.get(LOG)!).toString("utf8"))));
    const world = develop(photo, prng.below(1_000_000));
    const around = surroundings(world);
    const goesOn = await work(world);
    count(goesOn ? "forged log used" : "forged log refused");
    if (goesOn) await tidyUp(world);
    else await mend(world);
    expectThat(surroundings(world) === around, "something was written outside the control plane");
  }
}

/** One line says something else, and every sum and link after it is right again. */
function forged(mutator: Mutator, log: string): string {
  const lines = log.split("\n").filter((line) => line !== "");
  const at = mutator.prng.below(lines.length);
  let prev: string | null = null;
  return lines
    .map((line, i) => {
      const { sum, ...rest } = JSON.parse(line) as { sum: string; prev: string };
      const linked = prev === null ? rest : { ...rest, prev };
      const body = i === at ? mutator.json(linked) : JSON.stringify(linked);
      if (i < at || !body.startsWith("{")) return line;
      prev = sha256(body).slice(0, sum.length);
      return `${body.slice(0, -1)},"sum":"${prev}"}`;
    })
    .map((line) => `${line}\n`)
    .join("");
}

/** Everything that readers and writers do. True when writers go on. */
async function work(world: SimWorld): Promise<boolean> {
  const reader = enter(world, "agent:reader");
  await outcomeOf("history", () => history(reader));
  const list = await refusable("list", () => reader.coordinator.list({ lapsed: true }));
  const writer = enter(world, "agent:a");
  const granted = await refusable("acquire", () => writer.acquire("resource:fresh"));
  if (!granted) return false;
  expectThat(list, "writers go on, and readers do not");
  for (const key of ["file:first", "dir:src", "dir:."])
    await outcomeOf(`acquire ${key}`, () => writer.acquire(key));
  await outcomeOf("retry", () => writer.acquire("resource:fresh", { requestId: freshId(writer.platform) }));
  await outcomeOf("renew", () => writer.renew("file:first"));
  await outcomeOf("release", () => writer.release("file:first"));
  const human = enter(world, "human:h");
  await outcomeOf("steal", () => human.acquire("dir:.", { steal: true, reason: "forged" }));
  await outcomeOf("gc", () => human.coordinator.gc({ actor: human.actor }));
  await outcomeOf("waiters", () => human.coordinator.waiters());
  return true;
}

async function refusable(what: string, call: () => Promise<unknown>): Promise<boolean> {
  const outcome = await outcomeOf(what, call);
  if (!outcome.ok) expectThat(REFUSALS.includes(outcome.code), `${what} was refused with ${outcome.code}`);
  return outcome.ok;
}

/** A checkpoint is made of what was read: it must be one that can be read again. */
async function tidyUp(world: SimWorld): Promise<void> {
  const human = enter(world, "human:h");
  await successOf("compact", () => tidy(human.store, human.logActor, { compact: true, flatIndex: {} }));
  await checkAlive(world, "compaction");
}

async function mend(world: SimWorld): Promise<void> {
  const human = enter(world, "human:h");
  const outcome = await outcomeOf("recover", () => recover(human.store, human.logActor));
  if (!outcome.ok) expectThat(outcome.code === "E_SCHEMA_NEWER", `recover was refused with ${outcome.code}`);
  else await checkAlive(world, "recovery");
}

async function checkAlive(world: SimWorld, after: string): Promise<void> {
  for (const name of ["one", "two"]) {
    const party = enter(world, `agent:${name}`);
    await successOf(`list after ${after}`, () => party.coordinator.list());
    await successOf(`acquire after ${after}`, () => party.acquire(`resource:${name}`));
    await successOf(`release after ${after}`, () => party.release(`resource:${name}`));
  }
}
