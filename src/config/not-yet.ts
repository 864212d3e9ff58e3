import { variableName } from "./setting";

/**
 * Keys whose feature is not there. They are known and refused: whoever sets one relies on it, and a setting without effect
 * would be shown as if it had one.
 */
const NEEDS: Readonly<Record<string, string>> = {
  "coordination.auto_renew_leases": "the daemon",
  "coordination.heartbeat_interval_secs": "the daemon",
  "behavior.auto_heartbeat": "the daemon",
  "behavior.heartbeat_interval": "the daemon",
};

/** Why a key is not accepted, to be read after it; null where it is simply unknown. */
export function notYet(key: string): string | null {
  return Object.hasOwn(NEEDS, key)
    ? `has no effect yet: it needs ${NEEDS[key]}, which this version does not have`
    : null;
}

/** The same for an environment variable. */
export function variableNotYet(variable: string): string | null {
  const key = Object.keys(NEEDS).find((each) => variableName(each) === variable);
  return key === undefined ? null : notYet(key);
}
