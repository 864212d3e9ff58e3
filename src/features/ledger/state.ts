import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { isCount, timeMsOf } from "../../kernel/bounds";
import { parseUlid, printable, type Ulid } from "../../kernel/ids";
import { isRefusal } from "../../kernel/refusal";
import { replaceFile } from "../../platform/replace-file";
import type { LedgerCopy } from "./copy";

const STATE_SCHEMA = 1;
/** Much more than the most offline claims take. */
const MOST_BYTES = 4 << 20;
/** Beyond this, new offline claims are refused (docs/LEDGER.md). */
export const MOST_OFFLINE_CLAIMS = 1_000;

/** A claim that was made while the remote could not be asked. */
export interface OfflineClaim {
  readonly issueId: Ulid;
  readonly leaseId: Ulid;
  readonly agentId: string;
  readonly token: number;
  readonly claimedAt: string;
  readonly expiresAt: string | null;
  /** The control plane of the clone that made it: only that one can confirm it. */
  readonly clone: string;
}

/** What this machine remembers of its dealings with one ledger. Losing it loses nothing that the clones do not know. */
export interface LedgerState {
  readonly lastPullAt: string | null;
  readonly lastPushAt: string | null;
  /** The branch's commit when it was last fetched. */
  readonly ledgerHead: string | null;
  /** False when the copy was found not to have it. */
  readonly isValid: boolean;
  readonly offlineClaims: readonly OfflineClaim[];
}

export const FRESH: LedgerState = {
  lastPullAt: null,
  lastPushAt: null,
  ledgerHead: null,
  isValid: true,
  offlineClaims: [],
};

export interface StateReading {
  readonly state: LedgerState;
  /** What people should know of how it was read. */
  readonly warning: string | null;
}

export class StateFile {
  readonly #copy: LedgerCopy;

  constructor(copy: LedgerCopy) {
    this.#copy = copy;
  }

  /** Reads only: a broken one is as good as none, one of a newer program is refused. */
  async read(): Promise<StateReading> {
    const { state: path } = this.#copy.place;
    let bytes: Uint8Array | null;
    try {
      bytes = await this.#copy.platform.files.readFile(path);
    } catch (error) {
      throw fileFailure(error, "reading the ledger's state", path);
    }
    if (bytes === null) return { state: FRESH, warning: null };
    if (bytes.length > MOST_BYTES) return broken(path);
    return decodeState(new TextDecoder().decode(bytes), path);
  }

  /** Under the machine's lock. What is thrown away, or brought up to date, is kept beside it. */
  async update(change: (state: LedgerState) => LedgerState): Promise<StateReading> {
    const { platform, place } = this.#copy;
    return this.#copy.underLock(async () => {
      const reading = await this.read();
      const next = change(reading.state);
      if (reading.warning !== null) await this.#keepOld();
      if (next !== reading.state || reading.warning !== null)
        await replaceFile(platform, place.state, encodeState(next), 0o600);
      return { ...reading, state: next };
    });
  }

  async #keepOld(): Promise<void> {
    const { platform, place } = this.#copy;
    const bytes = await platform.files.readFile(place.state);
    const time = new Date(platform.clock.wallMs()).toISOString().replace(/[:.]/g, "-");
    if (bytes !== null) await replaceFile(platform, `${place.state}.old-${time}`, bytes, 0o600);
  }
}

export function encodeState(state: LedgerState): string {
  return `${JSON.stringify(
    {
      schema_version: STATE_SCHEMA,
      last_pull_at: state.lastPullAt,
      last_push_at: state.lastPushAt,
      ledger_head: state.ledgerHead,
      valid: state.isValid,
      offline_claims: state.offlineClaims.map(offlineJson),
    },
    null,
    2,
  )}\n`;
}

export function offlineJson(claim: OfflineClaim): Record<string, unknown> {
  return {
    issue_id: claim.issueId,
    lease_id: claim.leaseId,
    agent_id: claim.agentId,
    fencing_token: claim.token,
    claimed_at: claim.claimedAt,
    expires_at: claim.expiresAt,
    clone: claim.clone,
  };
}

export function decodeState(text: string, path: string): StateReading {
  let wire: Record<string, unknown>;
  try {
    wire = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return broken(path);
  }
  if (typeof wire !== "object" || wire === null || Array.isArray(wire)) return broken(path);
  const version = wire["schema_version"] ?? 0;
  if (typeof version !== "number") return broken(path);
  if (version > STATE_SCHEMA) {
    throw new CotenantError("E_SCHEMA_NEWER", `${path} has the format ${version}, of a newer cotenant`, {
      data: { path, schema_version: version, known: STATE_SCHEMA },
    });
  }
  const state = stateFrom(version < STATE_SCHEMA ? migrated(wire) : wire);
  if (version === STATE_SCHEMA) return { state, warning: null };
  return {
    state,
    warning: `${path} was of the older format ${version}: it was brought up to date, the old one is beside it`,
  };
}

function broken(path: string): StateReading {
  return {
    state: FRESH,
    warning: `${path} cannot be read: started over (the clones still know their provisional claims)`,
  };
}

/** Format 0 is seed 004's, under its names. */
function migrated(wire: Record<string, unknown>): Record<string, unknown> {
  const claims = Array.isArray(wire["offline_claims"]) ? (wire["offline_claims"] as unknown[]) : [];
  return {
    ...wire,
    valid: wire["valid"] ?? wire["worktree_valid"] ?? true,
    offline_claims: claims.map((claim) => {
      const named = typeof claim === "object" && claim !== null ? (claim as Record<string, unknown>) : {};
      return { ...named, issue_id: named["issue_id"] ?? named["atom_id"] };
    }),
  };
}

function stateFrom(wire: Record<string, unknown>): LedgerState {
  const { ledger_head: head } = wire;
  const claims = Array.isArray(wire["offline_claims"]) ? (wire["offline_claims"] as unknown[]) : [];
  return {
    lastPullAt: isoOf(wire["last_pull_at"]),
    lastPushAt: isoOf(wire["last_push_at"]),
    ledgerHead: typeof head === "string" ? printable(head, 100) : null,
    isValid: wire["valid"] !== false,
    offlineClaims: claims.flatMap(offlineFrom).slice(0, MOST_OFFLINE_CLAIMS),
  };
}

function isoOf(value: unknown): string | null {
  const ms = timeMsOf(value);
  return ms === null ? null : new Date(ms).toISOString();
}

function offlineFrom(value: unknown): OfflineClaim[] {
  if (typeof value !== "object" || value === null) return [];
  const wire = value as Record<string, unknown>;
  const ulid = (name: string) => {
    const id = typeof wire[name] === "string" ? parseUlid(wire[name] as string) : null;
    return id === null || isRefusal(id) ? null : id;
  };
  const text = (name: string) => (typeof wire[name] === "string" ? (wire[name] as string) : "");
  const [issueId, leaseId] = [ulid("issue_id"), ulid("lease_id")];
  if (issueId === null || leaseId === null) return [];
  const token = wire["fencing_token"];
  return [
    {
      issueId,
      leaseId,
      agentId: text("agent_id"),
      token: isCount(token) ? token : 0,
      claimedAt: isoOf(wire["claimed_at"]) ?? "",
      expiresAt: isoOf(wire["expires_at"]),
      clone: text("clone"),
    },
  ];
}
