import type { Plant } from "../plants";

export const PLANTS: readonly Plant[] = [
  {
    name: "nobody in the queue stands before anybody",
    file: "src/kernel/tickets.ts",
    from: "    ticket.number < place && !sameParty(ticket, asker)",
    to: "    ticket.number < 0 && !sameParty(ticket, asker)",
    caughtBy: ["waiters"],
  },
];
