import { CotenantError } from "../errors/cotenant-error";
import type { Command } from "./command";

/** What a command can do about it that has the option. The registry's hints are for everybody, and so name none. */
const WAYS: Readonly<Record<string, { readonly option: string; readonly way: string }>> = {
  E_LOCK_CONFLICT: { option: "wait", way: "wait for it with --wait --timeout 300" },
  E_QUEUED: { option: "wait", way: "join the queue with --wait --timeout 300" },
  E_WAIT_TIMEOUT: { option: "timeout", way: "wait longer with --timeout" },
};
const OTHERWISE = "take other work";

/** The error with what this very command could do about it. */
export function withWay(error: unknown, { flags }: Pick<Command, "flags">): unknown {
  if (!(error instanceof CotenantError) || !error.hint.startsWith(OTHERWISE)) return error;
  const way = WAYS[error.code];
  if (way === undefined || !Object.hasOwn(flags, way.option)) return error;
  const { code, message, data } = error;
  return new CotenantError(code, message, { hint: `${way.way}, or ${error.hint}`, data, cause: error });
}
