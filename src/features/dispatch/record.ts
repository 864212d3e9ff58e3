import type { Coordinator } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import { orThrow } from "../../errors/cotenant-error";
import { type Fact, type FactName, factId, parseFactName } from "../../kernel/facts";
import { parseUlid, type Ulid } from "../../kernel/ids";
import { isRefusal } from "../../kernel/refusal";

/** How far the work on an issue has come, so that whoever goes on after a kill does nothing twice. */
export const STAGES = ["working", "worked", "delivered"] as const;
export type Stage = (typeof STAGES)[number];

/** What is known of an issue that a worker has taken and not yet finished. */
export interface WorkRecord {
  readonly issueId: Ulid;
  readonly runId: Ulid;
  readonly agentId: string;
  readonly branch: string;
  readonly stage: Stage;
  /** Attempts that have failed. */
  readonly failures: number;
  readonly startedAt: string;
  /** On the target, once it has landed. */
  readonly landed: string | null;
}

const KIND = "dispatch";

function nameOf(issueId: Ulid): FactName {
  return orThrow(parseFactName(`${KIND}:${issueId.toLowerCase()}`));
}

function toFact(record: WorkRecord): Fact {
  return {
    run_id: record.runId,
    agent_id: record.agentId,
    branch: record.branch,
    stage: record.stage,
    failures: record.failures,
    started_at: record.startedAt,
    ...(record.landed === null ? {} : { landed: record.landed }),
  };
}

/** Null for what another version wrote: it is left alone. */
function fromFact(name: FactName, fact: Fact): WorkRecord | null {
  const text = (field: string) => (typeof fact[field] === "string" ? (fact[field] as string) : null);
  const [issueId, runId] = [parseUlid(factId(name)), parseUlid(text("run_id") ?? "")];
  const stage = STAGES.find((one) => one === fact["stage"]);
  const [agentId, branch, startedAt] = [text("agent_id"), text("branch"), text("started_at")];
  const failures = fact["failures"];
  if (isRefusal(issueId) || isRefusal(runId) || stage === undefined) return null;
  if (agentId === null || branch === null || startedAt === null || typeof failures !== "number") return null;
  return { issueId, runId, agentId, branch, stage, failures, startedAt, landed: text("landed") };
}

export async function workRecords(
  coordinator: Pick<Coordinator, "facts">,
): Promise<ReadonlyMap<Ulid, WorkRecord>> {
  const records = new Map<Ulid, WorkRecord>();
  for (const [name, { value }] of await coordinator.facts({ kinds: [KIND] })) {
    const record = fromFact(name, value);
    if (record !== null) records.set(record.issueId, record);
  }
  return records;
}

/** Says in the log what has happened, and remembers how far it has come; null: it is over. */
export async function note(
  session: Session,
  issueId: Ulid,
  type: "dispatch.started" | "dispatch.worked" | "dispatch.failed" | "dispatch.delivered" | "dispatch.ended",
  record: WorkRecord | null,
  payload: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const name = nameOf(issueId);
  await session.write<true>([], {
    about: `dispatch issue:${issueId}`,
    facts: [name],
    isOnlyLogged: true,
    body: async () => ({
      type,
      payload: { issue_id: issueId, ...payload },
      facts: new Map([[name, record === null ? null : toFact(record)]]),
      answer: true,
    }),
  });
}
