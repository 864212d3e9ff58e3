import type { Contention } from "./contention";
import type { Report } from "./report";

/**
 * What a check has found out about a file, so that the next one for the same file need not: most checks are like that,
 * and every edit waits for them. Nobody is answered on the strength of it unless all that it rests on is as it was: the
 * lease to the byte, a log that the index knows to its end, the harness's process, the settings. It proves nothing by
 * itself, and may be deleted at any time.
 */
export interface Basis {
  readonly caller: string;
  /** Where the file really is. */
  readonly directory: string;
  readonly holder: Being;
  /** The lease's file in the index, and what is in it. */
  readonly lease: Kept;
  readonly settings: readonly Mark[];
  /** A sign of life that must not be older than a minute. */
  readonly beat: string;
  /** What must not be there: somebody has to look more closely then. */
  readonly absent: readonly string[];
  /** What must have nothing in it, for the same reason. */
  readonly empty: readonly string[];
}

/** Of a file that its session holds: it may write. */
export interface Pass extends Basis {
  /** To be told of every edit. */
  readonly trace: { readonly file: string; readonly mode: number };
}

/** Of a file that somebody else holds, and that was denied before: it is too early to try again. */
export interface Refusal extends Basis {
  readonly contention: Contention;
  /** The contention's file in the index, and what is in it. */
  readonly fact: Kept;
  /** Whoever is in the way, for as long as it lives. */
  readonly owner: Being;
}

/** A process, as this machine knows it. */
export interface Being {
  readonly pid: number;
  readonly startTime: string;
  readonly bootId: string;
  readonly pidNamespace: string;
}

export interface Kept {
  readonly file: string;
  readonly text: string;
}

/** What a file looked like; nulls where there was none. */
export interface Mark {
  readonly file: string;
  readonly size: number | null;
  readonly mtimeMs: number | null;
}

export const BEAT_EVERY_MS = 60_000;
export const PASSES = "passes";
/** Apart: whoever knows only of passes must not take one of these for leave. */
export const REFUSALS = "refusals";
/** Settings that changed so lately may change again within the same tick of the file system's clock. */
export const SETTLED_MS = 1_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** Whose check of which path it is, in all that an answer could depend on. Null where a secret is part of it. */
export function callerOf(report: Report, path: string, env: Environment): string | null {
  if (env["COTENANT_SECRET"] !== undefined) return null;
  const ours = Object.keys(env).filter((name) => name.startsWith("COTENANT_"));
  const { harness, event, sessionId, subagent, cwd, isBorrowed } = report;
  const who = [harness, event, sessionId, subagent, cwd, path, isBorrowed];
  const where = [...ours.sort(), "HOME", "XDG_CONFIG_HOME"].map((name) => [name, env[name] ?? null]);
  return JSON.stringify([...who, ...where]);
}

/** A name for its file. Two callers may come to the same one; the pass itself says whose it is. */
export function passName(caller: string): string {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < caller.length; i++) {
    const unit = caller.charCodeAt(i);
    a = Math.imul(a ^ unit, 2_654_435_761);
    b = Math.imul(b ^ unit, 1_597_334_677);
  }
  return [a, b].map((part) => (part >>> 0).toString(16).padStart(8, "0")).join("");
}
