import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeTree } from "../support/remove-tree";
import { type Bundled, bundle, ROOT } from "./bundle";
import type { Plant } from "./plants";

/**
 * One way of looking for broken promises. `npm test` runs it on a fixed, small amount; `npm run verify` for its share
 * of the time, and at least on the amount that the programme promises.
 */
export interface Layer {
  readonly name: string;
  /** What is counted: seeds, injection points, operations. */
  readonly unit: string;
  /** Units that `npm test` tries. */
  readonly inTest: number;
  /** Units that `npm run verify` tries, unless its time is up before. */
  readonly inVerify: number;
  /** Of the time that `npm run verify` has on one core. 0: all there is to try is tried, once, if there is time. */
  readonly share: number;
  /**
   * Counters that have to move: one that stays at zero means that something was never tried. Where the time was up first,
   * that is told, and no failure.
   */
  readonly mustMove: readonly string[];
  /** Before the others and on all cores, for at most that share of all the time. */
  readonly isFirst?: boolean;
  /** Left out unless it is named: it downloads, or takes very long. */
  readonly isOptIn?: boolean;
  prove(task: Task): Promise<void>;
}

/** Something that should not have happened, and the command that shows it again. */
export interface Breakage {
  readonly what: string;
  readonly replay: string;
}

export interface Result {
  readonly layer: string;
  readonly unit: string;
  readonly seed: number;
  readonly tried: number;
  readonly counters: Readonly<Record<string, number>>;
  readonly unmoved: readonly string[];
  /** The time was up before all was tried that should have been. */
  readonly isCutShort: boolean;
  /** Why nothing could be tried on this machine; null where something was. */
  readonly skipped: string | null;
  readonly broke: readonly Breakage[];
  readonly ms: number;
}

export interface Effort {
  readonly least: number;
  /** Goes on until then, in milliseconds from the start. */
  readonly forMs?: number;
  /** And no further than this, whatever is still to be tried. */
  readonly atMostMs?: number;
  readonly seed?: number;
  /** A bug put into the sources on purpose: the layer must break. */
  readonly plant?: Plant | null;
  /** Stops at the first breakage. */
  readonly untilBroken?: boolean;
  /** `--case`: what of it to try, in the layer's own words. */
  readonly only?: string | null;
  /** `--latest`: the newest versions of whatever is tried, not the pinned ones. */
  readonly isLatest?: boolean;
  /** `--record`: what was seen is written into the project. */
  readonly isRecording?: boolean;
}

/** After this many a layer has made its point. */
const MOST_BREAKAGES = 20;
/**
 * How many times as many tries as were asked for, until all that should have happened has. Who kills at random on a busy
 * machine meets a publish at work in one round of three: with a few rounds, a run of the tests now and then met none.
 */
const MOST_MORE = 10;

const MIN_GRACE_MS = 2_000;

/** What a layer is told, and what it reports. */
export class Task {
  readonly seed: number;
  /** A folder of its own, on the default disk, gone afterwards. */
  readonly scratch: string;
  readonly plant: Plant | null;
  readonly only: string | null;
  readonly isLatest: boolean;
  readonly isRecording: boolean;
  readonly broken: Breakage[] = [];
  readonly counters = new Map<string, number>();
  tried = 0;
  isCutShort = false;
  skipped: string | null = null;
  readonly #effort: Effort;
  readonly #mustMove: readonly string[];
  readonly #startedMs = performance.now();

  constructor(effort: Effort, scratch: string, mustMove: readonly string[] = []) {
    this.#effort = effort;
    this.#mustMove = effort.seed === undefined ? mustMove : [];
    this.seed = effort.seed ?? Math.floor(Math.random() * 0x7fffffff);
    this.plant = effort.plant ?? null;
    this.only = effort.only ?? null;
    this.isLatest = effort.isLatest ?? false;
    this.isRecording = effort.isRecording ?? false;
    this.scratch = scratch;
  }

  get passedMs(): number {
    return performance.now() - this.#startedMs;
  }

  /** Whether it is not a sample that is wanted, but everything that there is. */
  get triesAll(): boolean {
    return this.#effort.least === Number.MAX_SAFE_INTEGER;
  }

  /** Whether another unit should be tried. */
  get goesOn(): boolean {
    if (this.broken.length >= (this.#effort.untilBroken === true ? 1 : MOST_BREAKAGES)) return false;
    if (!this.#isWanted) return false;
    this.isCutShort ||= this.isTimeUp;
    return !this.isTimeUp;
  }

  /** Until nothing more is to be begun. */
  get leftMs(): number {
    return Math.max(0, (this.#effort.atMostMs ?? Number.MAX_SAFE_INTEGER) - this.passedMs);
  }

  /** Nothing more is to be begun. */
  get isTimeUp(): boolean {
    return this.passedMs >= (this.#effort.atMostMs ?? Number.POSITIVE_INFINITY);
  }

  get #isWanted(): boolean {
    if (this.tried < this.#effort.least || this.passedMs < (this.#effort.forMs ?? 0)) return true;
    // What is rare may need more tries than were asked for; what never comes is still found missing.
    const isLate = this.tried >= MOST_MORE * this.#effort.least;
    return !isLate && this.plant === null && this.#mustMove.some((name) => !this.counters.has(name));
  }

  count(what: string, by = 1): void {
    this.counters.set(what, (this.counters.get(what) ?? 0) + by);
  }

  broke(what: string, replay: string): void {
    this.broken.push({ what, replay });
  }

  /** Nothing can be tried here, and that is nobody's fault. */
  skip(why: string): void {
    this.skipped = why;
  }

  /** A program of the tests as one file that Node runs, with the planted bug if there is one. */
  bundle(entry: string): Promise<Bundled> {
    return bundle(entry, this.scratch, this.plant);
  }

  /** The program under test: what was built, or, in the place of `bin/cotenant`, one with the planted bug. */
  async program(): Promise<string> {
    if (this.plant === null) return join(ROOT, "bin/cotenant");
    const { path, isPlanted } = await this.bundle("src/cli/main.ts");
    if (!isPlanted) throw new Error(`plant "${this.plant.name}" is not in the program`);
    const binary = join(this.scratch, "cotenant.cjs");
    writeFileSync(binary, `require(${JSON.stringify(path)});\n`);
    return binary;
  }
}

export async function prove(layer: Layer, effort: Effort): Promise<Result> {
  const scratch = mkdtempSync(join(tmpdir(), `cotenant-${layer.name}-`));
  let isDropped = false;
  try {
    const task = new Task(effort, scratch, layer.mustMove);
    const proving = layer.prove(task).catch((error: unknown) => {
      // A planted bug must be noticed, and not merely be in the way.
      if (task.plant !== null) throw error;
      const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
      task.broke(`the layer itself: ${why}`, `npm run verify -- --layer "${layer.name}" --seed ${task.seed}`);
    });
    isDropped = !(await endsInTime(proving, effort.atMostMs));
    task.isCutShort ||= isDropped;
    const { seed, tried, broken, counters, passedMs, isCutShort, skipped } = task;
    return {
      layer: layer.name,
      unit: layer.unit,
      seed,
      tried,
      counters: Object.fromEntries([...counters].sort()),
      // Whoever asks for one case cannot ask for everything to happen in it.
      unmoved: task.only !== null ? [] : layer.mustMove.filter((name) => (counters.get(name) ?? 0) === 0),
      isCutShort,
      skipped,
      broke: broken,
      ms: passedMs,
    };
  } finally {
    // A layer that was dropped may still write there; whoever gave it a time clears that, too.
    if (!isDropped) removeTree(scratch);
  }
}

/**
 * Whatever a layer is in the middle of when its time is up gets a little more, and is dropped then: what it found before
 * counts. Only `npm run verify` gives a time; it ends the layer's process, and clears what it left.
 */
async function endsInTime(proving: Promise<void>, atMostMs: number | undefined): Promise<boolean> {
  if (atMostMs === undefined) return proving.then(() => true);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, atMostMs + graceMs(atMostMs), false);
  });
  return Promise.race([proving.then(() => true), late]).finally(() => clearTimeout(timer));
}

function graceMs(atMostMs: number): number {
  return Math.max(MIN_GRACE_MS, atMostMs / 10);
}

/** What is wrong with a result, in words; empty when nothing is. */
export function complaints({ layer, seed, tried, unmoved, broke, isCutShort, skipped }: Result): string[] {
  if (skipped !== null) return [];
  return [
    ...broke.map(({ what, replay }) => `${layer}: ${what}\n  again: ${replay}`),
    ...(isCutShort ? [] : unmoved).map((name) => `${layer}: never happened: ${name} (seed ${seed})`),
    ...(tried === 0 ? [`${layer}: nothing was tried`] : []),
  ];
}
