import { CotenantError } from "../errors/cotenant-error";
import type { Command } from "./command";

/** What a command can do about it that has the options. The registry's hints are for everybody, and so name none. */
const WAYS: Readonly<
  Record<string, readonly { readonly options: readonly string[]; readonly way: string }[]>
> = {
  E_LOCK_CONFLICT: waiting("wait for it"),
  E_QUEUED: waiting("join the queue"),
  E_WAIT_TIMEOUT: [{ options: ["timeout"], way: "wait longer with --timeout" }],
};
const OTHERWISE = "take other work";

/** The error with what this very command could do about it. */
export function withWay(
  error: unknown,
  { flags, isForPeople }: Pick<Command, "flags" | "isForPeople">,
): unknown {
  if (isForPeople === true && error instanceof CotenantError && error.code === "E_AGENT_ID_REQUIRED")
    return new CotenantError(error.code, error.message, {
      hint: "this is for people: in a terminal it works as it is, elsewhere with --agent-id human:<you>",
      data: error.data,
      cause: error,
    });
  if (!(error instanceof CotenantError) || !error.hint.startsWith(OTHERWISE)) return error;
  const way = WAYS[error.code]?.find(({ options }) => options.every((name) => Object.hasOwn(flags, name)));
  if (way === undefined) return error;
  const { code, message, data } = error;
  return new CotenantError(code, message, { hint: `${way.way}, or ${error.hint}`, data, cause: error });
}

function waiting(what: string) {
  return [
    { options: ["wait", "timeout"], way: `${what} with --wait --timeout 300` },
    { options: ["wait"], way: `${what} with --wait` },
  ];
}
