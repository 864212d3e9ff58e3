import fc from "fast-check";
import type { Command } from "../../src/kernel/commands";
import { conflict, type Extent } from "../../src/kernel/conflicts";
import { type Circumstances, type Decision, decide, standingOf } from "../../src/kernel/decide";
import {
  effectiveReach,
  isIndefinite,
  type Lease,
  type Slot,
  sameParty,
  slotOf,
} from "../../src/kernel/lease";
import { isRefusal, type Refusal } from "../../src/kernel/refusal";
import type { Instant } from "../../src/kernel/time";
import { applyTo, type ClaimEvent, EMPTY_VIEW, evolve, type View } from "../../src/kernel/view";
import { type Answer, clash, type Fact, isParty, Model } from "./model";
import { type Step, World } from "./world";

/** Enough for every suite of promises to be put to the test, few enough to shrink well. */
const MAX_STEPS = 40;

const step: fc.Arbitrary<Step> = fc.tuple(fc.nat(99), fc.nat(4095), fc.nat(4095), fc.nat(4095));
export const histories: fc.Arbitrary<History> = fc.tuple(
  fc.array(step, { maxLength: MAX_STEPS, size: "max" }),
  fc.nat(3),
  fc.nat(MAX_STEPS),
);

/** A random history, to be run by `runHistory`. */
export type History = readonly [steps: readonly Step[], policy: number, cut: number];

type Count = (what: string) => void;

/** Throws when the kernel decides otherwise than the plain model, or breaks a promise. Counts what it came to. */
export function runHistory([steps, policy, cut]: History, count: Count): void {
  const world = new World(policy);
  const model = new Model();
  const events: ClaimEvent[] = [];
  let view: View = EMPTY_VIEW;
  let highestToken = 0;
  for (const [i, taken] of steps.entries()) {
    const scene = world.take(taken, view);
    if (scene === null) continue;
    const { command, at } = scene;
    const before = view.nextToken;
    const outcome = decide(view, command, at);
    checkRefusal(outcome, command, view, at);
    checkIndependence(outcome, command, view, at, i);
    if (!isRefusal(outcome) && outcome.event !== null) {
      highestToken = checkTokens(outcome.event, view, highestToken);
      checkAllOrNothing(outcome, command);
      view = evolve(view, outcome.event);
      events.push(outcome.event);
    }
    agree(command, outcome, model.perform(command, at));
    sameState(view, model);
    if (view.nextToken < before) fail("the next token fell");
    checkExclusion(view, world);
    note(command, outcome, at, count);
    if (!isRefusal(outcome)) checkFromElsewhere(command, outcome, before, count);
  }
  checkReplay(view, events, cut);
}

// --- the promises (docs/GUARANTEES.md) -------------------------------------------------------------------------------

/** Promise 1, and more: no two leases of different holders conflict, whether any observer calls them valid or not. */
function checkExclusion(view: View, world: World): void {
  const leases = [...view.leases.values()];
  for (let i = 0; i < leases.length; i++) {
    for (let j = i + 1; j < leases.length; j++) {
      const [a, b] = [leases[i]!, leases[j]!];
      if (isParty(factOf(a), b) || !clash(factOf(a), factOf(b))) continue;
      const seenBy = world
        .everywhere(view)
        .filter((at) => standingOf(a, at) === "valid" && standingOf(b, at) === "valid").length;
      fail(`two holders: ${describe(a)} and ${describe(b)}, both valid to ${seenBy} of 3 observers`);
    }
  }
}

/** Judged by the plain rules, for a kernel that is wrong about them would be wrong here too. */
function factOf({ agentId, sessionId, worktreeId, key, reach }: Lease) {
  return { agent: agentId, session: sessionId, worktree: worktreeId, key, reach };
}

/** Promise 2: every grant's token is higher than any before. */
function checkTokens(event: ClaimEvent, view: View, highest: number): number {
  const known = new Set([...view.leases.values()].map((lease) => lease.leaseId));
  for (const lease of event.leases) {
    if (known.has(lease.leaseId)) continue;
    if (lease.fencingToken <= highest) fail(`token ${lease.fencingToken} after ${highest}`);
    highest = lease.fencingToken;
  }
  return highest;
}

/** PROTOCOL 23: also higher than what another machine has given out. */
function checkFromElsewhere(command: Command, { event }: Decision, next: number, count: Count): void {
  if (command.kind === "evict" && command.isOverruled === true && event !== null) count("evict: overruled");
  if (command.kind !== "acquire" && command.kind !== "transfer") return;
  const { kind, aboveToken = 0 } = command;
  const isNew = event?.type === "claim.acquired" || event?.type === "claim.transferred";
  if (!isNew || aboveToken < next) return;
  const asked =
    kind === "acquire" ? new Set<string>(command.leaseIds) : new Set<string>([command.newLeaseId]);
  for (const { leaseId, fencingToken } of event.leases)
    if (asked.has(leaseId) && fencingToken <= aboveToken)
      fail(`token ${fencingToken}, not above ${aboveToken}`);
  count(`${kind}: above a token from elsewhere`);
}

/** Promise 6: whoever is refused for a holder's sake is refused for a valid one's that is not itself. */
function checkRefusal(outcome: Decision | Refusal, command: Command, view: View, at: Circumstances): void {
  if (!isRefusal(outcome) || outcome.code !== "E_LOCK_CONFLICT") return;
  const holders = outcome.data["holders"] as { lease_id: string }[];
  if (holders.length === 0) fail("refused for nobody's sake");
  for (const { lease_id } of holders) {
    const lease = [...view.leases.values()].find((l) => l.leaseId === lease_id);
    if (lease === undefined || standingOf(lease, at) !== "valid") fail(`a lapsed lease blocks: ${lease_id}`);
    else if (command.kind === "acquire" && sameParty(lease, command.actor)) fail("blocked by itself");
  }
}

/** Promise 7: what was granted is everything that was asked for. */
function checkAllOrNothing(outcome: Decision, command: Command): void {
  if (command.kind !== "acquire") return;
  for (const { key } of command.keys) {
    if (!outcome.leases.some((lease) => lease.key === key && sameParty(lease, command.actor)))
      fail(`${key} was asked for and not granted`);
  }
}

/** Promise 5's foundation: any stretch of the log may be replayed over its own result. */
function checkReplay(view: View, events: readonly ClaimEvent[], cut: number): void {
  const whole = { leases: new Map(), endings: new Map() } as Parameters<typeof applyTo>[0];
  for (const event of events) applyTo(whole, event);
  sameMaps(whole, view, "replayed from the start");
  let again: View = view;
  for (const event of events.slice(events.length === 0 ? 0 : cut % events.length))
    again = evolve(again, event);
  sameMaps(again, view, "a stretch replayed twice");
  if (again.nextToken !== view.nextToken) fail("replay moved the next token");
}

function sameMaps(a: Pick<View, "leases" | "endings">, b: View, what: string): void {
  const same = <K, V>(x: ReadonlyMap<K, V>, y: ReadonlyMap<K, V>) =>
    x.size === y.size && [...x].every(([key, value]) => y.get(key) === value);
  if (!same(a.leases, b.leases) || !same(a.endings, b.endings)) fail(`${what}: another view`);
}

/** Neither the order of the view nor leases that do not matter (see `View`) may change a decision. */
function checkIndependence(
  outcome: Decision | Refusal,
  command: Command,
  view: View,
  at: Circumstances,
  i: number,
): void {
  if (command.kind === "gc" || i % 4 !== 0) return;
  const needed = [...view.leases.values()].filter((lease) => matters(lease, command, view, at));
  const leases = new Map<Slot, Lease>(needed.reverse().map((lease) => [slotOf(lease), lease]));
  const again = decide({ ...view, leases }, command, at);
  if (JSON.stringify(again) !== JSON.stringify(outcome)) {
    fail(`part of the view decides otherwise: ${JSON.stringify(outcome)} or ${JSON.stringify(again)}`);
  }
}

function matters(lease: Lease, command: Command, view: View, at: Circumstances): boolean {
  const meets = (keys: readonly Pick<Extent, "key" | "reach">[], worktreeId: Extent["worktreeId"]) =>
    keys.some(({ key, reach }) => conflict({ key, reach: effectiveReach(key, reach), worktreeId }, lease));
  switch (command.kind) {
    case "acquire":
      return (
        meets(command.keys, command.actor.worktreeId) ||
        (command.ttlSecs === 0 && isIndefinite(lease)) ||
        at.tickets.some((ticket) => meets(ticket.keys, ticket.worktreeId))
      );
    case "transfer": {
      const { key, leaseId } = command.lease;
      const named = [...view.leases.values()].filter((l) => l.key === key || l.leaseId === leaseId);
      return (
        named.includes(lease) ||
        named.some((l) => meets([l], command.toWorktree) || (isIndefinite(l) && isIndefinite(lease)))
      );
    }
    case "gc":
      return true;
    default:
      return command.leases.some((ref) => ref.key === lease.key || ref.leaseId === lease.leaseId);
  }
}

// --- kernel and model ---------------------------------------------------------------------------------------

function agree(command: Command, outcome: Decision | Refusal, answer: Answer): void {
  const told = (what: string): never => fail(`${what} for ${JSON.stringify(command)}`);
  const kernelCode = isRefusal(outcome) ? outcome.code : "fine";
  const modelCode = "code" in answer ? answer.code : "fine";
  if (kernelCode !== modelCode) told(`kernel: ${kernelCode}, model: ${modelCode}`);
  if (isRefusal(outcome) || "code" in answer) return;
  if ((outcome.event !== null) !== answer.wrote)
    told(`kernel ${outcome.event === null ? "wrote nothing" : "wrote"}, model otherwise`);
  const ids = (list: readonly (string | undefined)[]) =>
    (command.kind === "gc" ? [...list].sort() : list).join(" ");
  const kernelSays = ids(outcome.leases.map((lease) => lease.leaseId));
  const modelSays = ids(answer.about.map((fact) => fact.id));
  if (kernelSays !== modelSays) told(`kernel about ${kernelSays}, model about ${modelSays}`);
}

function sameState(view: View, model: Model): void {
  if (view.nextToken !== model.nextToken) fail(`next token ${view.nextToken}, model ${model.nextToken}`);
  if (view.leases.size !== model.facts.length)
    fail(`${view.leases.size} leases, model ${model.facts.length}`);
  const facts = new Map(model.facts.map((fact) => [fact.id, fact]));
  for (const lease of view.leases.values()) {
    const fact = facts.get(lease.leaseId);
    const difference = fact === undefined ? "not there" : differenceBetween(lease, fact);
    if (difference !== null) fail(`${describe(lease)}: model has ${difference}`);
  }
  if (view.endings.size !== model.gone.length)
    fail(`${view.endings.size} endings, model ${model.gone.length}`);
  for (const gone of model.gone) {
    const ending = view.endings.get(gone.id as never);
    if (ending?.how !== gone.how || ending.successor !== gone.successor)
      fail(`${gone.id} ended ${JSON.stringify(ending)}, model ${JSON.stringify(gone)}`);
  }
}

/** Called for every lease after every step, hence without ceremony. */
function differenceBetween(lease: Lease, fact: Fact): string | null {
  const different =
    (lease.key !== fact.key && "key") ||
    (lease.agentId !== fact.agent && "agent") ||
    (lease.sessionId !== fact.session && "session") ||
    (lease.worktreeId !== fact.worktree && "worktree") ||
    (lease.branch !== fact.branch && "branch") ||
    (lease.holder !== fact.holder && "holder") ||
    (lease.reach !== fact.reach && "reach") ||
    (lease.bind !== fact.bind && "bind") ||
    (lease.fencingToken !== fact.token && "token") ||
    (lease.secretHash !== fact.secret && "secret") ||
    (lease.ttlSecs !== fact.ttl && "ttl") ||
    (lease.maxTotalSecs !== fact.maxTotal && "maxTotal") ||
    (lease.reason !== fact.reason && "reason") ||
    (!sameInstant(lease.acquiredAt, fact.acquired) && "acquired") ||
    (!sameInstant(lease.renewedAt, fact.renewed) && "renewed") ||
    (!sameInstant(lease.expiresAt, fact.expires) && "expires") ||
    (!sameInstant(lease.lastBeat, fact.beat) && "beat") ||
    (!sameInstant(lease.stopIdleAt, fact.stopped) && "stopped") ||
    (!samePast(lease, fact) && "from");
  return different === false ? null : `another ${different}: ${JSON.stringify(fact[different])}`;
}

function sameInstant(a: Instant | null, b: Instant | null): boolean {
  return a?.clockId === b?.clockId && a?.monotonicMs === b?.monotonicMs && a?.wallMs === b?.wallMs;
}

function samePast(lease: Lease, fact: Fact): boolean {
  return (
    lease.stoleFrom.length === fact.from.length &&
    lease.stoleFrom.every(({ leaseId, agentId, why }, i) => {
      const from = fact.from[i]!;
      return from.id === leaseId && from.agent === agentId && from.why === why;
    })
  );
}

// --- what was tried -------------------------------------------------------------------------------------------

/** Everything that enough random histories come to; one that none did means that something was never tried. */
export const OCCURRENCES = [
  "acquire: granted", "acquire: above a token from elsewhere", "acquire: renewed", "acquire: as it was", "acquire: ended expired", "acquire: ended dead", "acquire: ended stop_idle", "acquire: ended forced", "acquire: adopted", "acquire: several at once", "acquire: own beside own", "acquire: E_LOCK_CONFLICT", "acquire: E_QUEUED", "acquire: E_PAUSED", "acquire: E_APPROVAL_NEEDED", "transfer: E_APPROVAL_NEEDED", "evict: E_APPROVAL_NEEDED", "acquire: granted while paused", "acquire: E_POLICY", "acquire: E_LIMIT", "acquire: E_USAGE", "renew: done", "renew: E_LOCK_EXPIRED", "renew: E_FENCING_MISMATCH", "renew: E_NOT_FOUND", "renew: E_LOCK_NOT_HELD", "renew: E_LIMIT", "renew: E_USAGE", "heartbeat: done", "prove: done", "prove: as it was", "prove: E_LOCK_EXPIRED", "prove: E_LOCK_NOT_HELD", "release: done", "release: E_FENCING_MISMATCH", "release: E_LOCK_EXPIRED", "transfer: done", "transfer: of somebody else's", "transfer: above a token from elsewhere", "transfer: ended expired", "transfer: E_LOCK_CONFLICT", "transfer: E_LIMIT", "transfer: E_LOCK_EXPIRED", "evict: done", "evict: overruled", "evict: E_POLICY", "evict: E_USAGE", "evict: E_NOT_FOUND", "stop: done", "stop: as it was", "upkeep: done", "upkeep: as it was", "gc: done", "gc: as it was",
]; // biome-ignore format: a list

function note(command: Command, outcome: Decision | Refusal, at: Circumstances, count: Count): void {
  const { kind } = command;
  if (isRefusal(outcome)) return void count(`${kind}: ${outcome.code}`);
  const { event } = outcome;
  if (event === null) return void count(`${kind}: as it was`);
  if (kind !== "acquire") count(`${kind}: done`);
  else count(event.type === "claim.acquired" ? "acquire: granted" : "acquire: renewed");
  if (kind === "transfer" && event.ended[0]?.why !== undefined) count("transfer: of somebody else's");
  for (const { how } of event.ended) count(`${kind}: ended ${how}`);
  if (kind !== "acquire") return;
  if (outcome.leases.length > new Set(command.keys.map(({ key }) => key)).size) count("acquire: adopted");
  if (event.type === "claim.acquired" && outcome.leases.length > 1) count("acquire: several at once");
  if (event.type === "claim.acquired" && at.facts!.size > 0) count("acquire: granted while paused");
  if (outcome.leases.some((a) => outcome.leases.some((b) => a !== b && conflict(a, b))))
    count("acquire: own beside own");
}

function describe(lease: Lease): string {
  const { leaseId, key, reach, agentId, sessionId, worktreeId, fencingToken } = lease;
  return `${leaseId} #${fencingToken} ${key} (${reach}) of ${agentId} ${sessionId} ${worktreeId}`;
}

function fail(message: string): never {
  throw new Error(message);
}
