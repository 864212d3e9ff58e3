import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Held } from "../../testing/workload/guarded-write";
import type { AgentProcess } from "./agent-process";
import type { Crew, Shared } from "./crew";
import type { Inspector } from "./inspector";
import type { Wish } from "./messages";
import type { Incident } from "./plan";
import { secs } from "./report";

export interface Stage extends Shared {
  readonly crew: Crew;
  readonly inspector: Inspector;
  /** How long a dead or stopped holder's lease took to get to the next in the queue. */
  readonly takeovers: { readonly how: string; readonly ms: number }[];
  label(key: string): string;
}

export interface Cast {
  readonly victim: AgentProcess;
  readonly rival: AgentProcess;
  readonly held: string;
  readonly wanted: string;
}

const PERSON = "human:grace";
const POSE_MS = 4_000;
const TAKE_MS = 9_000;

/** What can befall an agent. Each ends with everybody free again. */
export const PLOTS: Readonly<Record<Incident, (stage: Stage, cast: Cast) => Promise<void>>> = {
  "kill-process": (stage, cast) => killHolder(stage, cast, { bind: "process", ttlSecs: 0 }),
  "kill-ttl": (stage, cast) => killHolder(stage, cast, { bind: "ttl", ttlSecs: 1 }),
  "kill-anywhere": killAnywhere,
  stop: stopPastTtl,
  evict: evictByPerson,
  transfer: handOver,
};

async function killHolder(stage: Stage, cast: Cast, terms: Pick<Wish, "bind" | "ttlSecs">): Promise<void> {
  const { victim, rival } = cast;
  const lease = await pose(stage, cast, terms);
  if (lease === null) return;
  const taking = await queueUp(stage, rival, cast.wanted);
  if (taking === null) return;
  const killedAtMs = Date.now();
  await stage.crew.kill(victim);
  const bound = terms.bind === "process" ? "process-bound" : "TTL-bound";
  stage.note(`${victim.name} is killed holding ${named(stage, lease)} (${bound})`);
  await taking.granted;
  takenOver(stage, cast, lease, killedAtMs, terms.bind === "process" ? "dead" : "expired");
}

/** At any instant: waiting, asking, in the middle of a write, or inside the critical section. */
async function killAnywhere(stage: Stage, { victim }: Cast): Promise<void> {
  const { what, keys } = victim.doing;
  const about = keys.length === 0 ? "" : ` (${keys.map((key) => stage.label(key)).join(", ")})`;
  await stage.crew.kill(victim);
  stage.note(`${victim.name} is killed as it ${what}${about}`);
}

async function stopPastTtl(stage: Stage, cast: Cast): Promise<void> {
  const { victim, rival } = cast;
  const lease = await pose(stage, cast, { bind: "ttl", ttlSecs: 1 });
  if (lease === null) return;
  const taking = await queueUp(stage, rival, cast.wanted);
  if (taking === null) return;
  const stoppedAtMs = Date.now();
  // It holds still between two orders: stopped inside the critical section it would stop everybody.
  victim.stop();
  stage.books.counts.stopped++;
  stage.note(`${victim.name} is stopped holding ${named(stage, lease)}, past its TTL`);
  try {
    await taking.granted;
    takenOver(stage, cast, lease, stoppedAtMs, "expired");
  } finally {
    victim.goOn();
  }
  await expectFenced(stage, cast, lease, "comes back");
}

async function evictByPerson(stage: Stage, cast: Cast): Promise<void> {
  const { victim, rival, held } = cast;
  const lease = await pose(stage, cast, { bind: "ttl", ttlSecs: 10 });
  if (lease === null) return;
  const taking = await queueUp(stage, rival, cast.wanted);
  if (taking === null) return;
  await asPerson(stage, ["claim", "force-evict", held.slice("issue:".length), "--reason", "needed at once"]);
  stage.books.taken(lease.leaseId, "forced");
  stage.note(`${PERSON} evicts ${victim.name} from ${named(stage, lease)}`);
  await taking.granted;
  await expectFenced(stage, cast, lease, "knows nothing of it");
}

async function handOver(stage: Stage, cast: Cast): Promise<void> {
  const { victim, rival, wanted } = cast;
  const lease = await pose(stage, cast, { bind: "ttl", ttlSecs: 10 });
  if (lease === null) return;
  const { agentId: toAgent, worktreeId: toWorktree } = rival;
  const { outcome } = await victim.order({ order: "transfer", toAgent, toWorktree });
  stage.verdict.expect("a holder may hand over", outcome === "ok", () => named(stage, lease));
  stage.note(`${victim.name} hands ${named(stage, lease)} over to ${rival.name}`);
  const adopted = await rival.order({
    order: "take",
    keys: [wanted],
    bind: "ttl",
    ttlSecs: 10,
    waitMs: TAKE_MS,
  });
  stage.verdict.expect("what was handed over is the taker's", adopted.outcome === "ok", () =>
    named(stage, lease),
  );
  await expectFenced(stage, cast, lease, "tries to go on");
}

/** Null when it did not get it in time, for others were quicker. */
async function pose(
  stage: Stage,
  { victim, held }: Cast,
  terms: Pick<Wish, "bind" | "ttlSecs">,
): Promise<Held | null> {
  const { outcome, leases } = await victim.order({
    order: "pose",
    keys: [held],
    ...terms,
    waitMs: POSE_MS,
  });
  if (outcome === "ok") return leases[0]!;
  if (outcome === "fenced") await victim.order({ order: "let-go" });
  stage.note(`${victim.name} does not get ${stage.label(held)} in time`);
  return null;
}

/** In the queue when this returns; null when it was through it already: the victim's lease is gone, and the plot. */
async function queueUp(
  stage: Stage,
  rival: AgentProcess,
  key: string,
): Promise<{ readonly granted: Promise<unknown> } | null> {
  const wish = { keys: [key], bind: "ttl", ttlSecs: 4, waitMs: TAKE_MS } as const;
  let granted: Promise<unknown> = Promise.resolve();
  const queued = new Promise<boolean>((resolve, reject) => {
    granted = rival.order({ order: "take", ...wish }, () => resolve(true));
    granted.then(() => resolve(false), reject);
  });
  if (await queued) return { granted };
  stage.note(`${rival.name} was too late for ${stage.label(key)}`);
  return null;
}

function takenOver(stage: Stage, cast: Cast, lease: Held, sinceMs: number, how: string): void {
  stage.inspector.look();
  const known = stage.inspector.log.byId.get(lease.leaseId);
  const free = stage.verdict.expect(
    "nobody is blocked by the dead or the late",
    known?.how === how,
    () => `${named(stage, lease)} of ${cast.victim.name}: ${known?.how ?? "still held"}`,
  );
  if (!free) return;
  const takenAtMs = stage.books.takenAtMs(lease.leaseId) ?? Date.now();
  const ms = Math.max(0, takenAtMs - sinceMs);
  stage.takeovers.push({ how, ms });
  stage.note(`${stage.label(cast.wanted)} goes to the next in line after ${secs(ms)} (${how})`);
}

async function expectFenced(stage: Stage, cast: Cast, lease: Held, how: string): Promise<void> {
  const { victim } = cast;
  const { outcome } = await victim.order({ order: "write" });
  stage.verdict.expect(
    "a stale holder is fenced off",
    outcome === "fenced",
    () => `${victim.name} wrote with ${named(stage, lease)}`,
  );
  if (outcome === "fenced") stage.note(`${victim.name} ${how}: its write with #${lease.token} is refused`);
  await victim.order({ order: "let-go" });
}

/** A person at a terminal: the command line itself, in a process of its own. */
async function asPerson(stage: Stage, args: readonly string[]): Promise<void> {
  const { scratch, program } = stage;
  const cwd = scratch.worktrees[0]!;
  const env = { ...scratch.env };
  const all = [program, ...args, "--agent-id", PERSON, "--json"];
  await promisify(execFile)(process.execPath, all, { cwd, env, timeout: 10_000, windowsHide: true });
}

function named(stage: Stage, lease: Held): string {
  return `${stage.label(lease.key)} #${lease.token}`;
}
