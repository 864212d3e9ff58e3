import type { FactName, FactRecord } from "../kernel/facts";
import type { LeaseId } from "../kernel/ids";
import { type Ended, type Lease, type Slot, slotOf } from "../kernel/lease";
import type { ClaimEvent } from "../kernel/view";
import { endingsOf } from "./index-tree";
import type { EndingRecord, Replay, RequestRecord } from "./replay";

/**
 * What the log says beyond the index: lines another process appended and could not apply, or this batch's
 * own. The last word on a slot wins, so applying it over an index that is ahead does no harm.
 */
export class Overlay {
  readonly slots = new Map<Slot, Lease | null>();
  readonly endings = new Map<LeaseId, EndingRecord>();
  readonly requests = new Map<string, RequestRecord>();
  readonly facts = new Map<FactName, FactRecord | null>();

  /** `endedSinceMs`: older endings are told to nobody any more. */
  static of(replay: Replay, endedSinceMs = 0): Overlay {
    const overlay = new Overlay();
    for (const [slot, lease] of replay.touched) overlay.slots.set(slot, lease);
    for (const [id, ending] of replay.endings)
      if (ending.atMs >= endedSinceMs) overlay.endings.set(id, ending);
    for (const [id, request] of replay.requests) overlay.requests.set(id, request);
    for (const [name, fact] of replay.touchedFacts) overlay.facts.set(name, fact);
    return overlay;
  }

  /** This, and on top of it what came later. */
  under(later: Overlay): Overlay {
    const both = new Overlay();
    for (const { slots, endings, requests, facts } of [this, later]) {
      for (const [slot, lease] of slots) both.slots.set(slot, lease);
      for (const [id, ending] of endings) both.endings.set(id, ending);
      for (const [id, request] of requests) both.requests.set(id, request);
      for (const [name, fact] of facts) both.facts.set(name, fact);
    }
    return both;
  }

  /** For an index that starts from nothing: there is nothing to be taken out of it. */
  withoutAbsent(): Overlay {
    const overlay = new Overlay();
    for (const [slot, lease] of this.slots) if (lease !== null) overlay.slots.set(slot, lease);
    for (const [name, fact] of this.facts) if (fact !== null) overlay.facts.set(name, fact);
    for (const [id, ending] of this.endings) overlay.endings.set(id, ending);
    return overlay;
  }

  add(event: ClaimEvent, atMs: number): void {
    for (const gone of event.ended) this.slots.set(slotOf(gone), null);
    for (const ending of endingsOf(event.ended, atMs)) this.endings.set(ending.ended.leaseId, ending);
    for (const lease of event.leases) this.slots.set(slotOf(lease), lease);
  }

  layFactsOver(facts: Map<FactName, FactRecord>, wanted: (name: FactName) => boolean): void {
    for (const [name, fact] of this.facts) {
      if (fact === null) facts.delete(name);
      else if (wanted(name)) facts.set(name, fact);
    }
  }

  layOver(leases: Map<Slot, Lease>): void {
    for (const [slot, lease] of this.slots) {
      if (lease === null) leases.delete(slot);
      else leases.set(slot, lease);
    }
  }
}

/** All that there is, where nothing lies below. */
export function wholeView(overlay: Overlay): { leases: Map<Slot, Lease>; endings: Map<LeaseId, Ended> } {
  const leases = new Map<Slot, Lease>();
  overlay.layOver(leases);
  return { leases, endings: new Map([...overlay.endings].map(([id, record]) => [id, record.ended])) };
}
