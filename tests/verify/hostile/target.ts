import type { Prng } from "../../../testing/simulator";

export type Count = (what: string) => void;

/** One kind of input. A trial throws a Finding when something is wrong. */
export interface Target {
  readonly name: string;
  try(prng: Prng, count: Count): Promise<void> | void;
}
