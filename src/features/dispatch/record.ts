import * as v from "valibot";
import type { Decoded } from "../../codec/codec";
import { textOrNull, ulid } from "../../codec/fields";
import { codecOf } from "../../codec/record";
import type { Coordinator } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import { type FactName, factId, factName } from "../../kernel/facts";
import { type Ulid, ulidIn } from "../../kernel/ids";

/** How far the work on an issue has come, so that whoever goes on after a kill does nothing twice. */
const STAGES = ["working", "worked", "delivered"] as const;
export type Stage = (typeof STAGES)[number];

const RECORD = codecOf(
  {
    runId: ulid,
    agentId: v.string(),
    branch: v.string(),
    stage: v.picklist(STAGES),
    /** Attempts that have failed. */
    failures: v.number(),
    startedAt: v.string(),
    /** On the target, once it has landed. */
    landed: textOrNull,
  },
  { leavesNullsOut: true },
);

/** What is known of an issue that a worker has taken and not yet finished. */
export type WorkRecord = Decoded<typeof RECORD> & { readonly issueId: Ulid };

const KIND = "dispatch";

function nameOf(issueId: Ulid): FactName {
  return factName(KIND, issueId.toLowerCase());
}

export async function workRecords(
  coordinator: Pick<Coordinator, "facts">,
): Promise<ReadonlyMap<Ulid, WorkRecord>> {
  const records = new Map<Ulid, WorkRecord>();
  for (const [name, { value }] of await coordinator.facts({ kinds: [KIND] })) {
    // What another version wrote is left alone.
    const [issueId, record] = [ulidIn(factId(name)), RECORD.decode(value)];
    if (issueId !== null && record !== null) records.set(issueId, { issueId, ...record });
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
      facts: new Map([[name, record === null ? null : RECORD.encode(record)]]),
      answer: true,
    }),
  });
}
