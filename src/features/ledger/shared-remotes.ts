import { BatchingRemote } from "./batching-remote";
import type { LedgerCopy } from "./copy";
import { GitRemote } from "./git-remote";
import { MendingRemote } from "./mending-remote";
import type { LedgerRemote } from "./remote";

/** A remote as a ledger uses it, and the same without what stands in front of it. */
export interface OpenRemote {
  readonly git: GitRemote;
  readonly claims: LedgerRemote;
}

export interface RemoteNames {
  readonly prefix: string;
  readonly branch: string;
}

/** More ledgers than one machine's agents use at once. */
const MOST = 16;
const MOST_WARNINGS = 20;

/**
 * The remotes of a process that opens its ledgers again and again, as the daemon does for its clients: what they tell one
 * remote goes in common exchanges. Only where everything is equal that could make a difference to an exchange.
 */
export class SharedRemotes {
  readonly #open = new Map<string, OpenRemote>();
  readonly #warnings: string[] = [];

  /** What went wrong and was mended, for whoever is answered next. */
  takeWarnings(): string[] {
    return this.#warnings.splice(0);
  }

  of(copy: LedgerCopy, names: RemoteNames): OpenRemote {
    const { place, transport, options } = copy;
    const key = JSON.stringify([place, transport, options, names]);
    const remote = this.#open.get(key) ?? openRemote(copy, names, (warning) => this.#warn(warning), true);
    // Last used, last to go.
    this.#open.delete(key);
    this.#open.set(key, remote);
    for (const oldest of this.#open.keys()) {
      if (this.#open.size <= MOST) break;
      this.#open.delete(oldest);
    }
    return remote;
  }

  #warn(warning: string): void {
    if (this.#warnings.length < MOST_WARNINGS) this.#warnings.push(warning);
  }
}

export function openRemote(
  copy: LedgerCopy,
  names: RemoteNames,
  warn: (warning: string) => void,
  isLasting = false,
): OpenRemote {
  const git = new GitRemote(copy, names);
  return { git, claims: new BatchingRemote(new MendingRemote(git, warn), isLasting) };
}
