/**
 * What a concurrent run looked like from outside: who asked for what, between which two instants, and what came of
 * it. Nothing here is shared with the program that is checked.
 *
 * Instants are milliseconds of the monotonic clock, which all processes of one boot share.
 */
export interface History {
  readonly operations: readonly Operation[];
  /** When each process that ended may have ended: leases bound to it lapse in that window. */
  readonly deaths: ReadonlyMap<string, Window>;
}

export interface Operation {
  readonly caller: Caller;
  readonly calledMs: number;
  /**
   * The answer's instant. For an unknown answer: the instant from which it cannot take effect any more, because its
   * process was seen to be gone; infinite when nothing is known.
   */
  readonly endedMs: number;
  readonly ask: Ask;
  readonly answer: Answer;
  /** Whether it may renew, besides, whatever its caller holds: a command of the command line does. */
  readonly tends: boolean;
}

export interface Caller {
  /** The process, by a name that is used once. */
  readonly process: string;
  readonly agent: string;
  readonly session: string;
  readonly worktree: string;
}

/** Something that lasts until an instant that is known to lie in here, both ends included. */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What a lease is on, and how far it reaches: one worktree, or null for the whole repository. */
export interface Extent {
  readonly key: string;
  readonly within: string | null;
}

/** A lease by its key, and by its id where the caller believes in one. */
export interface Name {
  readonly key: string;
  readonly id: string | null;
}

/** A lease as an answer shows it. */
export interface Seen extends Extent {
  readonly id: string;
  readonly token: number;
  readonly agent: string;
  readonly worktree: string;
  readonly ttlMs: number;
  /** The process that it lives and dies with. */
  readonly process: string | null;
  /** Null when the answer does not tell: then it follows from the TTL and the instants of the operation. */
  readonly expiresMs: number | null;
  /** False for what a read shows as lapsed. */
  readonly valid: boolean;
}

export type Ask =
  | {
      readonly do: "acquire";
      readonly wants: readonly Extent[];
      /** The ids that new leases would get, one for each want; null where only the answer tells. */
      readonly ids: readonly string[] | null;
      readonly ttlMs: number;
      readonly bound: boolean;
      readonly steal: boolean;
    }
  /** `extends`: to at least the TTL from now. Upkeep and a heartbeat may leave the expiry where it is. */
  | {
      readonly do: "renew";
      readonly names: readonly Name[];
      readonly extends: boolean;
      readonly ttlMs: number | null;
    }
  | { readonly do: "release"; readonly names: readonly Name[] }
  | {
      readonly do: "transfer";
      readonly name: Name;
      readonly id: string;
      readonly toAgent: string;
      readonly toWorktree: string;
    }
  | { readonly do: "evict"; readonly names: readonly Name[] }
  /** Null names: everything there is. */
  | { readonly do: "read"; readonly names: readonly Name[] | null }
  /** A guarded write: allowed only while this very lease is valid. */
  | { readonly do: "write"; readonly name: Name; readonly token: number };

export type Answer =
  | {
      readonly is: "done";
      readonly leases: readonly Seen[];
      /** Leases that made way for it. */
      readonly ended: readonly { readonly id: string; readonly forced: boolean }[];
    }
  | { readonly is: "refused"; readonly code: string; readonly holders: readonly string[] }
  | { readonly is: "unknown" };

/** Keys that an operation is about; null when it is about all of them. */
export function keysOf({ ask, answer }: Pick<Operation, "ask" | "answer">): readonly string[] | null {
  const shown = answer.is === "done" ? answer.leases.map(({ key }) => key) : [];
  switch (ask.do) {
    case "acquire":
      return [...ask.wants.map(({ key }) => key), ...shown];
    case "transfer":
    case "write":
      return [ask.name.key];
    case "read":
      return ask.names === null ? null : ask.names.map(({ key }) => key);
    default:
      return ask.names.map(({ key }) => key);
  }
}

/** The rule of conflicts, written once more on purpose: the checker must not share the kernel's mistakes. */
export function keysMeet(a: string, b: string): boolean {
  return a === b || isBelow(a, b) || isBelow(b, a);
}

export function meet(a: Extent, b: Extent): boolean {
  const reach = a.within === null || b.within === null || a.within === b.within;
  return reach && keysMeet(a.key, b.key);
}

function isBelow(key: string, directoryKey: string): boolean {
  if (!directoryKey.startsWith("dir:") || !/^(?:file|dir):/.test(key)) return false;
  const directory = directoryKey.slice("dir:".length);
  return directory === "." || key.slice(key.indexOf(":") + 1).startsWith(`${directory}/`);
}
