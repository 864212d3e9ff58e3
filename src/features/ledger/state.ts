import * as v from "valibot";
import type { Decoded } from "../../codec/codec";
import { count, iso, orNull, textOrEmpty, those, ulid } from "../../codec/fields";
import { isObject, type JsonObject, jsonObject } from "../../codec/json";
import { codecOf } from "../../codec/record";
import { CotenantError, during } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { replaceFile } from "../../platform/replace-file";
import type { LedgerCopy } from "./copy";

const STATE_SCHEMA = 1;
/** Much more than the most offline claims take. */
const MOST_BYTES = 4 << 20;
/** Beyond this, new offline claims are refused (docs/LEDGER.md). */
export const MOST_OFFLINE_CLAIMS = 1_000;

const NAMES = { token: "fencing_token", isValid: "valid" };

/** A claim that was made while the remote could not be asked. */
const OFFLINE = {
  issueId: ulid,
  leaseId: ulid,
  agentId: textOrEmpty,
  token: v.fallback(count, 0),
  claimedAt: v.fallback(iso, ""),
  expiresAt: orNull(iso),
  /** The control plane of the clone that made it: only that one can confirm it. */
  clone: textOrEmpty,
};
const OFFLINE_CODEC = codecOf(OFFLINE, { names: NAMES });
export type OfflineClaim = Decoded<typeof OFFLINE_CODEC>;
export const offlineJson = OFFLINE_CODEC.encode;

const STATE = codecOf(
  {
    lastPullAt: orNull(iso),
    lastPushAt: orNull(iso),
    /** The branch's commit when it was last fetched. */
    ledgerHead: orNull(
      v.pipe(
        v.string(),
        v.transform((head) => printable(head, 100)),
      ),
    ),
    /** False when the copy was found not to have it. */
    isValid: v.pipe(
      v.optional(v.unknown(), true),
      v.transform((value) => value !== false),
    ),
    offlineClaims: v.pipe(
      those(v.object(OFFLINE)),
      v.transform((claims): readonly OfflineClaim[] => claims.slice(0, MOST_OFFLINE_CLAIMS)),
    ),
  },
  { names: NAMES },
);
/** What this machine remembers of its dealings with one ledger. Losing it loses nothing that the clones do not know. */
export type LedgerState = Decoded<typeof STATE>;

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
  constructor(private readonly copy: LedgerCopy) {}

  /** Reads only: a broken one is as good as none, one of a newer program is refused. */
  async read(): Promise<StateReading> {
    const { state: path } = this.copy.place;
    const bytes = await during("reading the ledger's state", path, () =>
      this.copy.platform.files.readFile(path),
    );
    if (bytes === null) return { state: FRESH, warning: null };
    if (bytes.length > MOST_BYTES) return broken(path);
    return decodeState(new TextDecoder().decode(bytes), path);
  }

  /** Under the machine's lock. What is thrown away, or brought up to date, is kept beside it. */
  async update(change: (state: LedgerState) => LedgerState): Promise<StateReading> {
    const { platform, place } = this.copy;
    return this.copy.underLock(async () => {
      const reading = await this.read();
      const next = change(reading.state);
      if (reading.warning !== null) await this.#keepOld();
      if (next !== reading.state || reading.warning !== null)
        await replaceFile(platform, place.state, encodeState(next), 0o600);
      return { ...reading, state: next };
    });
  }

  async #keepOld(): Promise<void> {
    const { platform, place } = this.copy;
    const bytes = await platform.files.readFile(place.state);
    const time = new Date(platform.clock.wallMs()).toISOString().replace(/[:.]/g, "-");
    if (bytes !== null) await replaceFile(platform, `${place.state}.old-${time}`, bytes, 0o600);
  }
}

export function encodeState(state: LedgerState): string {
  return `${JSON.stringify({ schema_version: STATE_SCHEMA, ...STATE.encode(state) }, null, 2)}\n`;
}

export function decodeState(text: string, path: string): StateReading {
  const wire = jsonObject(text);
  if (wire === null) return broken(path);
  const version = wire["schema_version"] ?? 0;
  if (typeof version !== "number") return broken(path);
  if (version > STATE_SCHEMA) {
    throw new CotenantError("E_SCHEMA_NEWER", `${path} has the format ${version}, of a newer cotenant`, {
      data: { path, schema_version: version, known: STATE_SCHEMA },
    });
  }
  const state = STATE.decode(version < STATE_SCHEMA ? migrated(wire) : wire) ?? FRESH;
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
function migrated(wire: JsonObject): JsonObject {
  const claims = Array.isArray(wire["offline_claims"]) ? (wire["offline_claims"] as unknown[]) : [];
  return {
    ...wire,
    valid: wire["valid"] ?? wire["worktree_valid"] ?? true,
    offline_claims: claims
      .filter(isObject)
      .map((claim) => ({ ...claim, issue_id: claim["issue_id"] ?? claim["atom_id"] })),
  };
}
