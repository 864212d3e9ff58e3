import type { Ulid } from "../../../src/kernel/ids";
import type { Platform } from "../../../src/platform/platform";
import { DEFAULT_STORE_OPTIONS, Store } from "../../../src/store/store";
import { type Counters, type SimProcess, SimWorld } from "../../../testing/simulator";
import { CONTROL, freshId, openParty, sha256 } from "../../store/stage";
import { Auditor } from "./auditor";
import { isExpected } from "./codes";
import { perform } from "./deeds";
import { lastWords } from "./ending";
import { Fates } from "./fates";
import { type Deed, deedsOf, type Lane, type Space, type Story } from "./story";

/** What became of a story. */
export interface Verdict {
  /** The first promise that was broken, in words; null when all were kept. */
  readonly broken: string | null;
  /** What everybody did, in order: one line per deed and trouble. */
  readonly account: readonly string[];
  /** What each deed was told, by its number: "done" or a code; several when it was tried again. */
  readonly answers: ReadonlyMap<number, readonly string[]>;
  /** Equal for two runs exactly when every operation and every result was. */
  readonly fingerprint: string;
  readonly counters: Counters;
  readonly counts: ReadonlyMap<string, number>;
}

/** How far a lane has come, in whichever process. */
interface Progress {
  readonly lane: Lane;
  readonly deeds: readonly Deed[];
  next: number;
  /** Whether the deed in hand was begun in an earlier life. */
  wasInterrupted: boolean;
  readonly requestIds: Map<number, Ulid>;
}

const NAMESPACES: Record<Space, { pid?: string; time?: string; monotonicOffsetMs?: number }> = {
  host: {},
  "other-pids": { pid: "4026532001" },
  "other-times": { time: "4026532002", monotonicOffsetMs: 3_600_000 },
};
const MOST_STEPS = 60_000;
const MOST_ATTEMPTS = 3;
const CENSUS = `${CONTROL}/index/census-`;

/** Plays a story in a world of its own, before an auditor. */
export class Player {
  readonly world: SimWorld;
  readonly auditor: Auditor;
  readonly account: string[] = [];
  readonly answers = new Map<number, string[]>();
  readonly counts = new Map<string, number>();
  readonly #story: Story;
  readonly #fates: Fates;
  readonly #progress: Progress[];
  readonly #parts: (SimProcess | null)[];
  readonly #lives: number[];

  constructor(story: Story, traceLimit = 0) {
    this.#story = story;
    const { rotateBytes: _, ...machine } = story.machine;
    this.world = new SimWorld({
      seed: story.seed,
      sha256,
      traceLimit,
      ...machine,
      onOperation: (happening) => {
        this.auditor.onOperation(happening);
        if (happening.isHalfDone) return;
        this.#fates.onOperation(happening);
        if (happening.kind === "openForWriting" && happening.path.startsWith(CENSUS))
          this.count("index.rebuilt");
      },
    });
    this.world.disk.makePath("/repo/.git");
    this.auditor = new Auditor(this.world);
    this.#fates = new Fates(story, this);
    const deeds = deedsOf(story);
    this.#progress = story.lanes.map((lane, index) => ({
      lane,
      deeds: deeds.filter((deed) => deed.lane === index),
      next: 0,
      wasInterrupted: false,
      requestIds: new Map(),
    }));
    this.#parts = story.processes.map(() => null);
    this.#lives = story.processes.map(() => 0);
  }

  async play(): Promise<Verdict> {
    try {
      this.startAgain();
      await this.#run("the story");
      this.#fates.end();
      if (this.#isWell) await this.#run("the story's end");
      if (this.#isWell) await lastWords(this);
    } catch (error) {
      this.auditor.fail(0, error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    this.#countLog();
    const { trace, counters } = this.world;
    const broken = this.auditor.broken[0] ?? null;
    if (broken !== null) this.note(`BROKEN: ${broken}`);
    const { account, answers, counts } = this;
    return { broken, account, answers, fingerprint: trace.fingerprint, counters, counts };
  }

  async #run(what: string): Promise<void> {
    const { reason } = await this.world.run({
      maxSteps: MOST_STEPS,
      until: () => !this.#isWell,
      beforeStep: () => this.#fates.strike(),
    });
    if (this.#isWell && reason !== "finished")
      this.auditor.fail(0, `liveness: ${what} does not end (${reason})`);
  }

  get #isWell(): boolean {
    return this.auditor.broken.length === 0 && !this.auditor.isExcused;
  }

  // --- for the troubles -----------------------------------------------------------------------------------

  current(process: number): SimProcess | null {
    return this.#parts[process] ?? null;
  }

  startAgain(): void {
    for (const process of this.#parts.keys()) this.replace(process);
  }

  /** Somebody takes over where the last one stopped. */
  replace(part: number): void {
    const lanes = this.#progress.filter(({ lane }) => lane.process === part);
    for (const progress of lanes) this.#resume(progress);
    if (lanes.every(({ deeds, next }) => next >= deeds.length)) return;
    const name = `p${part}.${++this.#lives[part]!}`;
    const space = this.#story.processes[part]!.space;
    const process: SimProcess = this.world.spawn(
      name,
      (platform) => this.#live(part, process, platform, lanes),
      {
        namespaces: NAMESPACES[space],
      },
    );
    this.#parts[part] = process;
    this.auditor.enter(process);
  }

  count(what: string, by = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + by);
  }

  note(text: string): void {
    this.account.push(`${(this.world.elapsedMs / 1000).toFixed(3).padStart(9)} s  ${text}`);
  }

  // --- processes ------------------------------------------------------------------------------------------

  /** What has an id is asked for again with the same; of the rest nobody knows what became, and life goes on. */
  #resume(progress: Progress): void {
    if (!progress.wasInterrupted) return;
    const deed = progress.deeds[progress.next]!;
    if (!progress.requestIds.has(deed.id)) progress.next++;
    else this.count("request.retried after a crash");
    progress.wasInterrupted = false;
  }

  async #live(
    part: number,
    process: SimProcess,
    platform: Platform,
    lanes: readonly Progress[],
  ): Promise<void> {
    const { machine, processes } = this.#story;
    const store = new Store(platform, {
      ...DEFAULT_STORE_OPTIONS,
      controlDirectory: CONTROL,
      rotateBytes: machine.rotateBytes,
      indexLagBytes: processes[part]?.indexLagBytes ?? 0,
    });
    const watches: { close(): void }[] = [];
    const isAlone = lanes.length === 1;
    await Promise.all(
      lanes.map(async (progress) => {
        const { agent, session, worktree } = progress.lane;
        const party = openParty(platform, agent, { session, worktree, store });
        const doing = {
          auditor: this.auditor,
          party,
          lanes: this.#story.lanes,
          watches,
          count: (what: string) => this.count(what),
        };
        while (progress.next < progress.deeds.length) {
          progress.wasInterrupted = true;
          await this.#attempt(process, doing, progress, isAlone);
          progress.wasInterrupted = false;
          progress.next++;
        }
      }),
    );
    for (const watch of watches) watch.close();
    this.auditor.left(process);
  }

  async #attempt(
    process: SimProcess,
    doing: Parameters<typeof perform>[0],
    progress: Progress,
    isAlone: boolean,
  ): Promise<void> {
    const deed = progress.deeds[progress.next]!;
    const isRepeatable = "requestId" in deed;
    if (isRepeatable && deed.requestId && !progress.requestIds.has(deed.id))
      progress.requestIds.set(deed.id, freshId(doing.party.platform));
    for (let attempt = 1; ; attempt++) {
      const requestId = progress.requestIds.get(deed.id) ?? null;
      const told = await this.#once(process, doing, progress.lane, deed, requestId, isAlone);
      if (told instanceof Error) {
        const id = (told as { data?: Record<string, unknown> }).data?.["request_id"];
        const isUnknown = (told as { data?: Record<string, unknown> }).data?.["outcome"] === "unknown";
        if (!isUnknown || !isRepeatable || typeof id !== "string" || attempt === MOST_ATTEMPTS) return;
        progress.requestIds.set(deed.id, id as Ulid);
        this.count("request.retried after an unknown outcome");
        continue;
      }
      if (told === null || requestId === null || !isRepeatable || !deed.again) return;
      const endsLeases = deed.do === "release" || deed.do === "evict";
      const again = await this.#once(process, doing, progress.lane, deed, requestId, isAlone);
      if (again === null || again instanceof Error) return;
      // Of what has ended, the repeated answer does not say how it was. And of a line that a bad sector took away, with
      // nothing left to say that it was durable, nobody knows: it is done afresh.
      const isKnown = !endsLeases && !this.auditor.wasForgiven(told.leases);
      if (isKnown && again.leases.map(idOf).join() !== told.leases.map(idOf).join())
        this.auditor.fail(8, `${progress.lane.agent}'s ${deed.do}, asked again, has another answer`);
      return;
    }
  }

  async #once(
    process: SimProcess,
    doing: Parameters<typeof perform>[0],
    lane: Lane,
    deed: Deed,
    requestId: Ulid | null,
    isAlone: boolean,
  ) {
    const call = this.auditor.begin(lane, deed, process, isAlone);
    this.#fates.deedBegins(deed.id, process.name);
    try {
      const change = await perform(doing, call, deed, requestId);
      this.count("answer.done");
      this.#hear(deed.id, "done");
      this.note(`${process.name} ${lane.agent}: #${deed.id} ${deed.do}: done`);
      return change;
    } catch (error) {
      const { code, message } = error as { code?: string; message?: string };
      this.note(`${process.name} ${lane.agent}: #${deed.id} ${deed.do}: ${code ?? "threw"}: ${message}`);
      this.count(`answer.${code}`);
      this.#hear(deed.id, String(code));
      this.auditor.refused(call, error);
      if (!isExpected(error, call, this)) {
        const stack = error instanceof Error && code === undefined ? `\n${error.stack}` : "";
        this.auditor.fail(0, `${lane.agent}'s ${deed.do} is told ${code ?? "no code"}: ${message}${stack}`);
      }
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  #hear(deed: number, answer: string): void {
    const heard = this.answers.get(deed);
    if (heard === undefined) this.answers.set(deed, [answer]);
    else heard.push(answer);
  }

  #countLog(): void {
    const { entries } = this.auditor.chronicle;
    this.count("log.lines", entries.length);
    this.count(
      "log.rotated",
      Math.max(0, entries.filter((e) => e.line.type === "log.checkpoint").length - 1),
    );
    for (const { event } of entries) for (const gone of event?.ended ?? []) this.count(`ended.${gone.how}`);
  }
}

const idOf = ({ leaseId }: { leaseId: string }) => leaseId;

export function play(story: Story, traceLimit = 0): Promise<Verdict> {
  return new Player(story, traceLimit).play();
}
