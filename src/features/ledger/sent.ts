import { type Coordinator, WITHOUT_LEASE } from "../../coordinator/contract";
import type { Actor } from "../../kernel/commands";
import { type Fact, type FactName, factName } from "../../kernel/facts";
import type { Ulid } from "../../kernel/ids";
import type { Ledger } from "./ledger";
import type { ClaimRecord } from "./record";
import { idsOf } from "./record";
import type { MadeUpdate, RemoteClaims } from "./remote";

/** More are never on their way at once: what arrives after others is refused, for the ref has moved. */
const MOST_SENT = 16;

/**
 * The commits of a claim that this clone has pushed, or was about to push, newest last. They are kept when the claim ends: a
 * push of a process that was killed may still be on its way.
 */
function sentName(issueId: Ulid): FactName {
  return factName("ledger-sent", issueId.toLowerCase());
}

function sentIn(fact: Fact | undefined): string[] {
  const oids = fact?.["oids"];
  return Array.isArray(oids) ? oids.filter((oid) => typeof oid === "string") : [];
}

/** On the disk when it returns. Only what leaves a claim of ours standing could be taken for a twin's. */
export async function noteSent(
  coordinator: Pick<Coordinator, "write">,
  actor: Actor,
  updates: readonly MadeUpdate[],
): Promise<void> {
  const held = updates.filter(({ record }) => record.isHeld);
  if (held.length === 0) return;
  await coordinator.write({
    actor,
    ...WITHOUT_LEASE,
    about: held.length === 1 ? `issue:${held[0]!.issueId}` : `${held.length} issues`,
    facts: held.map(({ issueId }) => sentName(issueId)),
    body: async ({ facts }) => ({
      type: "sync.sending",
      payload: { issue_ids: idsOf(held) },
      facts: new Map(
        held.map(({ issueId, oid }) => {
          const before = sentIn(facts.get(sentName(issueId))?.value);
          return [sentName(issueId), { oids: [...before, oid].slice(-MOST_SENT) }];
        }),
      ),
      answer: true,
    }),
  });
}

/**
 * PROTOCOL 26b: claims that stand under this clone's id, by a commit that this clone has not made. Somebody else has its id:
 * a copy of the whole machine, inode and all.
 */
export async function twinsIn(ledger: Ledger, look: RemoteClaims): Promise<ClaimRecord[]> {
  const cloneId = await ledger.knownCloneId();
  const ours = [...look.claims.values()].flatMap(({ oid, reading }) =>
    "record" in reading && reading.record.isHeld && reading.record.cloneId === cloneId
      ? [{ oid, record: reading.record }]
      : [],
  );
  if (ours.length === 0) return [];
  const ids = ours.map(({ record }) => record.issueId);
  // After the look: what another process of this clone has pushed by then is on record by now.
  const known = await ledger.confirmations(ids);
  const facts = await ledger.parts.local.facts({ names: ids.map(sentName) });
  return ours
    .filter(({ oid, record: { issueId } }) => {
      const sent = sentIn(facts.get(sentName(issueId))?.value);
      return known.get(issueId)?.oid !== oid && !sent.includes(oid);
    })
    .map(({ record }) => record);
}
