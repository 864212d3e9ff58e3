import type { Decoded } from "../../codec/codec";
import { anyObject, anyText, textOrNull } from "../../codec/fields";
import { codecOf } from "../../codec/record";
import type { Coordinator } from "../../coordinator/contract";
import { type Fact, type FactName, factId, factName } from "../../kernel/facts";
import type { ProcessIdentity } from "../../platform/platform";

const FACT = codecOf(
  {
    worktreeId: anyText,
    agentId: anyText,
    startedAt: anyText,
    requestId: textOrNull,
    maker: anyObject<ProcessIdentity>(),
  },
  { opaque: new Set(["maker"]) },
);
/** A snapshot that somebody is taking, or was taking when they died. */
export type SnapshotIntent = Decoded<typeof FACT> & { readonly snapshotId: string };

const INTENT = "snapshot";
const LATEST = "latest-snapshot";

export function intentName(snapshotId: string): FactName {
  return factName(INTENT, snapshotId.toLowerCase());
}

/** What a worktree's next snapshot comes after. */
export function latestName(worktreeId: string): FactName {
  return factName(LATEST, worktreeId);
}

export function intentToFact(intent: SnapshotIntent): Fact {
  return FACT.encode(intent);
}

export async function openIntents(coordinator: Pick<Coordinator, "facts">): Promise<SnapshotIntent[]> {
  const facts = await coordinator.facts({ kinds: [INTENT] });
  return [...facts].flatMap(([name, { value }]) => {
    const intent = FACT.decode(value);
    return intent === null ? [] : [{ snapshotId: factId(name).toUpperCase(), ...intent }];
  });
}
