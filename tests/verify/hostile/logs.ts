import { conflict } from "../../../src/kernel/conflicts";
import { type Lease, sameParty } from "../../../src/kernel/lease";
import { recover, TOKEN_LEAP } from "../../../src/store/recover";
import { leaseToWire } from "../../../src/store/wire";
import type { Prng, SimWorld } from "../../../testing/simulator";
import { CONTROL, enter, history, LOG } from "../../store/stage";
import { expectThat, Finding, outcomeOf, successOf } from "./finding";
import { encode, join, Mutator } from "./mutator";
import { develop, makeScene, photograph, type Scene, surroundings } from "./scene";
import type { Count } from "./target";
import { type GrantedLease, judge, nameOf, type Verdict } from "./whole-lines";

interface Story {
  readonly photo: Map<string, Uint8Array>;
  /** Every lease that any line, archived ones included, ever spoke of. */
  readonly told: ReadonlyMap<string, GrantedLease>;
}

/** Whole logs as bad disks, careless editors and other versions leave them. */
export class HostileLogs {
  readonly #stories: Story[] = [];

  /** A log is mutated many times in many ways, and its story matters less than its damage. */
  async #story(prng: Prng): Promise<Story> {
    if (this.#stories.length >= 12) return prng.pick(this.#stories);
    const story = await storyOf(await makeScene(prng));
    this.#stories.push(story);
    return story;
  }

  async try(prng: Prng, count: Count): Promise<void> {
    if (prng.chance(0.2)) return this.#tryInPlace(prng, count);
    const { photo: taken, told } = await this.#story(prng);
    const { photo: foreign } = await this.#story(prng);
    const photo = new Map(taken);
    const hasIndex = prng.chance(0.5);
    if (!hasIndex)
      for (const path of photo.keys()) if (path.startsWith(`${CONTROL}/index/`)) photo.delete(path);
    const bytes = damaged(new Mutator(prng), photo.get(LOG)!, foreign.get(LOG)!);
    photo.set(LOG, bytes);
    const world = develop(photo, prng.below(1_000_000));
    await examine({ world, verdict: judge(bytes, markOf(photo)), told, hasIndex, count });
  }

  /** Under an index that was made for the log as it was. */
  async #tryInPlace(prng: Prng, count: Count): Promise<void> {
    const scene = await makeScene(prng);
    const { photo, told } = await storyOf(scene);
    const { world } = scene;
    const before = photo.get(LOG)!;
    const bytes = damaged(new Mutator(prng), before, before);
    world.disk.install(LOG, bytes);
    const verdict = judge(bytes, markOf(photo));
    const trial = { world, verdict, told, hasIndex: true, count };
    count("log changed under its index");
    // One that has only grown is not read again below (PROTOCOL 6): what is damaged there shows another day.
    const isTrusted = bytes.length > before.length && !verdict.isNewer;
    return isTrusted ? examineTrusted(trial) : examine(trial);
  }
}

async function storyOf({ world, parties }: Scene): Promise<Story> {
  const photo = photograph(world);
  const told = new Map<string, GrantedLease>();
  for (const { payload } of await history(parties[0]!))
    for (const lease of (payload["leases"] ?? []) as GrantedLease[]) told.set(nameOf(lease), lease);
  return { photo, told };
}

interface Trial {
  readonly world: SimWorld;
  readonly verdict: Verdict;
  readonly told: Story["told"];
  /** A reader may know leases from there, and recovery takes them over. */
  readonly hasIndex: boolean;
  readonly count: Count;
}

function damaged(mutator: Mutator, log: Uint8Array, foreign: Uint8Array): Uint8Array {
  const { prng } = mutator;
  if (prng.chance(0.45)) return mutator.bytes(log);
  const lines = linesOf(log);
  const at = prng.below(lines.length);
  const to = prng.below(lines.length);
  switch (prng.below(9)) {
    case 0:
      lines.splice(at, prng.between(1, 3));
      break;
    case 1:
      lines.splice(to, 0, lines[at]!);
      break;
    case 2:
      [lines[at], lines[to]] = [lines[to]!, lines[at]!];
      break;
    case 3:
      lines[at] = new Uint8Array(lines[at]!.length).fill(10, -1);
      break;
    case 4: // of another repository
      lines.splice(at, prng.below(2), prng.pick(linesOf(foreign)));
      break;
    case 5: // as a newer version may write it, with a sum we cannot check
      lines[at] = encode(`{"schema_version":${prng.between(2, 9)},"new":"format"}\n`);
      break;
    case 6: {
      // An honest change of a value by somebody who knows nothing of sums.
      const text = mutator.json(JSON.parse(Buffer.from(lines[at]!).toString("utf8")));
      lines[at] = encode(`${text}\n`);
      break;
    }
    case 7:
      return mutator.bytes(join(...lines.slice(0, at + 1)));
    default:
      lines[at] = mutator.bytes(lines[at]!);
  }
  return join(...lines);
}

function linesOf(log: Uint8Array): Uint8Array[] {
  const text = Buffer.from(log).toString("utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => encode(`${line}\n`));
}

async function examine(trial: Trial): Promise<void> {
  const { world, verdict, count } = trial;
  const before = world.disk.peek(LOG)!;
  const around = surroundings(world);
  await checkReaders(trial, trial.hasIndex);
  const writer = enter(world, "agent:writer");
  const granted = await outcomeOf("acquire", () => writer.acquire("resource:fresh"));
  if (verdict.isNewer) {
    expectThat(!granted.ok && granted.code === "E_SCHEMA_NEWER", `a newer log: acquire ${said(granted)}`);
    expectThat(same(world.disk.peek(LOG)!, before), "a newer log was changed");
    count("newer log refused");
  } else if (verdict.mustStop) {
    expectThat(
      !granted.ok && granted.code === "E_LOG_CORRUPT",
      `acknowledged lines are damaged: acquire ${said(granted)}`,
    );
    expectThat(same(world.disk.peek(LOG)!, before), "a damaged log was changed");
    count("damaged log refused");
    await checkRecovery(trial, before);
    count("log recovered");
  } else {
    expectThat(granted.ok, `nothing acknowledged is damaged: acquire ${said(granted)}`);
    count("torn tail set aside");
  }
  expectThat(surroundings(world) === around, "something was written outside the control plane");
}

/** `mayKnowMore`: from the index, or the archive. */
async function checkReaders(
  { world, verdict, told }: Trial,
  mayKnowMore: boolean,
): Promise<readonly Lease[]> {
  const reader = enter(world, "agent:reader");
  const list = await outcomeOf("list", () => reader.coordinator.list({ lapsed: true }));
  await outcomeOf("history", () => history(reader));
  if (!list.ok) {
    expectThat(verdict.isNewer && list.code === "E_SCHEMA_NEWER", `readers stop with ${list.code}`);
    return [];
  }
  const leases = list.value.map(({ lease }) => lease);
  for (const lease of leases) {
    const name = nameOf(wireOf(lease));
    expectThat(
      verdict.granted.has(name) || (mayKnowMore && told.has(name)),
      `a lease that no whole line granted: ${lease.leaseId} ${lease.key}`,
    );
  }
  return leases;
}

async function checkRecovery(trial: Trial, damagedLog: Uint8Array): Promise<void> {
  const { world, verdict } = trial;
  const mender = enter(world, "human:mender");
  const report = await successOf("recover", () => recover(mender.store, mender.logActor));
  expectThat(report.recovered, "recover found nothing to do where writers stop");
  expectThat(
    report.salvagedLines === verdict.whole.length,
    `recover salvaged ${report.salvagedLines} of ${verdict.whole.length} whole lines`,
  );
  const kept = world.disk.peek(`${CONTROL}/archive/${report.keptAs}`);
  expectThat(kept !== null && same(kept, damagedLog), "recover did not keep the damaged file");
  const leases = await checkReaders(trial, trial.hasIndex || verdict.isBaseLost);
  checkExclusive(leases);
  // The archive knows more where the log's beginning is lost, and the index where it is still there.
  if (!verdict.isBaseLost && !trial.hasIndex) checkStanding(leases, verdict);
  const after = enter(world, "agent:after");
  const { leases: fresh } = await successOf("acquire after recover", () => after.acquire("resource:after"));
  const leastToken = verdict.highestToken + TOKEN_LEAP;
  expectThat(
    fresh[0]!.fencingToken >= leastToken,
    `token ${fresh[0]!.fencingToken} after one of ${verdict.highestToken}`,
  );
  const again = await successOf("recover again", () => recover(after.store, after.logActor));
  expectThat(!again.recovered, "recover does not come to an end");
}

/** The last word of the whole lines on each slot; of two that conflict the older one had ended. */
function checkStanding(leases: readonly Lease[], verdict: Verdict): void {
  const shown = new Set(leases.map((lease) => nameOf(wireOf(lease))));
  const wanted = [...verdict.standing.values()];
  const isInSomebodysWay = (lease: GrantedLease) =>
    wanted.some((other) => other !== lease && conflict(extentOf(lease), extentOf(other)));
  for (const lease of wanted)
    expectThat(shown.has(nameOf(lease)) || isInSomebodysWay(lease), `recover lost ${nameOf(lease)}`);
}

function checkExclusive(leases: readonly Lease[]): void {
  for (const [i, one] of leases.entries())
    for (const other of leases.slice(i + 1))
      expectThat(!conflict(one, other) || sameParty(one, other), `both stand: ${one.key} and ${other.key}`);
}

/** An index that fits the log's beginning: nobody looks there, and nothing is made up either. */
async function examineTrusted(trial: Trial): Promise<void> {
  const { world } = trial;
  await checkReaders(trial, true);
  const writer = enter(world, "agent:writer");
  const granted = await outcomeOf("acquire", () => writer.acquire("resource:fresh"));
  if (granted.ok || granted.code === "E_LOG_CORRUPT") return;
  throw new Finding(`a log that has grown: acquire ${said(granted)}`);
}

function markOf(photo: ReadonlyMap<string, Uint8Array>): number {
  const bytes = photo.get(`${CONTROL}/index/synced`);
  if (bytes === undefined) return 0;
  return (JSON.parse(Buffer.from(bytes).toString("utf8")) as { value: { sequence: number } }).value.sequence;
}

function wireOf(lease: Lease): GrantedLease {
  return leaseToWire(lease) as unknown as GrantedLease;
}

function extentOf(lease: GrantedLease): Pick<Lease, "key" | "reach" | "worktreeId"> {
  return { key: lease.key, reach: lease.reach, worktreeId: lease.worktree_id } as Pick<
    Lease,
    "key" | "reach" | "worktreeId"
  >;
}

function said(outcome: { readonly ok: boolean; readonly code?: string }): string {
  return outcome.ok ? "was granted" : `was refused with ${outcome.code}`;
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
