import { CotenantError, errorFrom } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import { writerKey } from "../worktrees/writer-lock";
import type { Descriptor } from "./descriptor";
import { intentName, intentToFact, latestName } from "./intents";
import { dropRef } from "./snapshot-commit";
import type { SnapshotContext } from "./snapshot-context";

/** What the log hears of a snapshot: that it is intended, that it is ready, or that nothing came of it. */

export async function intend(
  context: SnapshotContext,
  id: Ulid,
  requestId: Ulid | null,
  token: number | null,
): Promise<void> {
  const { session, machine } = context;
  const { worktreeId, agentId } = session.actor;
  const { clock, processes } = machine.platform;
  const startedAt = new Date(clock.wallMs()).toISOString();
  const maker = processes.self();
  const intent = { snapshotId: id, worktreeId, agentId, startedAt, requestId, maker };
  await session.write(lockOf(context, token), {
    about: aboutOf(worktreeId),
    facts: [],
    body: async ({ refusal }) => {
      if (refusal !== null) throw errorFrom(refusal);
      return {
        type: "snapshot.intended",
        payload: { snapshot_id: id, worktree_id: worktreeId, fencing_token: token },
        facts: new Map([[intentName(id), intentToFact(intent)]]),
        answer: null,
      };
    },
  });
}

/** The critical section: what the lock's holder may still do is checked where it is done. */
export async function makeReady(
  context: SnapshotContext,
  descriptor: Descriptor,
  { requestId = null, secret = null }: { readonly requestId?: Ulid | null; readonly secret?: string | null },
  token: number | null,
): Promise<void> {
  const { session, descriptors } = context;
  const { snapshot_id: id, worktree_id: worktreeId } = descriptor;
  await session.write(lockOf(context, token), {
    about: aboutOf(worktreeId),
    facts: [intentName(id)],
    requestId,
    secret,
    body: async ({ refusal, leases, facts }) => {
      if (refusal !== null) throw errorFrom(refusal);
      if (token !== null && leases[0]?.fencingToken !== token) throw givenBack(token);
      if (!facts.has(intentName(id)))
        throw new CotenantError("E_PARTIAL_SNAPSHOT", `snapshot ${id} was cleared away while it was taken`, {
          hint: "take it again",
        });
      await descriptors.makeReady(descriptor);
      return readyLine(descriptor);
    },
  });
}

function readyLine(descriptor: Descriptor, recovered = false) {
  const { snapshot_id: id, worktree_id: worktreeId } = descriptor;
  const { tree, digest, parent, consistency_level, fencing_token, automatic, tags } = descriptor;
  return {
    type: "snapshot.ready",
    payload: {
      ...{ snapshot_id: id, worktree_id: worktreeId, tree, digest, parent },
      ...{ consistency_level, fencing_token, automatic, tags },
      ...(recovered ? { recovered } : {}),
    },
    facts: new Map([
      [intentName(id), null],
      [latestName(worktreeId), { snapshot_id: id }],
    ]),
    answer: null,
    result: { snapshot_id: id },
  };
}

/** One that had become visible when its maker died: the log learns of it. */
export async function logReady(
  { session }: Pick<SnapshotContext, "session">,
  descriptor: Descriptor,
  requestId: Ulid | null = null,
): Promise<void> {
  const name = intentName(descriptor.snapshot_id);
  await session.write([], {
    about: aboutOf(descriptor.worktree_id),
    facts: [name],
    requestId,
    body: async ({ facts }) => (facts.has(name) ? readyLine(descriptor, true) : null),
  });
}

/** Takes back what nobody has seen. */
export async function forget(
  { session, machine, place, descriptors }: SnapshotContext,
  id: string,
): Promise<void> {
  await dropRef(machine, place, id);
  await descriptors.clear(id);
  await session.write([], {
    about: `snapshot ${id}`,
    facts: [intentName(id)],
    body: async ({ facts }) =>
      facts.has(intentName(id))
        ? {
            type: "snapshot.abandoned",
            payload: { snapshot_id: id },
            facts: new Map([[intentName(id), null]]),
            answer: null,
          }
        : null,
  });
}

export function aboutOf(worktreeId: string): string {
  return `snapshot of ${worktreeId}`;
}

function lockOf({ session }: SnapshotContext, token: number | null) {
  return token === null ? [] : [{ key: writerKey(session.actor.worktreeId), leaseId: null }];
}

function givenBack(token: number): CotenantError {
  return new CotenantError(
    "E_FENCING_MISMATCH",
    `the writer lock with token ${token} was given back meanwhile`,
    {
      data: { fencing_token: token, end: "given_back" },
    },
  );
}
