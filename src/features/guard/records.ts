import type { Fact, FactName } from "../../kernel/facts";
import { instantOf, type Now } from "../../kernel/time";
import type { Platform, Processes } from "../../platform/platform";
import {
  blockerReports,
  type Contention,
  contentionFromFact,
  contentionName,
  contentionToFact,
  dueAt,
  isoOf,
  isReported,
} from "./contention";
import type { InTheWay } from "./holders";
import type { GuardedWorktree } from "./worktree";

/** All that it takes to write something down. */
interface Recording {
  readonly session: GuardedWorktree["session"];
  readonly world: { readonly platform: Pick<Platform, "digest"> };
}

/**
 * The first denial, with the instant of the one retry. Of several reports of one edit the first counts; the others find
 * it on record and go by it.
 */
export async function recordDenied(
  place: GuardedWorktree,
  denied: readonly Contention[],
): Promise<Contention[]> {
  const names = namesOf(place, denied);
  let standing: Contention[] = [...denied];
  await place.session.write([], {
    about: aboutOf(denied),
    facts: names,
    body: async ({ facts, now }) => {
      const deniedAt = instantOf(now);
      const fresh: Contention[] = [];
      standing = denied.map((contention, i): Contention => {
        const fact = facts.get(names[i]!);
        const known = fact === undefined ? null : contentionFromFact(fact.value);
        // One that was freed is over; this is a new one.
        if (known !== null && known.state !== "freed") return known;
        const made = { ...contention, deniedAt, retryAt: dueAt(deniedAt, contention.retrySecs) };
        fresh.push(made);
        return made;
      });
      if (fresh.length === 0) return null;
      return {
        type: "contention.heartbeat",
        payload: {
          denied_at: isoOf(fresh[0]!.deniedAt),
          retry_at: isoOf(fresh[0]!.retryAt),
          retry_interval_secs: fresh[0]!.retrySecs,
          files: fresh.map(({ path, owner }) => ({ path, owner: owner.agentId, lease_id: owner.leaseId })),
        },
        facts: asFacts(place, fresh),
        answer: true,
      };
    },
  });
  return standing;
}

/** The retry was in vain: two lines, either of which a crash may be the last to leave. */
export async function recordBlocked(
  place: GuardedWorktree,
  retried: readonly Contention[],
  inTheWay: InTheWay,
): Promise<Contention[]> {
  const { holder } = place.session.actor;
  const { processes } = place.world.platform;
  // Whoever is in the way now: not always the one of the first denial.
  const current = retried.map((contention) => ({
    ...contention,
    holder,
    owner: inTheWay.get(contention.key) ?? contention.owner,
    endedAt: null,
  }));
  await move(place, current, {
    type: "contention.retry",
    from: ({ state }) => state === "waiting",
    to: (contention) => ({ ...contention, state: "retried" }),
    payload: (moved) => ({
      outcome: "held",
      files: moved.map(({ path, owner }) => ({ path, owner: owner.agentId, lease_id: owner.leaseId })),
    }),
  });
  await move(place, current, {
    type: "contention.blocked",
    // Also of a session that was over, and goes on.
    from: async (known) =>
      known.state === "retried" || (known.state === "blocked" && (await isOver(processes, known))),
    to: (contention) => ({ ...contention, state: "blocked" }),
    payload: (moved, now) => ({ reports: moved.flatMap((contention) => blockerReports(contention, now)) }),
  });
  return current;
}

/** Whether the agent that was blocked is not there any more. */
export async function isOver(
  processes: Pick<Processes, "liveness">,
  { endedAt, holder }: Contention,
): Promise<boolean> {
  return endedAt !== null || (await processes.liveness(holder)) === "dead";
}

/** An agent is over while it is blocked: its report says so, and stays until the file is free. */
export async function recordEnded(
  place: Recording,
  contentions: readonly Contention[],
  how: "ended" | "failed" | "finished",
): Promise<void> {
  await move(place, contentions, {
    type: "contention.ended",
    from: ({ state, endedAt }) => isReported(state) && endedAt === null,
    to: (contention, now) => ({ ...contention, endedAt: instantOf(now) }),
    payload: (moved) => ({ how, files: moved.map(asFile) }),
  });
}

export type Resolution = "granted" | "released" | "ended" | "abandoned";

/** Nothing is in the way any more: the record goes. */
export async function recordResolved(
  place: Recording,
  contentions: readonly Contention[],
  how: Resolution,
): Promise<number> {
  return move(place, contentions, {
    type: "contention.resolved",
    from: () => true,
    to: () => null,
    payload: (moved) => ({ how, files: moved.map(asFile) }),
  });
}

/** What blocked somebody was given back: it says so, and the record waits for the next attempt. */
export async function recordFreed(place: Recording, contentions: readonly Contention[]): Promise<void> {
  await move(place, contentions, {
    type: "contention.resolved",
    from: ({ state }) => state === "blocked",
    to: (contention) => ({ ...contention, state: "freed" }),
    payload: (moved) => ({ how: "released", files: moved.map(asFile) }),
  });
}

function asFile({ path, owner, agentId, state }: Contention): Record<string, unknown> {
  return { path, agent_id: agentId, owner: owner.agentId, state };
}

interface Move {
  readonly type: string;
  /** Which of those that are on record by now. */
  from(known: Contention): boolean | Promise<boolean>;
  /** Null: its record goes. */
  to(contention: Contention, now: Now): Contention | null;
  payload(moved: readonly Contention[], now: Now): Record<string, unknown>;
}

async function move(
  place: Recording,
  contentions: readonly Contention[],
  { type, from, to, payload }: Move,
): Promise<number> {
  const names = namesOf(place, contentions);
  const written = await place.session.write([], {
    about: aboutOf(contentions),
    facts: names,
    body: async ({ facts, now }) => {
      const moved: Contention[] = [];
      const after = new Map<FactName, Fact | null>();
      for (const [i, contention] of contentions.entries()) {
        const fact = facts.get(names[i]!);
        const known = fact === undefined ? null : contentionFromFact(fact.value);
        if (known === null || !(await from(known))) continue;
        moved.push(contention);
        const next = to(contention, now);
        after.set(names[i]!, next === null ? null : contentionToFact(next));
      }
      if (moved.length === 0) return null;
      return { type, payload: payload(moved, now), facts: after, answer: moved.length };
    },
  });
  return written.replayed ? 0 : (written.answer ?? 0);
}

function namesOf({ world }: Pick<Recording, "world">, contentions: readonly Contention[]): FactName[] {
  return contentions.map((contention) => contentionName(world.platform.digest, contention, contention.key));
}

function asFacts(place: Pick<Recording, "world">, contentions: readonly Contention[]): Map<FactName, Fact> {
  const names = namesOf(place, contentions);
  return new Map(contentions.map((contention, i) => [names[i]!, contentionToFact(contention)]));
}

const MOST_NAMED = 5;

function aboutOf(contentions: readonly Contention[]): string {
  const paths = contentions.slice(0, MOST_NAMED).map(({ path }) => path);
  return [
    ...paths,
    ...(contentions.length > MOST_NAMED ? [`and ${contentions.length - MOST_NAMED} more`] : []),
  ].join(", ");
}
