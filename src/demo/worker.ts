import { Prng } from "../../testing/simulator/prng";
import type { Held } from "../../testing/workload/guarded-write";
import { AgentAtWork } from "./agent-at-work";
import type { Briefing, Order, Outcome, Wish } from "./messages";
import { chooseJob, type Job } from "./plan";
import { Inbox, leaveSignalsToTheDemo, tell } from "./stdio";
import { sleep } from "./within";

/** One agent's process: works by itself until it is told what to do, to finish, or nothing any more. */
export async function runWorker(): Promise<never> {
  leaveSignalsToTheDemo();
  const inbox = new Inbox();
  const briefing = await inbox.briefing;
  setTimeout(() => process.exit(3), briefing.lifeMs);
  try {
    const agent = await AgentAtWork.open(briefing);
    tell({ say: "ready", pid: process.pid, worktreeId: agent.session.actor.worktreeId });
    await new Worker(agent, inbox, briefing).run();
  } catch (error) {
    const { message, code, stack } = error as Error & { code?: string };
    tell({ say: "trouble", message: `${message}${code === undefined ? `\n${stack}` : ` (${code})`}` });
    process.exit(1);
  }
  process.exit(0);
}

class Worker {
  readonly #agent: AgentAtWork;
  readonly #inbox: Inbox;
  readonly #briefing: Briefing;
  readonly #chance: Prng;
  /** What it poses with: held still, until an order says what next. */
  #posing: readonly Held[] = [];
  #isFenced = false;
  #standsBy: boolean;

  constructor(agent: AgentAtWork, inbox: Inbox, briefing: Briefing) {
    this.#agent = agent;
    this.#inbox = inbox;
    this.#briefing = briefing;
    this.#standsBy = !briefing.plays;
    this.#chance = new Prng(briefing.seed, `${briefing.name}/${briefing.sessionId}`);
  }

  async run(): Promise<void> {
    for (;;) {
      const order = this.#inbox.next();
      if (order?.order === "finish") return this.#letGo();
      if (order !== undefined) await this.#obey(order);
      else if (!this.#standsBy) await this.#play();
      else await this.#inbox.wait(1_000);
    }
  }

  async #obey(order: Order): Promise<void> {
    const done = (outcome: Outcome, leases: readonly Held[] = this.#posing) =>
      tell({ say: "done", id: order.id, outcome, leases });
    switch (order.order) {
      case "pose":
        return done(await this.#pose(order, order.id));
      case "take":
        return this.#take(order, order.id, done);
      case "write":
        this.#isFenced = !(await this.#agent.write("write", this.#posing));
        return done(this.#isFenced ? "fenced" : "ok");
      case "transfer": {
        const { toAgent, toWorktree } = order;
        return done((await this.#agent.transfer(this.#posing[0]!, toAgent, toWorktree)) ? "ok" : "refused");
      }
      case "stand-by":
        this.#standsBy = true;
        tell({ say: "now", doing: "rests", keys: [] });
        return done("ok");
      default:
        await this.#letGo();
        this.#standsBy = !this.#briefing.plays;
        return done("ok");
    }
  }

  async #pose(wish: Wish, id: number): Promise<Outcome> {
    const leases = await this.#agent.acquire(wish, id);
    if (leases === null) return "refused";
    this.#posing = leases;
    tell({ say: "now", doing: "poses", keys: wish.keys });
    return (await this.#agent.write("enter", leases)) ? "ok" : "fenced";
  }

  async #take(
    wish: Wish,
    id: number,
    done: (outcome: Outcome, leases: readonly Held[]) => void,
  ): Promise<void> {
    const leases = await this.#agent.acquire(wish, id);
    if (leases === null) return done("refused", []);
    // A turn in the queue is told as soon as it has come: how long it took is what people want to know.
    done("ok", leases);
    await this.#work(leases, [{ ms: 60, renew: false }]);
  }

  async #letGo(): Promise<void> {
    const held = this.#posing;
    this.#posing = [];
    if (held.length === 0) return;
    if (!this.#isFenced) await this.#agent.write("leave", held);
    // Fenced off or not: trying to give it back must not touch the successor's lease.
    this.#isFenced = false;
    await this.#agent.release(held);
  }

  async #play(): Promise<void> {
    const { ground, pace } = this.#briefing;
    const job = chooseJob(this.#chance, ground, pace);
    const leases = await this.#agent.acquire(job, null);
    if (leases !== null) await this.#work(leases, job.steps);
    tell({ say: "now", doing: "rests", keys: [] });
    await this.#inbox.wait(job.restMs);
  }

  async #work(leases: readonly Held[], steps: Job["steps"]): Promise<void> {
    let fine = await this.#agent.write("enter", leases);
    for (const { ms, renew } of steps) {
      if (!fine) break;
      await sleep(ms);
      if (renew) await this.#agent.renew(leases);
      fine = await this.#agent.write("write", leases);
    }
    if (fine) await this.#agent.write("leave", leases);
    await this.#agent.release(leases);
  }
}
