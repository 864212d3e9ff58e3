import { KERNEL_PLANTS } from "./properties/plants";

/**
 * Bugs to put in on purpose. Each layer named must notice: a proof that passes with the bug in proves nothing.
 * `from` is a place that the file has exactly once.
 */
export interface Plant {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Names of the layers that must break. */
  readonly caughtBy: readonly string[];
}

export const PLANTS: readonly Plant[] = [...KERNEL_PLANTS];
