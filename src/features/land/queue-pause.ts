import type { Coordinator } from "../../coordinator/contract";
import { givenReason } from "../../coordinator/requests";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, orThrow } from "../../errors/cotenant-error";
import { type FactName, type FactRecord, parseFactName } from "../../kernel/facts";
import { printable } from "../../kernel/ids";
import { pauseToFact } from "../../kernel/pause";
import { requireLander } from "./allowance";
import { entriesIn, LANDING, type LandEntry, pushesUnderWay } from "./entry";
import { shownBranch } from "./target";

/** Who has stopped the landings on a target, since when, and why. */
export interface QueuePause {
  readonly target: string;
  readonly agentId: string;
  readonly at: string;
  readonly reason: string;
}

const PAUSE = "land-pause";

/** A branch's name may be longer than a fact's, and in any script. */
export function queuePauseName(workspace: Workspace, target: string): FactName {
  const { digest } = workspace.surroundings.platform;
  return orThrow(parseFactName(`${PAUSE}:${digest.sha256(target).slice(0, 32)}`));
}

export function queuePauseIn(
  workspace: Workspace,
  facts: ReadonlyMap<FactName, FactRecord>,
  target: string,
): QueuePause | null {
  const value = facts.get(queuePauseName(workspace, target))?.value;
  if (value === undefined) return null;
  const { agent_id: agentId, at, reason } = value;
  return { target, agentId: String(agentId ?? ""), at: String(at ?? ""), reason: String(reason ?? "") };
}

export async function queuePauseOf(workspace: Workspace, target: string): Promise<QueuePause | null> {
  const coordinator: Pick<Coordinator, "facts"> = workspace.coordinator;
  return queuePauseIn(
    workspace,
    await coordinator.facts({ names: [queuePauseName(workspace, target)] }),
    target,
  );
}

export function queuePausedError(pause: QueuePause): CotenantError {
  return new CotenantError(
    "E_PAUSED",
    `nothing lands on ${shownBranch(pause.target)}: paused by ${printable(pause.agentId)} since ${printable(pause.at, 40)}: ${printable(pause.reason, 300)}`,
    {
      hint: "when it is over, whoever policy.land allows runs: cotenant land resume; entries can be added meanwhile",
      data: { target: pause.target, paused_by: pause.agentId, paused_at: pause.at, reason: pause.reason },
    },
  );
}

/**
 * Nothing more lands on the target from here on: it is looked at in the same critical section that moves the branch. A push that
 * is under way is told of.
 */
export async function pauseQueue(
  workspace: Workspace,
  session: Session,
  { target, reason }: { readonly target: string; readonly reason: string },
): Promise<{ readonly pause: QueuePause; readonly changed: boolean }> {
  requireLander(workspace, session, "pause");
  givenReason(reason, "a pause");
  const name = queuePauseName(workspace, target);
  const { agentId } = session.actor;
  let standing: QueuePause | null = null;
  let entries: readonly LandEntry[] = [];
  const written = await session.write<true>([], {
    about: `landing on ${target}`,
    facts: [name],
    factKinds: [LANDING],
    isOnlyLogged: true,
    body: async ({ facts, now }) => {
      entries = entriesIn(facts).filter((entry) => entry.target === target && entry.state === "queued");
      standing = queuePauseIn(workspace, facts, target);
      // Whoever paused first stays named.
      if (standing !== null && (standing.agentId !== agentId || standing.reason === reason)) return null;
      const at = standing?.at ?? new Date(now.wallMs).toISOString();
      standing = { target, agentId, at, reason };
      return {
        type: "land.paused",
        payload: { target, paused_by: agentId, reason },
        facts: new Map([[name, { target, ...pauseToFact(standing) }]]),
        answer: true,
      };
    },
  });
  workspace.warnings.push(...pushesUnderWay(entries));
  return { pause: standing!, changed: !written.replayed && written.answer === true };
}

/** Answers what ended; null where it was not paused. */
export async function resumeQueue(
  workspace: Workspace,
  session: Session,
  { target }: { readonly target: string },
): Promise<QueuePause | null> {
  requireLander(workspace, session, "resume");
  if ((await queuePauseOf(workspace, target)) === null) return null;
  const name = queuePauseName(workspace, target);
  let ended: QueuePause | null = null;
  await session.write<true>([], {
    about: `landing on ${target}`,
    facts: [name],
    isOnlyLogged: true,
    body: async ({ facts }) => {
      ended = queuePauseIn(workspace, facts, target);
      if (ended === null) return null;
      const { agentId, at, reason } = ended;
      return {
        type: "land.resumed",
        payload: { target, paused_by: agentId, paused_at: at, reason },
        facts: new Map([[name, null]]),
        answer: true,
      };
    },
  });
  return ended;
}
