/**
 * Which way a value becomes stricter. A committed file may tighten what the clone's owner has set; whatever
 * loosens it needs trust. To loosen is to allow what was refused, to run a command, to give up sooner where giving up lets
 * something through, and to end somebody's lease sooner: then others can take it.
 *
 * - `lower`, `higher`: numbers, or every number of a table
 * - `later`: the values are listed from the loosest to the strictest
 * - `on`, `off`: that truth value is the strict one
 * - `subset`, `superset`: fewer entries are stricter, or more
 * - `command`: it names a command to run
 * - `trusted`: every change may loosen something, such as a lease's time: longer keeps others out, shorter lets them in
 * - `naming`: which one it names needs trust, but that it names one binds at once (`Config.namedOnly`)
 * - `adding`: a list that every source adds entries to, each of which only forbids: nothing in it can loosen anything
 * - `free`: it is about comfort or speed, not about rules
 */
type Tighten =
  | "lower"
  | "higher"
  | "later"
  | "on"
  | "off"
  | "subset"
  | "superset"
  | "command"
  | "trusted"
  | "naming"
  | "adding"
  | "free";

interface Common {
  readonly meaning: string;
  readonly tighten: Tighten;
}

export interface IntSetting extends Common {
  readonly type: "int";
  readonly min: number;
  readonly max: number;
  /** Null: no limit, or whatever the meaning says. */
  readonly default: number | null;
}

interface BoolSetting extends Common {
  readonly type: "bool";
  readonly default: boolean;
  /** The seed documents have a switch for it; here there is no other way. */
  readonly only?: true;
}

interface EnumSetting extends Common {
  readonly type: "enum";
  readonly values: readonly string[];
  readonly default: string;
}

interface StringSetting extends Common {
  readonly type: "string";
  readonly pattern: RegExp;
  readonly default: string | null;
  /** For the commented template, where there is no default to show. */
  readonly example: string;
}

export interface StringsSetting extends Common {
  readonly type: "strings";
  readonly pattern: RegExp;
  /** What an entry must be, for the error message. */
  readonly entry: string;
  /** How an entry is written that has a grammar of its own, for the hint. */
  readonly forms?: string;
  readonly default: readonly string[];
  /** What is wrong with an entry that the pattern lets through, to be read after it; null where nothing is. */
  readonly check?: (entry: string) => string | null;
  readonly most?: number;
}

/** A table of whole numbers. Every entry is a value of its own: an upper source overrides entry by entry. */
export interface IntsSetting extends Common {
  readonly type: "ints";
  readonly names: readonly string[];
  readonly min: number;
  readonly max: number;
  readonly default: Readonly<Record<string, number>>;
}

/** A table of lists of text, such as names for groups of paths. */
export interface ListsSetting extends Common {
  readonly type: "lists";
  readonly pattern: RegExp;
  readonly entry: string;
  readonly default: Readonly<Record<string, readonly string[]>>;
}

export type Setting =
  | IntSetting
  | BoolSetting
  | EnumSetting
  | StringSetting
  | StringsSetting
  | IntsSetting
  | ListsSetting;

export type Settings = Readonly<Record<string, Setting>>;

/** `guard.retry_secs` → `COTENANT_GUARD_RETRY_SECS`. */
export function variableName(key: string): string {
  return `COTENANT_${key.replace(".", "_").toUpperCase()}`;
}

export const DAY_SECS = 86_400;
/** As Git wants branches to be called. */
export const BRANCH =
  /^(?![-./]|@$)(?!.*(?:\.\.|@\{|\/[./]|\.lock(?:\/|$)|[./]$))[^\x00-\x20\x7f~^:?*[\\]{1,250}$/;
/** An agent id, or the beginning of one and `*`. */
export const AGENTS = /^(?:\*|(?:agent|human|ci|admin):[A-Za-z0-9._@+-]*\*?)$/;
/** One line of printable text, for commands, paths and patterns of paths. */
export const LINE = /^[^\x00-\x1f\x7f]{1,4096}$/;
