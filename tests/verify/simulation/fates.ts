import { layoutOf } from "../../../src/store/layout";
import type { FaultRule, Happening, SimProcess, SimWorld } from "../../../testing/simulator";
import { CONTROL, decode, encode, LOG } from "../../store/stage";
import { type Auditor, EVERYBODY } from "./auditor";
import { damagedSum } from "./chronicle";
import { isAt } from "./moments";
import type { Place, Story, Trouble } from "./story";
import { troublesOf } from "./story";

/** What the troubles act on. */
export interface Stage {
  readonly world: SimWorld;
  readonly auditor: Auditor;
  /** Who plays the part of this process now. */
  current(process: number): SimProcess | null;
  /** After everything died. */
  startAgain(): void;
  /** After one of them died. */
  replace(process: number): void;
  count(what: string): void;
}

interface Armed {
  readonly trouble: Trouble;
  readonly process: string | null;
  left: number;
}

const layout = layoutOf(CONTROL);

/** The troubles of a story: armed when their deed begins, due after so many operations, struck between two of them. */
export class Fates {
  readonly #stage: Stage;
  readonly #waiting: Trouble[];
  #armed: Armed[] = [];
  #due: Trouble[] = [];
  #isOver = false;

  constructor(story: Story, stage: Stage) {
    this.#stage = stage;
    this.#waiting = troublesOf(story);
  }

  deedBegins(id: number, process: string): void {
    for (const trouble of this.#waiting) {
      const { when } = trouble;
      if (when.deed !== id || this.#isOver) continue;
      this.#armed.push({ trouble, process: when.whose === "its" ? process : null, left: when.nth });
    }
  }

  onOperation(happening: Happening): void {
    for (const armed of this.#armed) {
      if (armed.process !== null && armed.process !== happening.process) continue;
      if (!isAt(armed.trouble.when.on, happening) || --armed.left > 0) continue;
      this.#due.push(armed.trouble);
    }
    if (this.#due.length > 0) this.#armed = this.#armed.filter(({ left }) => left > 0);
  }

  /** Between two operations. */
  strike(): void {
    if (this.#due.length === 0) return;
    const due = this.#due;
    this.#due = [];
    for (const trouble of due) {
      // Each strikes once, however often its deed is tried again.
      const at = this.#waiting.indexOf(trouble);
      if (at === -1) continue;
      this.#waiting.splice(at, 1);
      this.#stage.count(`trouble.${trouble.strike}`);
      this.#perform(trouble);
    }
  }

  /** From now on there is peace: nothing fails, and nobody is stopped. */
  end(): void {
    this.#isOver = true;
    this.#armed = [];
    this.#due = [];
    this.#stage.world.faults.clear();
    for (const process of this.#stage.world.living()) this.#stage.world.resume(process);
  }

  #perform(trouble: Trouble): void {
    const { world, auditor } = this.#stage;
    const before = auditor.chronicle.now;
    switch (trouble.strike) {
      case "kill":
        this.#kill(trouble.process, trouble.zombie);
        break;
      case "power":
        this.#cutPower(trouble.wallJumpMs);
        break;
      case "pause":
        this.#pause(trouble.process, trouble.forMs);
        break;
      case "clock":
        world.jumpWallClock(trouble.ms);
        auditor.chronicle.noteJump(before);
        break;
      case "time":
        world.advance(trouble.ms);
        break;
      case "fault":
        world.faults.add(this.#ruleOf(trouble));
        break;
      case "drop caches":
        world.dropCaches();
        this.#lookAgain("the kernel");
        break;
      case "spoil index":
        this.#spoilIndex(trouble.how, trouble.pick);
        break;
      case "spoil log":
        this.#spoilLog(trouble.pick);
        break;
    }
  }

  #kill(part: number, becomesZombie: boolean): void {
    const process = this.#stage.current(part);
    if (process === null || !process.isAlive) return;
    this.#stage.world.kill(process, { becomesZombie });
    this.#lookAgain(process.name);
    this.#stage.auditor.left(process);
    this.#stage.replace(part);
  }

  #cutPower(wallJumpMs: number): void {
    const { world, auditor } = this.#stage;
    const living = world.living();
    const before = auditor.chronicle.now;
    world.powerCut({ wallJumpMs });
    for (const process of living) auditor.left(process);
    auditor.chronicle.noteBoot();
    auditor.chronicle.noteJump(before);
    this.#lookAgain(EVERYBODY);
    auditor.checkAcknowledged();
    auditor.checkFailed();
    this.#stage.startAgain();
  }

  #pause(part: number, forMs: number): void {
    const { world } = this.#stage;
    const process = this.#stage.current(part);
    if (process === null || !process.isAlive || process.isPaused) return;
    world.pause(process);
    world.spawn(`alarm for ${process.name}`, async ({ timers }) => {
      await timers.sleep(forMs).done;
      world.resume(process);
    });
  }

  #ruleOf(trouble: Extract<Trouble, { strike: "fault" }>): FaultRule {
    const { code, operations, place, process, times, probability } = trouble;
    const victim = process === null ? null : `p${process}.`;
    return {
      code,
      times,
      probability,
      ...(operations === null ? {} : { operations }),
      path: (path) => path.startsWith(CONTROL) && isIn(place, path),
      process: (name) => (victim === null ? name.startsWith("p") : name.startsWith(victim)),
    };
  }

  #spoilIndex(how: Extract<Trouble, { strike: "spoil index" }>["how"], pick: number): void {
    const { world } = this.#stage;
    const all = world.disk
      .paths()
      .filter((path) => path.startsWith(`${layout.index}/`) && !path.endsWith("/"));
    // Leases, and what counts them, matter most, and are a few files among many.
    const few = all.filter((path) => (pick % 2 === 0 ? /\/meta[@.]/ : /\/census-|\/applied$/).test(path));
    const files = pick % 5 > 0 && few.length > 0 ? few : all;
    const path = files[pick % Math.max(1, files.length)];
    if (path === undefined) return;
    const bytes = world.disk.peek(path)!;
    const other = files[(pick + 1) % files.length]!;
    const changed = {
      empty: () => new Uint8Array(0),
      gone: () => null,
      flip: () => flipped(bytes, pick),
      zero: () => new Uint8Array(bytes.length),
      swap: () => world.disk.peek(other),
    }[how]();
    world.disk.spoil(path, changed);
  }

  /** One bit of one line of the current segment, as a bad sector has it. */
  #spoilLog(pick: number): void {
    const { world, auditor } = this.#stage;
    const { chronicle } = auditor;
    const text = decode(world.disk.peek(LOG));
    if (text === null || chronicle.isSpoiled) return;
    // One that nobody can know to be on the disk, between its sync and the mark that says so, nobody can miss either.
    const inSegment = chronicle.entries.filter(
      ({ line }) => line.sequence <= chronicle.durable && text.includes(`"sum":"${line.sum}"}`),
    );
    const entry = inSegment[pick % Math.max(1, inSegment.length)];
    if (entry === undefined) return;
    chronicle.spoil(entry);
    world.disk.spoil(
      LOG,
      encode(text.replace(`"sum":"${entry.line.sum}"`, `"sum":"${damagedSum(entry.line.sum)}"`)),
    );
    this.#lookAgain("a bad sector");
  }

  #lookAgain(process: string): void {
    this.#stage.auditor.chronicle.look(process);
    this.#stage.auditor.forgetLost();
  }
}

function isIn(place: Place, path: string): boolean {
  switch (place) {
    case "anywhere":
      return true;
    case "log":
      return path.startsWith(layout.log);
    case "applied":
      return path === layout.applied;
    default:
      return path.startsWith(`${layout[place]}/`);
  }
}

function flipped(bytes: Uint8Array, pick: number): Uint8Array {
  const copy = bytes.slice();
  if (copy.length > 0) copy[pick % copy.length]! ^= 1 << (pick % 8);
  return copy;
}
