import type { Plant } from "../plants";

const caughtBy = ["properties"];

export const PLANTS: readonly Plant[] = [
  {
    name: "double grant: a directory around it does not count",
    file: "src/kernel/conflicts.ts",
    from: "if (this.#hasDirectories) {",
    to: "if (false) {",
    caughtBy,
    inTest: true,
  },
  {
    name: "double grant: what lapsed is not ended by the grant",
    file: "src/kernel/acquire.ts",
    from: 'ended.push(why === "forced" ? { ...record, why: taken } : record);',
    to: 'if (why === "forced") ended.push({ ...record, why: taken });',
    caughtBy,
    inTest: true,
  },
  {
    name: "token reset: several keys share one token",
    file: "src/kernel/acquire.ts",
    from: "fencingToken(first + i)",
    to: "fencingToken(first)",
    caughtBy,
    inTest: true,
  },
  {
    name: "token reset: the counter forgets what it granted",
    file: "src/kernel/view.ts",
    from: "for (const lease of event.leases) token = Math.max(token, lease.fencingToken + 1);",
    to: "",
    caughtBy,
    inTest: true,
  },
  {
    name: "lost release: the lease stays",
    file: "src/kernel/view.ts",
    from: "if (maps.leases.get(slot)?.leaseId === gone.leaseId) maps.leases.delete(slot);",
    to: 'if (gone.how !== "released" && maps.leases.get(slot)?.leaseId === gone.leaseId) maps.leases.delete(slot);',
    caughtBy,
    inTest: true,
  },
  {
    name: "fencing: any secret will do",
    file: "src/kernel/proof.ts",
    from: "return lease.secretHash !== null && caller.proofs.includes(lease.secretHash);",
    to: "return lease.secretHash !== null && caller.proofs.length > 0;",
    caughtBy,
    inTest: true,
  },
  {
    name: "expiry: an instant too late",
    file: "src/kernel/validity.ts",
    from: 'if (timeLeftMs(lease, now) <= 0) return "expired";',
    to: 'if (timeLeftMs(lease, now) < 0) return "expired";',
    caughtBy,
    inTest: true,
  },
];
