import type { Ulid } from "../../kernel/ids";
import type { LedgerCopy } from "./copy";
import type { OfflineBook } from "./ledger";
import { makePlace } from "./place";
import type { LedgerState, OfflineClaim, StateFile } from "./state";

/** Times of pushes are for people: one that is a few seconds old is good enough. */
const PRECISE_MS = 10_000;

/** The offline claims of this machine, in its state file. */
export class StateBook implements OfflineBook {
  readonly #file: StateFile;
  readonly #copy: LedgerCopy;
  readonly #warn: (warning: string) => void;

  constructor(file: StateFile, copy: LedgerCopy, warn: (warning: string) => void) {
    this.#file = file;
    this.#copy = copy;
    this.#warn = warn;
  }

  async list(): Promise<readonly OfflineClaim[]> {
    return (await this.#file.read()).state.offlineClaims;
  }

  async note(
    claims: readonly OfflineClaim[],
    check: (noted: readonly OfflineClaim[]) => void,
  ): Promise<void> {
    const ids = new Set(claims.map(({ leaseId }) => leaseId));
    await this.#update((state) => {
      check(state.offlineClaims);
      const others = state.offlineClaims.filter(({ leaseId }) => !ids.has(leaseId));
      return { ...state, offlineClaims: [...others, ...claims] };
    });
  }

  async strike(leaseIds: readonly Ulid[], isPushed: boolean): Promise<void> {
    const struck = new Set(leaseIds);
    const nowMs = this.#copy.platform.clock.wallMs();
    const change = (state: LedgerState): LedgerState => {
      const left = state.offlineClaims.filter(({ leaseId }) => !struck.has(leaseId));
      const isOld = Math.abs(nowMs - Date.parse(state.lastPushAt ?? "1970-01-01")) > PRECISE_MS;
      if (left.length === state.offlineClaims.length && !(isPushed && isOld)) return state;
      return {
        ...state,
        offlineClaims: left,
        ...(isPushed ? { lastPushAt: new Date(nowMs).toISOString() } : {}),
      };
    };
    // Mostly there is nothing to change, which is seen without the lock.
    const { state, warning } = await this.#file.read();
    if (warning !== null || change(state) !== state) await this.#update(change);
  }

  async #update(change: (state: LedgerState) => LedgerState): Promise<void> {
    await makePlace(this.#copy.platform, this.#copy.place);
    const { warning } = await this.#file.update(change);
    if (warning !== null) this.#warn(warning);
  }
}
