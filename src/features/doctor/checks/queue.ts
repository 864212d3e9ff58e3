import { pauseOf } from "../../../coordinator/pausing";
import { isItsTurn } from "../../../kernel/tickets";
import { type Check, note, ok } from "../finding";
import { many, some } from "../words";

/** Waiters that are gone, and waiters that could go on and do not. */
export const queueCheck: Check = {
  name: "queue",
  async look(patient) {
    const { live, void: voided } = await patient.tickets();
    const valid = (await patient.leases()).filter(({ standing }) => standing === "valid");
    const leases = valid.map(({ lease }) => lease);
    const found = [];
    if (voided.length > 0)
      found.push(
        note(
          `${many(voided.length, "ticket")} of waiters that ended, gave up or did not take their turn; the next acquire removes them`,
          null,
          { tickets: voided.slice(0, 100) },
        ),
      );
    // While it is paused nobody's turn comes.
    const isPaused = live.length > 0 && (await pauseOf(patient.coordinator)) !== null;
    const idle = isPaused ? [] : live.filter((ticket) => isItsTurn(ticket, live, leases));
    if (idle.length > 0) {
      const who = idle.map(({ agentId, holder }) => `${agentId} (process ${holder.pid})`);
      found.push(
        note(
          `what ${some(who)} waits for is free: it takes it now, or is stopped and loses its place in a few seconds`,
          null,
          { tickets: idle.map(({ number }) => number) },
        ),
      );
    }
    const waiting = live.length === 0 ? "nobody waits" : `${many(live.length, "waiter")} in line`;
    return [...found, ok(waiting, { waiting: live.length })];
  },
};
