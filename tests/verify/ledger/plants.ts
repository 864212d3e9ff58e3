import type { Plant } from "../plants";

const caughtBy = ["ledger simulation"] as const;

/** Mistakes that somebody could really make in the ledger, and that a few dozen stories must show. */
export const PLANTS: readonly Plant[] = [
  {
    name: "a claim of another machine taken as soon as it expires",
    file: "src/features/ledger/rules.ts",
    from: 'return nowMs > expiresAtMs + rules.skewMs ? "expired" : null;',
    to: 'return nowMs > expiresAtMs - rules.skewMs ? "expired" : null;',
    caughtBy,
    inTest: true,
  },
  {
    name: "a grant's token without a look at the claim's",
    file: "src/features/ledger/claim-attempt.ts",
    from: "      token: tokenOf(ref),",
    to: "      token: 0 * tokenOf(ref),",
    caughtBy,
    inTest: true,
  },
  {
    name: "a provisional claim confirmed although others had it since",
    file: "src/features/ledger/follow-up.ts",
    from: "return there.leaseId === record.leaseId ? there.isHeld : record.token > there.token;",
    to: "return true;",
    caughtBy,
  },
  {
    name: "an unclear push taken for a success",
    file: "src/features/ledger/claim-attempt.ts",
    from: 'const missing = outcomes.find(({ kind }) => kind !== "done");',
    to: 'const missing = outcomes.find(({ kind }) => kind === "rejected");',
    caughtBy,
  },
  {
    name: "a lease that the ledger gave to another kept here",
    file: "src/features/ledger/reconcile.ts",
    from: "await endConflicts(ledger, actor, claims, conflicts);",
    to: "",
    caughtBy,
  },
  {
    name: "lines that only this machine has not sent",
    file: "src/features/ledger/data/plan.ts",
    from: "if (text !== yours) branch.set(path, text);",
    to: "",
    caughtBy: ["ledger soak"],
  },
];
