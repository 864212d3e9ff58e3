import { play } from "./player";
import { isDeed, type Story, type StoryEvent } from "./story";

/** How often a candidate is played with other seeds: what fails may need another schedule once something is left out. */
const OTHER_SEEDS = 3;
const MOST_PLAYS = 1_500;

/** What a story breaks, in words; null when it breaks nothing. */
export type Judge = (story: Story) => Promise<string | null>;

const judgeByPlaying: Judge = async (story) => (await play(story)).broken;

/**
 * The same failure in a shorter story: leaves out halves, quarters and single events, then simplifies what is left.
 * Nothing here is random, so the same story always shrinks to the same one.
 */
export async function shrink(story: Story, broken: string, judge: Judge = judgeByPlaying): Promise<Story> {
  const shrinker = new Shrinker(kindOf(broken), judge);
  let smallest = story;
  for (let size = Math.ceil(story.events.length / 2); ; size = Math.ceil(size / 2)) {
    smallest = await shrinker.without(smallest, size);
    if (size === 1) break;
  }
  smallest = await shrinker.simpler(smallest);
  return shrinker.without(smallest, 1);
}

/** What a failure is about, without the names and numbers that another run has others of. */
export function kindOf(broken: string): string {
  return broken
    .split("\n")[0]!
    .replace(/[0-9A-Z]{26}|[a-z]+:[\w:./]+|\d+/g, "…")
    .replace(/\(.*\)/g, "");
}

class Shrinker {
  readonly #kind: string;
  readonly #judge: Judge;
  #plays = 0;

  constructor(kind: string, judge: Judge) {
    this.#kind = kind;
    this.#judge = judge;
  }

  /** Without as many stretches of that length as can go. */
  async without(story: Story, size: number): Promise<Story> {
    let current = story;
    for (let at = 0; at < current.events.length; ) {
      const events = current.events.filter((_, index) => index < at || index >= at + size);
      const shorter = events.length === 0 ? null : await this.#failing({ ...current, events });
      if (shorter === null) at += size;
      else current = shorter;
    }
    return current;
  }

  /** Plain deeds instead of elaborate ones, and an ordinary machine. */
  async simpler(story: Story): Promise<Story> {
    const ordinary = {
      ...story.machine,
      watchDropProbability: 0,
      writebackProbability: 0,
      mtimeGranularityMs: 0,
    };
    let current = (await this.#failing({ ...story, machine: ordinary })) ?? story;
    current =
      (await this.#failing({ ...current, processes: current.processes.map(() => ({ space: "host" })) })) ??
      current;
    for (const [index, event] of current.events.entries()) {
      for (const plainer of plainerThan(event)) {
        const events = current.events.with(index, plainer);
        current = (await this.#failing({ ...current, events })) ?? current;
      }
    }
    return current;
  }

  async #failing(story: Story): Promise<Story | null> {
    for (let other = 0; other < OTHER_SEEDS && this.#plays < MOST_PLAYS; other++) {
      const candidate = { ...story, seed: story.seed + other };
      this.#plays++;
      const broken = await this.#judge(candidate);
      if (broken !== null && kindOf(broken) === this.#kind) return candidate;
    }
    return null;
  }
}

function plainerThan(event: StoryEvent): StoryEvent[] {
  if (!isDeed(event)) return [];
  const plainer: StoryEvent[] = [];
  if ("requestId" in event && event.again) plainer.push({ ...event, again: false });
  if ("requestId" in event && event.requestId) plainer.push({ ...event, requestId: false, again: false });
  if (event.do !== "acquire") return plainer;
  if (event.keys.length > 1) plainer.push(...event.keys.map((key) => ({ ...event, keys: [key] })));
  if (event.waitMs !== null) plainer.push({ ...event, waitMs: null });
  if (event.steal) plainer.push({ ...event, steal: false });
  return plainer;
}
