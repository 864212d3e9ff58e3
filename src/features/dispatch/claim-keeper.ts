import { saysLost } from "../../errors/cotenant-error";
import type { Ended, Lease } from "../../kernel/lease";
import type { Station } from "./slots";

/** How often it is looked whether the claim still stands: before an agent that has lost it can do much. */
const LOOK_EVERY_MS = 500;
/** Renewals are due at half of a lease's time; this only has to be well below the shortest that anybody sets. */
const LIFE_EVERY_MS = 2_000;

/** What became of a claim while somebody worked under it. */
export type ClaimState =
  | { readonly kind: "held" }
  /** The agent itself has given it back. */
  | { readonly kind: "released" }
  | { readonly kind: "lost"; readonly why: string };

/** Keeps a claim alive, and notices when it is gone. */
export class ClaimKeeper {
  readonly #station: Station;
  readonly #claim: Lease;
  readonly #onChange: (state: ClaimState) => void;
  #state: ClaimState = { kind: "held" };
  #isOver = false;
  #wake: () => void = () => {};
  #kept: Promise<void> = Promise.resolve();

  constructor(station: Station, claim: Lease, onChange: (state: ClaimState) => void) {
    this.#station = station;
    this.#claim = claim;
    this.#onChange = onChange;
  }

  get state(): ClaimState {
    return this.#state;
  }

  start(): this {
    this.#kept = this.#keep();
    return this;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.#wake();
    await this.#kept;
  }

  async #keep(): Promise<void> {
    const { timers, clock } = this.#station.workspace.surroundings.platform;
    const beatMs = this.#station.workspace.config.values["coordination.heartbeat_interval_secs"] * 1000;
    let lifeDue = clock.monotonicMs() + LIFE_EVERY_MS;
    let beatDue = clock.monotonicMs() + beatMs;
    while (!this.#isOver && this.#state.kind === "held") {
      const sleep = timers.sleep(LOOK_EVERY_MS);
      this.#wake = () => sleep.wake();
      await sleep.done;
      if (this.#isOver) return;
      try {
        await this.#look();
        const now = clock.monotonicMs();
        if (this.#state.kind === "held" && now >= lifeDue) {
          await this.#station.session.showLife();
          lifeDue = now + LIFE_EVERY_MS;
        }
        if (this.#state.kind === "held" && now >= beatDue) {
          await this.#beat();
          beatDue = now + beatMs;
        }
      } catch {
        // A store that is busy, or a remote that is away, is asked again; every write proves the claim in any case.
      }
    }
  }

  /** A beat also asks the remote, where claims are shared: it knows of takers of whom nobody here has heard. */
  async #beat(): Promise<void> {
    const { key, leaseId } = this.#claim;
    try {
      await this.#station.session.heartbeat([{ key, leaseId }]);
    } catch (error) {
      if (!saysLost(error)) throw error;
      await this.#look();
      if (this.#state.kind === "held") this.#change({ kind: "lost", why: error.message });
    }
  }

  async #look(): Promise<void> {
    const { coordinator } = this.#station.workspace;
    const { key, leaseId } = this.#claim;
    const [status] = await coordinator.find([{ key, leaseId }]);
    if (status?.standing === "valid" && status.lease.leaseId === leaseId) return;
    const [ended] = await coordinator.endings([{ key, leaseId }]);
    if (ended?.how === "released") return this.#change({ kind: "released" });
    this.#change({ kind: "lost", why: ended?.why ?? endingText(ended?.how ?? "expired") });
  }

  #change(state: ClaimState): void {
    this.#state = state;
    this.#onChange(state);
  }
}

function endingText(how: Ended["how"]): string {
  if (how === "forced") return "it was taken away";
  return how === "transferred" ? "it was handed over" : "it has run out";
}
