import { everything } from "../../testing/checker/things";
import { Verdict } from "../../testing/checker/verdict";
import { childEnvironment } from "../../testing/workload/environment";
import { Books } from "./books";
import { Crew } from "./crew";
import { Director } from "./director";
import { finalCheck, Inspector } from "./inspector";
import { Interrupts } from "./interrupts";
import { Journal } from "./journal";
import type { Outcome } from "./report";
import { fillScratch, makeScratchFolder, removeScratch, type Scratch } from "./scratch";
import { Screen } from "./screen";
import { draw, type Paint, takePicture } from "./view";
import { Warden } from "./warden";

export interface DemoOptions {
  readonly seconds: number;
  readonly agents: number;
  readonly seed: number;
  readonly keep: boolean;
  /** Where `cotenant` is. */
  readonly program: string;
  readonly show: "view" | "log" | "nothing";
  readonly paint: Paint;
  out(text: string): void;
}

const LOOK_EVERY_MS = 200;
const FINISH_MS = 8_000;
/** More than any TTL of the plan: whoever is dead by then blocks nobody. */
const SWEEP_MS = 12_000;

/** Runs the whole demo and leaves nothing behind, however it ends. Throws `Interrupted` on Ctrl-C. */
export async function runDemo(options: DemoOptions): Promise<Outcome> {
  const interrupts = new Interrupts();
  const folder = makeScratchFolder();
  const warden = new Warden(options.program, childEnvironment(folder));
  warden.folder(options.keep ? null : folder);
  const run = new Run(options, folder, warden);
  try {
    return await interrupts.unless(run.perform());
  } finally {
    await run.cleanUp();
    if (!options.keep) removeScratch(folder);
    await warden.dismiss();
    interrupts.close();
  }
}

class Run {
  readonly #options: DemoOptions;
  readonly #folder: string;
  readonly #warden: Warden;
  readonly #verdict = new Verdict();
  readonly #books = new Books();
  readonly #journal: Journal;
  readonly #screen: Screen | null;
  readonly #takeovers: { how: string; ms: number }[] = [];
  #phase = "prepares";
  #crew: Crew | null = null;
  #inspector: Inspector | null = null;
  #scratch: Scratch | null = null;
  #filling: Promise<Scratch> | null = null;
  #clock: NodeJS.Timeout | undefined;
  #told = 0;
  #isOver = false;

  constructor(options: DemoOptions, folder: string, warden: Warden) {
    this.#options = options;
    this.#folder = folder;
    this.#warden = warden;
    this.#journal = new Journal((line) => {
      if (options.show === "log") options.out(`${line}\n`);
    });
    this.#screen = options.show === "view" ? new Screen(process.stdout) : null;
  }

  async perform(): Promise<Outcome> {
    const { seconds, agents, seed, program } = this.#options;
    this.#note(`${agents} agents, ${seconds} s, seed ${seed}, in ${this.#folder}`);
    this.#clock = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#filling = fillScratch(this.#folder);
    const scratch = await this.#filling;
    if (this.#isOver) throw new Error("stopped before it began");
    this.#scratch = scratch;
    const shared = {
      ...{ scratch, program, seed, books: this.#books, verdict: this.#verdict },
      note: (line: string) => this.#note(line),
    };
    const crew = new Crew({ ...shared, agents, lifeMs: seconds * 1000 + 60_000, warden: this.#warden });
    this.#crew = crew;
    const inspector = new Inspector(scratch, this.#verdict, (pid) => crew.dead.has(pid));
    this.#inspector = inspector;
    crew.start();
    await crew.ready();
    this.#phase = "at work";
    const label = (key: string) => this.#label(key);
    const takeovers = this.#takeovers;
    await new Director({ ...shared, crew, inspector, takeovers, label }).run(seconds * 1000);
    this.#phase = "finishing";
    this.#note("time is up: everybody finishes");
    await crew.finish(FINISH_MS);
    await this.#sweep(crew, scratch);
    this.#phase = "checking";
    clearInterval(this.#clock);
    inspector.look();
    const replay = await finalCheck(scratch, this.#books, this.#verdict);
    return {
      seed,
      agents,
      seconds,
      elapsedMs: this.#journal.elapsedMs,
      books: this.#books,
      log: replay.log,
      segments: replay.segments,
      verdict: this.#verdict,
      takeovers: this.#takeovers,
      kept: this.#options.keep ? this.#folder : null,
    };
  }

  /** Somebody new takes everything at once: possible only if nothing is left locked by those who are gone. */
  async #sweep(crew: Crew, scratch: Scratch): Promise<void> {
    this.#phase = "sweeping";
    const rule = "nothing stays locked by those who are gone";
    const sweeper = crew.extra("sweeper");
    try {
      const wish = { keys: everything(scratch.ground), bind: "ttl", ttlSecs: 10, waitMs: SWEEP_MS } as const;
      const { outcome, leases } = await sweeper.order({ order: "take", ...wish });
      const isFree = this.#verdict.expect(
        rule,
        outcome === "ok",
        () => `a newcomer could not take everything within ${SWEEP_MS / 1000} s`,
      );
      if (isFree) this.#note(`a newcomer takes everything at once: ${leases.length} leases`);
    } catch (error) {
      this.#verdict.fail(rule, (error as Error).message);
    }
    await crew.dismiss(sweeper, FINISH_MS);
  }

  #look(): void {
    try {
      this.#inspector?.look();
    } catch (error) {
      this.#verdict.fail("the log can be read", (error as Error).message);
    }
    const { violations } = this.#verdict;
    for (; this.#told < violations.length; this.#told++) this.#note(`VIOLATED: ${violations[this.#told]}`);
    this.#draw();
  }

  #draw(): void {
    const screen = this.#screen;
    if (screen === null) return;
    const picture = takePicture({
      seed: this.#options.seed,
      elapsedMs: this.#journal.elapsedMs,
      lengthMs: this.#options.seconds * 1000,
      phase: this.#phase,
      crew: this.#crew,
      log: this.#inspector?.log ?? null,
      books: this.#books,
      verdict: this.#verdict,
      events: this.#journal.lines,
      label: (key) => this.#label(key),
    });
    screen.show(draw(picture, screen.size, this.#options.paint));
  }

  #label(key: string): string {
    const title = this.#scratch?.titles.get(key);
    return title === undefined ? key : `issue "${title}"`;
  }

  #note(line: string): void {
    this.#journal.note(line);
  }

  async cleanUp(): Promise<void> {
    this.#isOver = true;
    clearInterval(this.#clock);
    this.#screen?.close();
    // Git may be at work in the folder that is about to go.
    await this.#filling?.catch(() => {});
    // Whoever does not die of this dies of the warden.
    await this.#crew?.abandon().catch(() => {});
  }
}
