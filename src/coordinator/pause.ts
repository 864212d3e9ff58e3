import { errorFrom, policyError } from "../errors/cotenant-error";
import { agentType } from "../kernel/ids";
import { PAUSE_FACT, type Pause, pauseData, pauseIn, pauseToFact } from "../kernel/pause";
import { checkText, isGiven } from "../kernel/policy";
import { needsReason } from "../kernel/words";
import type { Coordinator } from "./contract";
import type { Session } from "./session";

export interface Pausing {
  /** As it stands now: of somebody who was first, theirs. */
  readonly pause: Pause;
  /** False: it was paused already, and this changed nothing. */
  readonly changed: boolean;
}

/** Who has paused the repository; null where nobody has. */
export async function pauseOf(coordinator: Pick<Coordinator, "facts">): Promise<Pause | null> {
  return pauseIn(await coordinator.facts({ names: [PAUSE_FACT] }));
}

/**
 * Stops all new grants. Grants are decided in the same critical section that this is written in, so that none follows the
 * answer. Whoever paused first stays named; a new reason of theirs replaces the old one.
 */
export async function pauseRepository(session: Session, reason: string | null): Promise<Pausing> {
  requirePerson(session, "pause");
  if (!isGiven(reason)) throw errorFrom(needsReason("a pause"));
  const unfit = checkText(reason, "reason");
  if (unfit !== null) throw errorFrom(unfit);
  const { agentId } = session.actor;
  let standing: Pause | null = null;
  const written = await session.write([], {
    about: "the repository",
    facts: [PAUSE_FACT],
    isOnlyLogged: true,
    body: async ({ facts, now }) => {
      const before = pauseIn(facts);
      const isOthers = before !== null && before.agentId !== agentId;
      standing = before;
      if (isOthers || before?.reason === reason) return null;
      const pause = { agentId, at: before?.at ?? new Date(now.wallMs).toISOString(), reason };
      standing = pause;
      return {
        type: "repository.paused",
        payload: pauseData(pause),
        facts: new Map([[PAUSE_FACT, pauseToFact(pause)]]),
        answer: true,
      };
    },
  });
  return { pause: standing!, changed: !written.replayed && written.answer === true };
}

/** Lets grants go on. Answers what ended; null where it was not paused. */
export async function resumeRepository(session: Session): Promise<Pause | null> {
  requirePerson(session, "resume");
  // Where there is no store nobody has paused anything, and none is made to find that out.
  if ((await pauseOf(session.coordinator)) === null) return null;
  let ended: Pause | null = null;
  await session.write([], {
    about: "the repository",
    facts: [PAUSE_FACT],
    isOnlyLogged: true,
    body: async ({ facts }) => {
      ended = pauseIn(facts);
      if (ended === null) return null;
      return {
        type: "repository.resumed",
        payload: pauseData(ended),
        facts: new Map([[PAUSE_FACT, null]]),
        answer: true,
      };
    },
  });
  return ended;
}

/** Inside a harness nobody has such a name: see `resolveAgent`. */
function requirePerson({ actor }: Session, verb: "pause" | "resume"): void {
  const type = agentType(actor.agentId);
  if (type === "human" || type === "admin") return;
  throw policyError(
    `only a person can ${verb} a repository, and ${actor.agentId} is not one`,
    `a person runs 'cotenant ${verb}${verb === "pause" ? " --reason <why>" : ""}' in a terminal, with a human: or admin: id`,
    { agent_id: actor.agentId },
  );
}
