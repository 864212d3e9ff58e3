import { createHash } from "node:crypto";

/**
 * What a log amounts to, worked out from docs/FORMATS.md alone and sharing no code with the store: the judge of what
 * readers may show and when writers must stop.
 */
export interface LogLine {
  readonly sequence: number;
  readonly synced: number;
  readonly prev: string;
  readonly sum: string;
  readonly event_type: string;
  readonly schema_version: number;
  readonly payload: {
    readonly leases?: readonly GrantedLease[];
    readonly ended?: readonly {
      readonly key: string;
      readonly reach: string;
      readonly worktree_id: string;
    }[];
    readonly endings?: readonly { readonly fencing_token: number }[];
    readonly part?: number;
    readonly parts?: number;
    readonly next_token?: number;
  };
}

export interface GrantedLease {
  readonly lease_id: string;
  readonly key: string;
  readonly agent_id: string;
  readonly reach: string;
  readonly worktree_id: string;
  readonly fencing_token: number;
}

export interface Verdict {
  /** Every line whose sum is right, in the file's order. */
  readonly whole: readonly LogLine[];
  readonly isNewer: boolean;
  /** Writers must refuse with E_LOG_CORRUPT. */
  readonly mustStop: boolean;
  readonly isBaseLost: boolean;
  /** Every lease that a whole line speaks of. */
  readonly granted: ReadonlyMap<string, GrantedLease>;
  /** What stands when the whole lines are read in order: the last word on each slot. */
  readonly standing: ReadonlyMap<string, GrantedLease>;
  readonly highestToken: number;
}

export function slotOf(lease: { key: string; reach: string; worktree_id: string }): string {
  return lease.reach === "worktree" ? `${lease.key} ${lease.worktree_id}` : lease.key;
}

export function judge(bytes: Uint8Array, mark: number): Verdict {
  const pieces = split(bytes);
  const lines = pieces.map(({ bytes: line, hasEnd }) => (hasEnd ? wholeLine(line) : null));
  const whole = lines.filter((line) => line !== null);
  const granted = new Map<string, GrantedLease>();
  const standing = new Map<string, GrantedLease>();
  let highestToken = 0;
  for (const { payload } of whole) {
    for (const gone of payload.ended ?? []) standing.delete(slotOf(gone));
    for (const lease of payload.leases ?? []) {
      granted.set(nameOf(lease), lease);
      standing.set(slotOf(lease), lease);
      highestToken = Math.max(highestToken, lease.fencing_token);
    }
    highestToken = Math.max(highestToken, (payload.next_token ?? 1) - 1);
  }
  const { damagedAt, isGrounded, last } = chainOf(lines);
  const acknowledged = Math.max(mark, ...whole.map(({ synced }) => synced));
  const mustStop = !isGrounded || (damagedAt === null ? acknowledged > last : acknowledged >= damagedAt);
  const isNewer = pieces.some(({ bytes: line, hasEnd }, i) => hasEnd && saysNewer(line, lines[i] ?? null));
  return { whole, isNewer, mustStop, isBaseLost: !isGrounded, granted, standing, highestToken };
}

/** A lease exactly as some line has it, to the last field. */
export function nameOf(lease: GrantedLease): string {
  return JSON.stringify(lease);
}

/** How far the chain holds, from a checkpoint on. `damagedAt`: the sequence that is missing there. */
function chainOf(lines: readonly (LogLine | null)[]) {
  let last = 0;
  let sum = "";
  let isGrounded = false;
  for (const [at, line] of lines.entries()) {
    const follows = at === 0 || (line !== null && line.prev === sum && line.sequence === last + 1);
    const isCheckpoint = line?.event_type === "log.checkpoint";
    if (line === null || !follows || (!isGrounded && !isCheckpoint))
      return { damagedAt: last + 1, isGrounded, last };
    if (isCheckpoint) isGrounded = line.payload.part === line.payload.parts;
    ({ sequence: last, sum } = line);
  }
  return { damagedAt: null, isGrounded, last };
}

function split(bytes: Uint8Array): { bytes: Buffer; hasEnd: boolean }[] {
  const found: { bytes: Buffer; hasEnd: boolean }[] = [];
  const buffer = Buffer.from(bytes);
  for (let from = 0; from < buffer.length; ) {
    const end = buffer.indexOf(10, from);
    found.push({ bytes: buffer.subarray(from, end === -1 ? buffer.length : end), hasEnd: end !== -1 });
    from = end === -1 ? buffer.length : end + 1;
  }
  return found;
}

const ENDING = /^,"sum":"([0-9a-f]{32})"}$/;

export function wholeLine(bytes: Buffer): LogLine | null {
  const cut = bytes.length - ',"sum":"0123456789abcdef0123456789abcdef"}'.length;
  const sum = cut < 0 ? undefined : ENDING.exec(bytes.subarray(cut).toString("latin1"))?.[1];
  if (sum === undefined) return null;
  const covered = Buffer.concat([bytes.subarray(0, cut), Buffer.from("}")]);
  if (createHash("sha256").update(covered).digest("hex").slice(0, 32) !== sum) return null;
  return JSON.parse(bytes.toString("utf8")) as LogLine;
}

function saysNewer(bytes: Buffer, whole: LogLine | null): boolean {
  if (whole !== null) return whole.schema_version > 1;
  try {
    const version = (JSON.parse(bytes.toString("utf8")) as { schema_version?: unknown } | null)
      ?.schema_version;
    return bytes[0] === 0x7b && typeof version === "number" && version > 1;
  } catch {
    return false;
  }
}
