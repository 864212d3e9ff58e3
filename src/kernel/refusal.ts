/** A refusal is a value: the kernel never throws for anything a caller can do. */

export type RefusalCode =
  | "E_USAGE"
  | "E_LOCK_CONFLICT"
  | "E_QUEUED"
  | "E_PAUSED"
  | "E_NOT_FOUND"
  | "E_LOCK_NOT_HELD"
  | "E_LOCK_EXPIRED"
  | "E_FENCING_MISMATCH"
  | "E_POLICY"
  | "E_APPROVAL_NEEDED"
  | "E_LIMIT"
  | "E_PATH_ESCAPE";

export interface Refusal {
  readonly refused: true;
  readonly code: RefusalCode;
  readonly message: string;
  /** Overrides the registry's general hint when the situation allows a better one. */
  readonly hint?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export function refuse(
  code: RefusalCode,
  message: string,
  extra: { hint?: string; data?: Record<string, unknown> } = {},
): Refusal {
  return {
    refused: true,
    code,
    message,
    ...(extra.hint === undefined ? {} : { hint: extra.hint }),
    data: extra.data ?? {},
  };
}

/** Whether it ends by itself, or by somebody else's doing, so that it is worth waiting for. */
export function isCuredByWaiting({ code }: Refusal): boolean {
  return code === "E_LOCK_CONFLICT" || code === "E_QUEUED" || code === "E_PAUSED";
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === "object" && value !== null && (value as { refused?: unknown }).refused === true;
}
