import { CotenantError } from "../errors/cotenant-error";
import type { AgentIdentity } from "../identity/agent";
import { agentType } from "../kernel/ids";
import { isAmong } from "../kernel/policy";
import type { Command } from "./grammar/command";

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
  command: Pick<Command, "flags" | "isForPeople">,
  /** Null where nobody knows who asks. */
  caller: Pick<AgentIdentity, "agentId" | "harness"> | null = null,
): unknown {
  if (!(error instanceof CotenantError)) return error;
  const { flags, isForPeople } = command;
  // Inside a harness nobody can be a person.
  const isNobody = error.code === "E_AGENT_ID_REQUIRED" && error.data["harness"] === undefined;
  if (isForPeople === true && isNobody)
    return hinting(
      error,
      "this is for people: in a terminal it works as it is, elsewhere with --agent-id human:<you>",
    );
  if (isPersonInAgentsShell(error, command, caller))
    return hinting(error, `${error.hint}; a person here adds --agent-id human:<you>`);
  if (!error.hint.startsWith(OTHERWISE)) return error;
  const way = WAYS[error.code]?.find(({ options }) => options.every((name) => Object.hasOwn(flags, name)));
  if (way === undefined) return error;
  return hinting(error, `${way.way}, or ${error.hint}`);
}

function hinting(error: CotenantError, hint: string): CotenantError {
  const { code, message, data } = error;
  return new CotenantError(code, message, { hint, data, cause: error });
}

/** Somebody who is refused as an agent, and may be a person whose shell has an agent's name. */
function isPersonInAgentsShell(
  { code, data }: CotenantError,
  { isForPeople }: Pick<Command, "isForPeople">,
  caller: Pick<AgentIdentity, "agentId" | "harness"> | null,
): boolean {
  if (code !== "E_POLICY" || caller === null || caller.harness !== null) return false;
  if (isForPeople !== true && data["setting"] !== "policy.evict") return false;
  if (["human", "admin"].includes(agentType(caller.agentId))) return false;
  const { allowed } = data;
  return !Array.isArray(allowed) || isAmong(allowed, "human:<you>");
}

function waiting(what: string) {
  return [
    { options: ["wait", "timeout"], way: `${what} with --wait --timeout 300` },
    { options: ["wait"], way: `${what} with --wait` },
  ];
}
