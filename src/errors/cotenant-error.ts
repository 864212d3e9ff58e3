import { printable } from "../kernel/ids";
import { isRefusal, type Refusal } from "../kernel/refusal";
import { ERRORS, type ErrorCode } from "./registry";

/** Data for programs. What code of ours reads from it has a type here, which holds whoever makes such an error. */
export interface ErrorData {
  readonly paths?: readonly (string | { readonly path: string })[];
  readonly holders?: readonly {
    readonly key?: unknown;
    readonly agent_id?: unknown;
    readonly [name: string]: unknown;
  }[];
  readonly leases?: readonly Readonly<Record<string, unknown>>[];
  readonly outcome?: "unknown";
  readonly [name: string]: unknown;
}

interface Saying {
  readonly message?: string;
  readonly hint?: string;
  readonly data?: ErrorData;
}

/** The one error class: a code from the registry, words for a person, a next step, and data for a program. */
export class CotenantError extends Error {
  readonly code: ErrorCode;
  readonly hint: string;
  readonly data: ErrorData;

  constructor(
    code: ErrorCode,
    message: string,
    extra: { hint?: string | undefined; data?: ErrorData; cause?: unknown } = {},
  ) {
    super(message, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.name = "CotenantError";
    this.code = code;
    this.hint = extra.hint ?? ERRORS[code].hint;
    this.data = extra.data ?? {};
  }

  /** The same, with more to it: what is not given stays as it was said. */
  with({ message = this.message, hint = this.hint, data = {} }: Saying): CotenantError {
    return new CotenantError(this.code, message, { hint, data: { ...this.data, ...data }, cause: this });
  }

  /** Of the files that it is about, as many as it names. */
  get paths(): readonly string[] {
    const { paths } = this.data;
    // A daemon of another version may have said it.
    return Array.isArray(paths) ? paths.map((one) => String(one?.path ?? one)) : [];
  }

  get exit(): number {
    return ERRORS[this.code].exit;
  }

  toJSON(): Record<string, unknown> {
    return { code: this.code, message: this.message, hint: this.hint, data: this.data };
  }
}

/** What comes up again and again, in fewer words: what is wrong, what to do next, and what programs are told. */
type Constructor = (message: string, hint: string, data?: ErrorData) => CotenantError;

function saying(code: ErrorCode): Constructor {
  return (message, hint, data = {}) => new CotenantError(code, message, { hint, data });
}

export const usageError = saying("E_USAGE");
export const policyError = saying("E_POLICY");
export const notFoundError = saying("E_NOT_FOUND");
export const limitError = saying("E_LIMIT");
export const conflictError = saying("E_LOCK_CONFLICT");
export const protectedError = saying("E_PROTECTED_REF");
export const permissionError = saying("E_PERMISSION");
export const gitError = saying("E_GIT");
export const retriesError = saying("E_RETRIES_EXHAUSTED");

/** For a flag or a field that takes one of a few words. */
export function choiceOf<T extends string>(what: string, given: string, choices: readonly T[]): T {
  const chosen = choices.find((choice) => choice === given);
  if (chosen !== undefined) return chosen;
  throw usageError(`${what} cannot be "${printable(given)}"`, `use one of ${choices.join(", ")}`);
}

export function errorFrom(refusal: Refusal): CotenantError {
  return new CotenantError(refusal.code, refusal.message, {
    hint: refusal.hint,
    data: { ...refusal.data },
  });
}

/** The value, or the refusal as an error. For the edges of the system. */
export function orThrow<T>(value: T | Refusal): T {
  if (isRefusal(value)) throw errorFrom(value);
  return value;
}

const LOST: readonly ErrorCode[] = ["E_NOT_FOUND", "E_FENCING_MISMATCH", "E_LOCK_EXPIRED", "E_LOCK_NOT_HELD"];

/** Whether the refusal says that a lease is its holder's no more; any other failure may pass. */
export function saysLost(error: unknown): error is CotenantError {
  return error instanceof CotenantError && LOST.includes(error.code);
}

/** What a failed file operation means to a user. */
export function fileFailure(error: unknown, doing: string, path: string): CotenantError {
  if (error instanceof CotenantError) return error;
  const code = (error as { code?: unknown })?.code;
  const say = (kind: ErrorCode, message: string, hint?: string) =>
    new CotenantError(kind, message, {
      hint,
      data: { path, errno: typeof code === "string" ? code : null },
      cause: error,
    });
  // It may be anybody's: a word of the command line, or where the repository lies.
  const where = printable(path, 300);
  switch (code) {
    case "EACCES":
    case "EPERM":
      return say("E_PERMISSION", `no permission for ${doing}: ${where}`);
    case "ENOSPC":
    case "EDQUOT":
      return say("E_DISK", `the disk is full: ${doing} failed (${where})`);
    case "EROFS":
      return say("E_DISK", `the file system is read-only: ${doing} failed (${where})`);
    case "ENAMETOOLONG":
      return say("E_LIMIT", `${where} is longer than this file system allows`, "use a shorter name or path");
    // Where something is missing, our own functions answer null: here a directory went away under our hands.
    case "ENOENT":
    case "ENOTDIR":
      return say(
        "E_STORE_BUSY",
        `${doing} failed: somebody took ${where} away meanwhile`,
        "run it again; 'cotenant init' makes what is missing",
      );
  }
  if (typeof code === "string") return say("E_DISK", `${doing} failed with ${code} (${where})`);
  return say("E_INTERNAL", `${doing} failed: ${error instanceof Error ? error.message : String(error)}`);
}

/** Does something with files, and says what it was about where that fails. */
export async function during<T>(doing: string, path: string, act: () => T | PromiseLike<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw fileFailure(error, doing, path);
  }
}
