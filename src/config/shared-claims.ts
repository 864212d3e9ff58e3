import type { Config } from "./load";

/**
 * Whether claims are to be shared between machines: a ledger is named, trusted here or not. Until it is, nobody can ask it,
 * and a claim that nobody else knows of is provisional.
 */
export function sharesClaims({ values, namedOnly }: Pick<Config, "values" | "namedOnly">): boolean {
  return values["sync.ledger_branch"] !== null || namedOnly("sync.ledger_branch") !== null;
}
