import type { HarnessName } from "../identity/harness";
import type { Environment } from "../identity/repository";
import type { Holder } from "../kernel/lease";

const MOST = 1_000;

/** What the hooks of a session have shown of it, for events that come without one. */
export interface KnownSession {
  readonly harness: Holder;
  readonly env: Environment;
}

export class KnownSessions {
  readonly #known = new Map<string, KnownSession>();

  remember(harness: HarnessName, sessionId: string, session: KnownSession): void {
    const name = `${harness} ${sessionId}`;
    this.#known.delete(name);
    this.#known.set(name, session);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MOST) break;
      this.#known.delete(oldest);
    }
  }

  find(harness: HarnessName, sessionId: string): KnownSession | null {
    return this.#known.get(`${harness} ${sessionId}`) ?? null;
  }
}
