import { isRefusal, type Refusal, refuse } from "./refusal";

declare const brand: unique symbol;
/** @public Declarations of types name it. */
export interface Brand<Name extends string> {
  readonly [brand]: Name;
}
/** A string that only its parser can make. */
export type Branded<Name extends string> = string & Brand<Name>;

export type Ulid = Branded<"Ulid">;
export type LeaseId = Ulid;
export type AgentId = Branded<"AgentId">;
export type SessionId = Branded<"SessionId">;
export type WorktreeId = Branded<"WorktreeId">;
export type FencingToken = number & Brand<"FencingToken">;

/** Text that a parser or a record of our own vouches for: nothing is looked at again. */
export function trusted<Name extends Branded<string>>(text: string): Name;
export function trusted<Name extends Branded<string>>(text: string | null): Name | null;
export function trusted(text: string | null): Branded<string> | null {
  return text as Branded<string> | null;
}

export function fencingToken(value: number): FencingToken {
  return value as FencingToken;
}

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const AGENT = /^(agent|human|ci|admin):[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$/;
const SESSION = /^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/;
const WORKTREE = /^wt:[0-9a-f]{8}$/;

export const AGENT_TYPES = ["agent", "human", "ci", "admin"] as const;
export type AgentType = (typeof AGENT_TYPES)[number];

/** 48 bits of time and 80 bits of randomness, in Crockford's base 32: sorts by time, as text. */
export function makeUlid(timeMs: number, randomness: Uint8Array): Ulid {
  if (randomness.length !== 10) throw new Error("a ULID takes 10 random bytes");
  let time = Math.max(0, Math.floor(timeMs));
  let head = "";
  for (let i = 0; i < 10; i++) {
    head = CROCKFORD[time % 32] + head;
    time = Math.floor(time / 32);
  }
  let tail = "";
  let bits = 0;
  let held = 0;
  for (const byte of randomness) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      tail += CROCKFORD[(held >> bits) & 31];
    }
    held &= (1 << bits) - 1;
  }
  return (head + tail) as Ulid;
}

/** Where an id is asked for, and nobody's is meant. */
export const NOBODYS_ID = makeUlid(0, new Uint8Array(10));

/** Of somebody who has not said who they are. */
export const UNKNOWN_AGENT: AgentId = trusted("agent:unknown");
/** Of an agent that has not said in which session it works. */
export const DEFAULT_SESSION: SessionId = trusted("default");

/** Reads also lower case and the letters people mistake for digits, as Crockford's alphabet asks. */
export function foldCrockford(text: string): string {
  return text.toUpperCase().replace(/[IL]/g, "1").replace(/O/g, "0");
}

export function parseUlid(text: string): Ulid | Refusal {
  // Only ASCII: upper-casing turns some other letters into it.
  const folded = /^[0-9A-Za-z]{26}$/.test(text) ? foldCrockford(text) : "";
  if (ULID.test(folded)) return folded as Ulid;
  return refuse("E_USAGE", `"${printable(text)}" is not a ULID (26 letters and digits)`);
}

/** Whether it is one already, in its one spelling. */
export function isUlid(text: string): text is Ulid {
  return ULID.test(text);
}

/** Null for anything else. */
export function ulidIn(value: unknown): Ulid | null {
  const id = typeof value === "string" ? parseUlid(value) : null;
  return isRefusal(id) ? null : id;
}

export function ulidTimeMs(id: Ulid): number {
  let time = 0;
  for (let i = 0; i < 10; i++) time = time * 32 + CROCKFORD.indexOf(id[i]!);
  return time;
}

export function parseAgentId(text: string): AgentId | Refusal {
  if (AGENT.test(text)) return text as AgentId;
  return refuse("E_USAGE", `"${printable(text)}" is not an agent id`, {
    hint: "use type:name, with type one of agent, human, ci, admin; for example agent:copilot-1",
  });
}

export function agentType(id: AgentId): AgentType {
  return id.slice(0, id.indexOf(":")) as AgentType;
}

export function parseSessionId(text: string): SessionId | Refusal {
  if (SESSION.test(text)) return text as SessionId;
  return refuse("E_USAGE", `"${printable(text)}" is not a session id`, {
    hint: "use up to 128 letters, digits and . _ : @ + -, starting with a letter or digit",
  });
}

export function parseWorktreeId(text: string): WorktreeId | Refusal {
  if (WORKTREE.test(text)) return text as WorktreeId;
  return refuse("E_USAGE", `"${printable(text)}" is not a worktree id`, {
    hint: "worktree ids look like wt:1a2b3c4d; 'cotenant worktree list' shows them",
  });
}

/** Untrusted text for a message: no control or direction characters, and not too long. */
export function printable(text: string, limit = 120): string {
  // Mostly it is plain, and a Unicode pattern takes longer to compile than most commands take to run.
  const clean = /^[\x20-\x7e]*$/.test(text)
    ? text
    : text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, "\u{fffd}");
  return clean.length > limit ? `${clean.slice(0, limit)}…` : clean;
}
