import type { ObjectId } from "../../git/object-name";
import type { Ulid } from "../../kernel/ids";
import type { ParkedWhy } from "./entry";

/** Why an entry cannot land as things stand. */
export interface Rejection {
  readonly why: ParkedWhy;
  readonly message: string;
  readonly hint: string;
  readonly paths: readonly string[];
  readonly output: string;
  readonly outputFile: string | null;
}

export type Verdict =
  | { readonly kind: "pending" }
  | { readonly kind: "passed" }
  /** The commit that it stands on has all of it. */
  | { readonly kind: "contained" }
  | { readonly kind: "rejected"; readonly rejection: Rejection };

/** An entry on top of those before it. */
export interface Slot {
  readonly entryId: Ulid;
  readonly base: ObjectId;
  /** Null where nothing came of it; those behind it stand on its base then. */
  readonly commit: ObjectId | null;
  readonly verdict: Verdict;
}

/** What is to be done next. */
export type Step =
  | { readonly do: "land"; readonly slot: Slot & { readonly commit: ObjectId } }
  | { readonly do: "drop"; readonly slot: Slot }
  | { readonly do: "park"; readonly slot: Slot; readonly rejection: Rejection }
  /** Put this entry onto that commit. */
  | { readonly do: "build"; readonly entryId: Ulid; readonly onto: ObjectId }
  /** Until a verdict comes. */
  | { readonly do: "wait" }
  | { readonly do: "end" };

/**
 * Which entries stand on which, and what follows from their verdicts. Pure: it builds, checks and lands nothing. A verdict
 * counts only once everything below it has landed, because until then it may be about the work of others; so entries land
 * and leave strictly in the order of the queue (PROTOCOL 32).
 */
export class Speculation {
  readonly #most: number;
  #tip: ObjectId;
  #slots: readonly Slot[] = [];

  constructor(tip: ObjectId, most: number) {
    this.#tip = tip;
    this.#most = most;
  }

  get tip(): ObjectId {
    return this.#tip;
  }

  get slots(): readonly Slot[] {
    return this.#slots;
  }

  /** `queue`: what waits, in order, the slots' own entries among them. */
  next(queue: readonly Ulid[]): Step {
    const [head] = this.#slots;
    if (head !== undefined && head.verdict.kind !== "pending") return settled(head);
    const waiting = queue.filter((id) => !this.#slots.some(({ entryId }) => entryId === id));
    const [entryId] = waiting;
    if (entryId !== undefined && this.#slots.length < this.#most)
      return { do: "build", entryId, onto: this.#top };
    return head === undefined ? { do: "end" } : { do: "wait" };
  }

  add(slot: Omit<Slot, "base">): void {
    this.#slots = [...this.#slots, { ...slot, base: this.#top }];
  }

  /** Of a slot that was given up meanwhile, nobody wants to know. */
  judge(entryId: Ulid, commit: ObjectId, verdict: Verdict): void {
    this.#slots = this.#slots.map((slot) =>
      slot.entryId === entryId && slot.commit === commit ? { ...slot, verdict } : slot,
    );
  }

  /** The first one is on the target now. Those behind it stand on it already. */
  landed(): void {
    const [head, ...rest] = this.#slots;
    this.#tip = head?.commit ?? this.#tip;
    this.#slots = rest;
  }

  /** The first one leaves without having landed. What stood on it has to be built anew. */
  left(): void {
    const [head, ...rest] = this.#slots;
    this.#slots = head?.commit == null ? rest : [];
  }

  /** The target is elsewhere, or an entry has left the queue: everything is built anew. */
  restart(tip: ObjectId): void {
    this.#tip = tip;
    this.#slots = [];
  }

  get #top(): ObjectId {
    return this.#slots.reduce((top, { commit }) => commit ?? top, this.#tip);
  }
}

function settled(slot: Slot): Step {
  const { verdict, commit } = slot;
  if (verdict.kind === "rejected") return { do: "park", slot, rejection: verdict.rejection };
  if (verdict.kind === "contained" || commit === null) return { do: "drop", slot };
  return { do: "land", slot: { ...slot, commit } };
}
