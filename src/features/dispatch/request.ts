import { CotenantError } from "../../errors/cotenant-error";
import { printable, type Ulid } from "../../kernel/ids";
import { ANYTHING, type Filter } from "../issues/query";
import type { Delivery, DispatchEvent, DispatchOptions } from "./report";
import type { RunState, StopHow } from "./run-file";
import { TEMPLATE_NAMES, templateFor } from "./templates";

/** What is asked for; what is left out is as usual. Either `agent` or `command` is needed. */
export interface DispatchRequest {
  /** How many at once; 1. */
  readonly agents?: number | undefined;
  /** A harness by name, run without a person. */
  readonly agent?: string | undefined;
  /** What to say to the harness besides. */
  readonly agentArguments?: readonly string[] | undefined;
  /** For a shell. */
  readonly command?: string | undefined;
  /** `branch`: each branch stays as it is. */
  readonly delivery?: Delivery | undefined;
  /** With `land` and `pr`: the remote's name, null for the usual one. Left out, a landing is not pushed. */
  readonly push?: string | null | undefined;
  /** Where work begins and lands; `land.target`, or the main branch. */
  readonly target?: string | undefined;
  readonly filter?: Partial<Filter> | undefined;
  /** Only these issues, by their ids, short or whole. */
  readonly only?: readonly string[] | undefined;
  /** Takes at most so many issues. */
  readonly most?: number | undefined;
  /** Waits for more when nothing is left, until it is stopped. */
  readonly waits?: boolean | undefined;
  /** Further attempts after one that failed; 1. */
  readonly retries?: number | undefined;
  /** The pause before the second attempt, twice as long before each further one; five seconds. */
  readonly backoffSecs?: number | undefined;
  /** How long one attempt may take; an hour. */
  readonly timeoutSecs?: number | undefined;
  /** Tells of an agent that is silent for so long; five minutes. */
  readonly stallSecs?: number | undefined;
  /** In US dollars, where the harness says what it costs. */
  readonly costPerIssue?: number | undefined;
  readonly costInAll?: number | undefined;
  /** Whether what an agent left uncommitted is committed; true. */
  readonly commits?: boolean | undefined;
  /** Whether landed branches are deleted; as `land.clean` says. */
  readonly clean?: boolean | undefined;
  /** Whether each worker has caches of its own; true. */
  readonly ownCaches?: boolean | undefined;
  readonly allowsEmpty?: boolean | undefined;
  /** What workers are called: `agent:<name>-1` and so on. The harness's name, or `worker`. */
  readonly name?: string | undefined;
  /** Ends everything: agents are stopped, and what they did is kept. */
  readonly signal?: AbortSignal | undefined;
  readonly onEvent?: (event: DispatchEvent, state: RunState) => void;
  /** Somebody has asked for the end with `dispatch stop`; it comes without this, too. */
  readonly onStop?: (how: StopHow) => void;
}

const MOST_AGENTS = 200;
const MOST_RETRIES = 100;
const MOST_SECS = 30 * 86_400;

/** The whole of what a run goes by; refuses what contradicts itself. */
export function optionsOf(request: DispatchRequest, only: readonly Ulid[] | null = null): DispatchOptions {
  const {
    delivery = "branch",
    push,
    agents = 1,
    retries = 1,
    timeoutSecs = 3_600,
    stallSecs = 300,
  } = request;
  const { backoffSecs = 5, most = null, target = null, costPerIssue = null, costInAll = null } = request;
  const what = whatRuns(request);
  const name = request.name ?? what.template?.harness ?? "worker";
  if (!/^[a-z0-9][a-z0-9_-]{0,39}$/i.test(name))
    throw wrong(`workers cannot be called "${printable(name)}"`, "use letters, digits, - and _, at most 40");
  within("agents", agents, 1, MOST_AGENTS);
  within("retries", retries, 0, MOST_RETRIES);
  within("backoff", backoffSecs, 0, MOST_SECS);
  within("timeout", timeoutSecs, 1, MOST_SECS);
  within("stall", stallSecs, 1, MOST_SECS);
  if (most !== null) within("limit", most, 1, Number.MAX_SAFE_INTEGER);
  if (push !== undefined && delivery === "branch")
    throw wrong("branches that stay as they are are not pushed", "add --land or --pr, or leave out --push");
  const stop = new AbortController();
  const drain = new AbortController();
  request.signal?.addEventListener("abort", () => stop.abort(), { once: true });
  if (request.signal?.aborted === true) stop.abort();
  return {
    ...{ agents, delivery, only, most, name, retries, target, costPerIssue, costInAll, ...what },
    push: delivery === "pr" ? (push ?? null) : push,
    filter: { ...ANYTHING, ...request.filter, limit: null },
    waits: request.waits ?? false,
    backoffMs: backoffSecs * 1000,
    timeoutMs: timeoutSecs * 1000,
    stallMs: stallSecs * 1000,
    commits: request.commits ?? true,
    clean: request.clean ?? null,
    ownCaches: request.ownCaches ?? true,
    allowsEmpty: request.allowsEmpty ?? false,
    signal: stop.signal,
    drained: drain.signal,
    onEvent: request.onEvent ?? (() => {}),
    onStop: (how) => {
      (how === "now" ? stop : drain).abort();
      request.onStop?.(how);
    },
  };
}

function whatRuns({
  agent,
  agentArguments = [],
  command,
}: DispatchRequest): Pick<DispatchOptions, "template" | "command"> {
  if ((agent === undefined) === (command === undefined))
    throw wrong(
      "say what to run: either --agent <harness> or --command <line>",
      `for example cotenant dispatch --agents 4 --agent claude; harnesses: ${TEMPLATE_NAMES.join(", ")}`,
    );
  if (agent === undefined) {
    if (agentArguments.length > 0)
      throw wrong(
        `"${printable(agentArguments[0]!)}" would go to a harness, and --command names none`,
        "write it into the command's line",
      );
    if (command!.trim() === "") throw wrong("the command is empty", "for example --command './agent.sh'");
    return { template: null, command: command! };
  }
  const template = templateFor(agent.toLowerCase(), agentArguments);
  if (template !== null) return { template, command: null };
  throw wrong(
    `there is no way known to run "${printable(agent)}" without a person`,
    `use one of ${TEMPLATE_NAMES.join(", ")}, or --command '<line>'`,
  );
}

function within(what: string, value: number, least: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw wrong(`--${what} is from ${least} to ${most}, not ${value}`, "see 'cotenant dispatch --help'");
}

function wrong(message: string, hint: string): CotenantError {
  return new CotenantError("E_USAGE", message, { hint });
}
