import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { ERRORS, type ErrorCode } from "../../errors/registry";
import type { Patient } from "./patient";

/** `error`: something does not work or cannot be trusted. `warning`: it will not for long. `note`: good to know. */
export const LEVELS = ["error", "warning", "note", "ok"] as const;
export type Level = (typeof LEVELS)[number];

/** What a check found, and the safe next step; null where there is nothing to do. */
export interface Reported {
  readonly level: Level;
  readonly message: string;
  /** Never destructive. */
  readonly next: string | null;
  /** An error has `code` in it: one of the registry, whose exit status the command ends with. */
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Finding extends Reported {
  readonly check: string;
}

/** One thing to look at. It writes nothing and takes no lock. What it throws becomes a finding. */
export interface Check {
  readonly name: string;
  look(patient: Patient): Promise<readonly Reported[]>;
}

type Data = Readonly<Record<string, unknown>>;

export function ok(message: string, data: Data = {}): Reported {
  return { level: "ok", message, next: null, data };
}

export function note(message: string, next: string | null, data: Data = {}): Reported {
  return { level: "note", message, next, data };
}

export function warning(message: string, next: string, data: Data = {}): Reported {
  return { level: "warning", message, next, data };
}

export function error(code: ErrorCode, message: string, next: string, data: Data = {}): Reported {
  return { level: "error", message, next, data: { code, ...data } };
}

/** What another part of cotenant would have refused with. */
export function fromError(thrown: unknown, doing: string, path: string): Reported {
  const known = thrown instanceof CotenantError ? thrown : fileFailure(thrown, doing, path);
  return error(known.code, known.message, known.hint, known.data);
}

/** How many of one sort are told one by one. */
const TOLD = 20;

/** The first of many, and how many more there are. */
export function capped(all: readonly Reported[]): Reported[] {
  const [first] = all;
  if (first === undefined || all.length <= TOLD) return [...all];
  const more = all.length - TOLD;
  const data = "code" in first.data ? { code: first.data["code"], more } : { more };
  return [...all.slice(0, TOLD), { ...first, message: `and ${more} more of these`, data }];
}

/** Damage weighs most; else it is the surroundings that are not fit. */
export function exitOf(findings: readonly Reported[]): number {
  const codes = findings
    .filter(({ level }) => level === "error")
    .map(({ data }) => data["code"] as ErrorCode);
  return codes.reduce((worst, code) => Math.max(worst, ERRORS[code].exit), 0);
}

export function summaryOf(findings: readonly Reported[]): Readonly<Record<Level, number>> {
  const count = (level: Level) => findings.filter((finding) => finding.level === level).length;
  return { error: count("error"), warning: count("warning"), note: count("note"), ok: count("ok") };
}
