import { isWithinReach, LARGEST_COUNT } from "./bounds";
import { type AgentId, agentType, printable } from "./ids";
import { type KeyKind, kindOf, type LeaseKey } from "./keys";
import { isIndefinite, type Lease, type Party } from "./lease";
import { type Refusal, refuse } from "./refusal";
import type { ValidityRules } from "./validity";

/** Limits that no configuration lifts. */
export const LIMITS = {
  keysPerOperation: 1_000,
  /** How often one call may be granted a claim that comes to nothing, because others were faster at the remote. */
  grantsOfOneClaim: 4,
  waiters: 1_000,
  ttlSecs: 30 * 86_400,
  textLength: 1_000,
  /** How many of the leases that it replaced a lease names. The line that granted it names them all as ended. */
  stoleFrom: 64,
} as const;

/** What a repository allows, as its configuration says. */
export interface Policy extends ValidityRules {
  readonly defaultTtlSecs: number;
  readonly maxTotalSecs: number;
  /** Per agent type; a type that is not named has only the general limit. */
  readonly maxTtlSecs: Readonly<Partial<Record<string, number>>>;
  /** Agent id patterns (`human:*`) that may end a live lease of somebody else. */
  readonly evict: readonly string[];
  /** How many others of those must agree before somebody else's live lease is ended; 0: none. */
  readonly approvers: number;
  /** A lease that is held and contended for so long is one for people to look at; 0: never. Decides nothing. */
  readonly escalateAfterSecs: number;
  /** Kinds of key that may be held without an expiry. */
  readonly indefinite: readonly KeyKind[];
  readonly maxIndefinitePerAgent: number;
  readonly maxIndefinitePerRepo: number;
}

export const DEFAULT_POLICY: Policy = {
  defaultTtlSecs: 600,
  maxTotalSecs: 86_400,
  maxTtlSecs: { agent: 86_400, ci: 86_400 },
  evict: ["human:*", "admin:*"],
  approvers: 0,
  escalateAfterSecs: 0,
  indefinite: ["issue", "scope", "worktree"],
  maxIndefinitePerAgent: 2,
  maxIndefinitePerRepo: 10,
  stopIdleSecs: 30,
  unknownTtlSecs: 1_800,
  staleThresholdSecs: 3_600,
};

export function checkTtl(ttlSecs: number, agentId: AgentId, policy: Policy): Refusal | null {
  if (!Number.isInteger(ttlSecs) || ttlSecs < 0) {
    return refuse("E_USAGE", `a TTL is a whole number of seconds, not ${ttlSecs}`, {
      hint: "for example --ttl 600; --ttl 0 with --reason means without expiry",
    });
  }
  const cap = ttlCapSecs(agentId, policy);
  if (ttlSecs > cap) {
    return refuse(
      "E_LIMIT",
      `a TTL of ${ttlSecs} s is over the limit of ${cap} s for ${agentType(agentId)} ids`,
      {
        hint: `ask for --ttl ${cap} or less and renew it while you work`,
        data: { ttl_secs: ttlSecs, max_ttl_secs: cap, setting: "policy.max_ttl_secs" },
      },
    );
  }
  return null;
}

/** The longest TTL that ids of this type may have. */
export function ttlCapSecs(agentId: AgentId, policy: Policy): number {
  return Math.min(LIMITS.ttlSecs, policy.maxTtlSecs[agentType(agentId)] ?? LIMITS.ttlSecs);
}

/** Blanks are no reason. */
export function isGiven(reason: string | null): reason is string {
  return reason !== null && reason.trim() !== "";
}

export function checkCount(count: number, what: string): Refusal | null {
  if (count <= LIMITS.keysPerOperation) return null;
  return refuse("E_LIMIT", `${count} ${what} in one operation; the limit is ${LIMITS.keysPerOperation}`, {
    hint: "do it in parts",
  });
}

export function checkText(text: string | null, what: string): Refusal | null {
  if (text !== null && text.length > LIMITS.textLength) {
    return refuse("E_LIMIT", `the ${what} is longer than ${LIMITS.textLength} characters`);
  }
  return null;
}

/** PROTOCOL 26a: a token from elsewhere is believed only within reach, and none is granted that could not be read again. */
export function checkToken(nextToken: number, aboveToken = 0, grants = 1): Refusal | null {
  const highest = nextToken - 1;
  if (!isWithinReach(aboveToken, highest))
    return refuse(
      "E_LIMIT",
      `${aboveToken} cannot be a fencing token: it is out of reach of ${highest}, the highest known here`,
      { data: { token: aboveToken, highest_token: highest } },
    );
  // The next one after these is written down, too.
  if (Math.max(highest, aboveToken) + grants < LARGEST_COUNT) return null;
  return refuse("E_LIMIT", `the fencing tokens of this repository are used up: ${highest} is the highest`, {
    data: { highest_token: highest, limit: LARGEST_COUNT },
  });
}

export function checkIndefinite(
  keys: readonly LeaseKey[],
  agentId: AgentId,
  reason: string | null,
  standing: Iterable<Lease>,
  policy: Policy,
): Refusal | null {
  if (!isGiven(reason)) {
    return refuse("E_POLICY", "a lease without expiry needs a reason", {
      hint: "add --reason <why>, and say why it cannot have a TTL; or use a TTL and renew it",
    });
  }
  const unwelcome = keys.find((key) => !policy.indefinite.includes(kindOf(key)));
  if (unwelcome !== undefined) {
    return refuse(
      "E_POLICY",
      `this repository does not allow a lease without expiry on ${printable(unwelcome)}`,
      {
        hint: `policy.indefinite allows: ${policy.indefinite.join(", ") || "nothing"}; use --ttl and renew`,
        data: { key: unwelcome, allowed_kinds: policy.indefinite, setting: "policy.indefinite" },
      },
    );
  }
  const indefinite = [...standing].filter(isIndefinite);
  const mine = indefinite.filter((lease) => lease.agentId === agentId).length;
  if (mine + keys.length > policy.maxIndefinitePerAgent) {
    return refuse(
      "E_LIMIT",
      `${agentId} would hold ${mine + keys.length} leases without expiry; the limit is ${policy.maxIndefinitePerAgent}`,
      {
        hint: "release one of them first, or use a TTL",
        data: {
          limit: policy.maxIndefinitePerAgent,
          held: mine,
          setting: "coordination.max_indefinite_leases_per_agent",
        },
      },
    );
  }
  if (indefinite.length + keys.length > policy.maxIndefinitePerRepo) {
    return refuse(
      "E_LIMIT",
      `this repository would have ${indefinite.length + keys.length} leases without expiry; the limit is ${policy.maxIndefinitePerRepo}`,
      {
        hint: "use a TTL and renew it",
        data: {
          limit: policy.maxIndefinitePerRepo,
          held: indefinite.length,
          setting: "coordination.max_indefinite_leases_per_repo",
        },
      },
    );
  }
  return null;
}

export function mayEvict(agentId: AgentId, policy: Policy): boolean {
  return isAmong(policy.evict, agentId);
}

/** Whether ending this lease needs the approval of others. Nobody needs it for what is their own. */
export function needsOthers(
  lease: Pick<Lease, "agentId">,
  { agentId }: Pick<Party, "agentId">,
  policy: Policy,
) {
  return policy.approvers > 0 && lease.agentId !== agentId;
}

/** Whether a list of agent ids, and beginnings of them with `*`, names this one. */
export function isAmong(patterns: readonly string[], agentId: string): boolean {
  return patterns.some((pattern) => matches(pattern, agentId));
}

function matches(pattern: string, agentId: string): boolean {
  return pattern.endsWith("*") ? agentId.startsWith(pattern.slice(0, -1)) : pattern === agentId;
}
