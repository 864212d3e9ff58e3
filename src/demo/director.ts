import { Prng } from "../../testing/simulator/prng";
import type { AgentProcess } from "./agent-process";
import { type Cast, PLOTS, type Stage } from "./incidents";
import { chooseIncidents, chooseStakes, type Incident } from "./plan";
import { sleep, TooLate } from "./within";

/** Signals that stop a process do not exist everywhere. */
const CAN_STOP = process.platform !== "win32";
/** Each incident takes two agents, and most should be left to themselves. */
const AGENTS_PER_LANE = 3;
const MOST_LANES = 4;

/** Brings about one incident after another, several at a time, until the time is up. */
export class Director {
  readonly #stage: Stage;
  readonly #incidents: Iterator<Incident>;
  #count = 0;
  #isOver = false;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#incidents = chooseIncidents(new Prng(stage.seed, "incidents"), CAN_STOP);
  }

  /** Resolves when the last incident has come to its end after `ms`. */
  async run(ms: number): Promise<void> {
    const timer = setTimeout(() => this.end(), ms);
    try {
      const wanted = Math.floor(this.#stage.crew.agents.length / AGENTS_PER_LANE);
      const lanes = Math.min(MOST_LANES, Math.max(1, wanted));
      await Promise.all([
        sleepUnless(() => this.#isOver, ms),
        ...Array.from({ length: lanes }, () => this.#lane()),
      ]);
    } finally {
      clearTimeout(timer);
    }
  }

  end(): void {
    this.#isOver = true;
  }

  async #lane(): Promise<void> {
    while (!this.#isOver) {
      const kind = this.#incidents.next().value as Incident;
      // Its own stream: however the lanes race, the nth incident is the same.
      const chance = new Prng(this.#stage.seed, `incident ${++this.#count}`);
      const stakes = chooseStakes(kind, chance, this.#stage.scratch.ground);
      const pauseMs = chance.between(100, 500);
      const players = await this.#cast(chance);
      if (players !== null) await this.#play(kind, { ...players, ...stakes });
      await sleepUnless(() => this.#isOver, pauseMs);
    }
  }

  async #cast(chance: Prng): Promise<Pick<Cast, "victim" | "rival"> | null> {
    while (!this.#isOver) {
      const free = this.#stage.crew.agents.filter((agent) => agent.state === "up" && !agent.isCast);
      if (free.length >= 2) {
        const [victim, rival] = chance.shuffle(free).slice(0, 2) as [AgentProcess, AgentProcess];
        victim.isCast = rival.isCast = true;
        return { victim, rival };
      }
      await sleep(30);
    }
    return null;
  }

  async #play(kind: Incident, cast: Cast): Promise<void> {
    const { victim, rival } = cast;
    const both = [victim, rival];
    try {
      if (kind !== "kill-anywhere")
        await Promise.all(both.map((agent) => agent.order({ order: "stand-by" })));
      await PLOTS[kind](this.#stage, cast);
    } catch (error) {
      const rule = error instanceof TooLate ? "everybody answers in time" : "incidents go as planned";
      this.#stage.verdict.fail(rule, `${kind}: ${(error as Error).message}`);
    } finally {
      for (const agent of both) {
        agent.isCast = false;
        // In vain for one that was killed; it will start afresh.
        if (agent.state === "up") agent.order({ order: "let-go" }).catch(() => {});
      }
    }
  }
}

async function sleepUnless(isOver: () => boolean, ms: number): Promise<void> {
  for (let left = ms; left > 0 && !isOver(); left -= 50) await sleep(Math.min(50, left));
}
