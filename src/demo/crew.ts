import type { Verdict } from "../../testing/checker/verdict";
import { AgentProcess, type Listener } from "./agent-process";
import type { Books } from "./books";
import type { Report } from "./messages";
import { NAMES } from "./plan";
import type { Scratch } from "./scratch";
import type { Warden } from "./warden";
import { sleep, within } from "./within";

/** What everything about a run shares. */
export interface Shared {
  readonly scratch: Scratch;
  /** Where `cotenant` is. */
  readonly program: string;
  readonly seed: number;
  readonly books: Books;
  readonly verdict: Verdict;
  note(line: string): void;
}

interface CrewParts extends Shared {
  readonly agents: number;
  readonly lifeMs: number;
  readonly warden: Warden;
}

const START_MS = 20_000;
const RESTART_MS = 400;
/** As many agents as this keep two processors busy without making them late. */
const COMFORTABLE = 8;

/** All agents of a run. Starts them, listens to them, replaces the dead, and leaves none behind. */
export class Crew implements Listener {
  readonly agents: readonly AgentProcess[];
  /** Processes that were killed or have ended. */
  readonly dead = new Set<number>();
  readonly #parts: CrewParts;
  readonly #all: AgentProcess[] = [];
  #isClosing = false;
  #isAbandoned = false;

  constructor(parts: CrewParts) {
    this.#parts = parts;
    this.agents = NAMES.slice(0, parts.agents).map((name, i) => this.#hire(name, i));
  }

  start(): void {
    for (const agent of this.agents) this.#start(agent, true);
  }

  /** When everybody has found the repository: on a busy machine that takes its time, and it is not theirs. */
  async ready(): Promise<void> {
    try {
      await within(START_MS, "starting", Promise.all(this.agents.map((agent) => agent.ready)));
    } catch (error) {
      this.#parts.verdict.fail("everybody starts", (error as Error).message);
    }
  }

  /** One more, who does only what it is told. */
  extra(name: string): AgentProcess {
    const agent = this.#hire(name, 0);
    this.#start(agent, false);
    return agent;
  }

  /** SIGKILL; the agent comes back in a new process after a moment. */
  async kill(agent: AgentProcess): Promise<void> {
    if (agent.pid !== null) this.dead.add(agent.pid);
    agent.kill();
    await within(5_000, `the end of ${agent.name}`, agent.closed);
    this.#parts.books.counts.killed++;
    void sleep(RESTART_MS).then(() => {
      if (!this.#isClosing) this.#start(agent, true);
    });
  }

  /** Everybody finishes and goes; who does not is reported, and killed. */
  async finish(ms: number): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#all.map((agent) => this.dismiss(agent, ms)));
  }

  async dismiss(agent: AgentProcess, ms: number): Promise<void> {
    if (agent.pid === null) return;
    agent.finish();
    try {
      await within(ms, `${agent.name} finishing`, agent.closed);
    } catch (error) {
      this.#parts.verdict.fail("everybody finishes when told to", (error as Error).message);
      agent.kill();
      await agent.closed;
    }
  }

  /** At once and for good, also those that are stopped. */
  async abandon(): Promise<void> {
    this.#isClosing = true;
    this.#isAbandoned = true;
    for (const agent of this.#all) agent.kill();
    await within(5_000, "the end of all agents", Promise.all(this.#all.map((agent) => agent.closed)));
  }

  heard(agent: AgentProcess, report: Report): void {
    this.#parts.books.enter(report);
    if (report.say === "trouble")
      this.#parts.verdict.fail("no answer is unexpected", `${agent.name}: ${report.message}`);
  }

  ended(agent: AgentProcess, pid: number, how: { killed: boolean; asking: boolean }): void {
    this.dead.add(pid);
    this.#parts.warden.forget(pid);
    if (how.asking) this.#parts.books.unheard(pid);
    if (how.killed && !this.#isClosing) agent.doing = { what: "rests", keys: [] };
  }

  failed(agent: AgentProcess, story: string): void {
    this.#parts.verdict.fail("nobody dies unless killed", `${agent.name}: ${story}`);
    this.#parts.note(`${agent.name} ended by itself`);
  }

  #hire(name: string, order: number): AgentProcess {
    const { worktrees } = this.#parts.scratch;
    const agent = new AgentProcess(name, worktrees[order % worktrees.length]!, this);
    this.#all.push(agent);
    return agent;
  }

  #start(agent: AgentProcess, plays: boolean): void {
    if (this.#isAbandoned) throw new Error("nobody is started any more");
    const { seed, lifeMs, agents, program, scratch, warden } = this.#parts;
    const { witness, ground, env } = scratch;
    const pace = Math.max(1, agents / COMFORTABLE);
    agent.start(program, env, { witness, ground, seed, pace, plays, lifeMs });
    if (agent.pid !== null) warden.guard(agent.pid);
  }
}
