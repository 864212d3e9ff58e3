import type { Command, Context, Output, Parsed } from "../../../cli/grammar/command";
import { installedFrom } from "../../../cli/grammar/installed";
import { usage } from "../../../cli/grammar/parse";
import { interruptibly } from "../../../cli/terminal/interrupts";
import { CotenantError } from "../../../errors/cotenant-error";
import { dispatchParts } from "../../../node-parts";
import { FILTER_FLAGS, filterFrom } from "../../issues/commands/flags";
import { filterOf } from "../../issues/query";
import {
  countEnds,
  type DispatchReport,
  type DispatchRequest,
  dispatch,
  TEMPLATE_NAMES,
} from "../operations";
import { planJson, planText, reportJson, reportText } from "./output";
import { progressFor } from "./progress";

const HELP = "cotenant dispatch --help";
const { assignee: _assignee, limit: _limit, ...NARROWING } = FILTER_FLAGS;

export const command: Command = {
  usage:
    "dispatch (--agent <harness> | --command <line>) [--land | --pr] [options] [-- <argument for the harness>…]",
  about:
    "Has agents work on issues until none is left. Each worker takes the most urgent issue whose files are free, in a\nworktree of its own on a branch of its own, claims it, keeps the claim alive, and runs the agent with its task in the\nenvironment. Then come the issue's automated gates, what the agent left uncommitted is committed, and the work lands\n(--land), is pushed for a pull request (--pr), or stays on its branch. Only then the issue is done. What fails is tried\nagain, and then given back with its log as a comment. Killed at any moment, the same command goes on where it was.",
  flags: {
    agents: { value: "<n>", meaning: "how many at once (default 1)" },
    agent: {
      value: "<harness>",
      choices: TEMPLATE_NAMES,
      meaning: "run this one, without a person, with the guard on",
    },
    command: {
      value: "<line>",
      meaning: "run this line with a shell instead; docs/DISPATCH.md lists what it is told",
    },
    land: { meaning: "land each branch on the target when it is ready, through the merge queue" },
    pr: { meaning: "push each branch and open a pull request with gh or glab" },
    push: { meaning: "with --land: land on the remote first" },
    remote: { value: "<name>", meaning: "where to push (else the target's own, else origin)" },
    target: {
      value: "<branch>",
      completes: "ref",
      meaning: "where work begins and lands (else land.target, else main)",
    },
    issue: { value: "<id>", many: true, completes: "issue", meaning: "only this one, once it is available" },
    ...NARROWING,
    limit: { value: "<n>", meaning: "take at most so many" },
    wait: { meaning: "wait for more when nothing is left, until it is stopped" },
    retries: { value: "<n>", meaning: "further attempts after one that failed (default 1)" },
    backoff: {
      value: "<secs>",
      meaning: "pause before the second attempt, doubled before each further one (default 5)",
    },
    timeout: { value: "<secs>", meaning: "how long one attempt may take (default 3600)" },
    stall: { value: "<secs>", meaning: "tell of an agent that is silent for so long (default 300)" },
    cost: {
      value: "<usd>",
      meaning: "take no more issues once the run has cost so much, where the harness says",
    },
    "cost-per-issue": { value: "<usd>", meaning: "try no more once an issue has cost so much" },
    commit: {
      value: "on|off",
      choices: ["on", "off"],
      meaning: "commit what an agent left uncommitted (default on)",
    },
    "allow-empty": { meaning: "an agent that changed nothing has done its work" },
    "shared-caches": { meaning: "leave caches of tools where they are, instead of a place for each worker" },
    name: {
      value: "<name>",
      meaning: "what workers are called: agent:<name>-1 and so on (default the harness's name)",
    },
    clean: { meaning: "with --land: delete landed branches (else land.clean)" },
    "dry-run": { meaning: "show what would be taken, and change nothing" },
  },
  examples: [
    "cotenant dispatch --agents 4 --agent claude --dry-run",
    "cotenant dispatch --agents 2 --command './scripts/agent.sh \"$COTENANT_PROMPT_FILE\"' --land --dry-run",
  ],
  words: {
    min: 0,
    max: Number.POSITIVE_INFINITY,
    behindDashes: true,
    instead:
      "for one issue only: --issue <id>; what is for the harness follows --, as in: cotenant dispatch --agent claude -- --model opus",
  },
  isForPeople: true,
  async run(context, parsed) {
    const request = requestFrom(parsed);
    // Before anything is written.
    dispatch.check(request);
    const workspace = await context.workspace();
    if (parsed.has("dry-run")) {
      const plan = await dispatch.plan({ workspace, session: await workspace.session("read") }, request);
      return {
        data: { dry_run: true, runs: plan.runs, ...planJson(plan) },
        text: planText(context.terminal, plan),
      };
    }
    const session = await workspace.session("write");
    const parts = await dispatchParts(workspace, session, installedFrom(context));
    return interruptibly(context, true, async (signal) => {
      const progress = progressFor(context, workspace.surroundings.env);
      let report: DispatchReport;
      try {
        const onEvent: DispatchRequest["onEvent"] = (event, state) => progress.show(event, state);
        report = await dispatch(parts, { ...request, onEvent, signal });
      } catch (error) {
        throw lastWord(context, error);
      } finally {
        progress.close();
      }
      return outputFor(context, report, signal?.aborted === true);
    });
  },
};

/** A stream of JSON that nobody has asked for with --json has an end all the same. */
function lastWord({ terminal, json, quiet }: Context, error: unknown): unknown {
  if (error instanceof CotenantError && !terminal.isTerminal && !json && !quiet)
    terminal.out(`${JSON.stringify({ ok: false, error: error.toJSON() })}\n`);
  return error;
}

const INTERRUPTED = {
  code: "E_INTERRUPTED",
  message: "interrupted: no agent is left running, and nothing is held",
  hint: "run the same command again: it goes on where it was",
} as const;

/** Some were not done: neither a failure of ours, nor everything that was asked for. */
const NOT_ALL = 2;

function outputFor(context: Context, report: DispatchReport, isInterrupted: boolean): Output {
  const text = reportText(report, countEnds(report.issues));
  const { stopped } = report;
  const data = reportJson(report);
  if (isInterrupted || stopped !== null) {
    if (!context.quiet && context.terminal.isTerminal && !context.json) context.note(text);
    const { code, message, hint } = stopped ?? INTERRUPTED;
    const given = { hint, data: { ...stopped?.data, report: data } };
    throw lastWord(context, new CotenantError(code, message, given));
  }
  const isAll = report.issues.every(({ end }) => end === "done" || end === "gated" || end === "deleted");
  const isStreamed = !context.terminal.isTerminal && !context.json && !context.quiet;
  if (isStreamed) context.terminal.out(`${JSON.stringify({ ok: true, data })}\n`);
  return { data, text: context.quiet ? "" : text, exit: isAll ? 0 : NOT_ALL, isStreamed };
}

function requestFrom(parsed: Parsed): DispatchRequest {
  const [remote, commits] = [parsed.text("remote"), parsed.text("commit")];
  const pushes = parsed.has("push") || parsed.has("pr");
  if (remote !== undefined && !pushes)
    throw usage("--remote says where to push, but nothing is pushed", HELP);
  if (commits !== undefined && commits !== "on" && commits !== "off")
    throw usage(`--commit takes on or off, not "${commits}"`, HELP);
  if (parsed.has("land") && parsed.has("pr"))
    throw usage("--land and --pr are two ways for the same work to leave: choose one", HELP);
  const only = parsed.texts("issue");
  return {
    agent: parsed.text("agent"),
    agentArguments: parsed.words,
    command: parsed.text("command"),
    name: parsed.text("name"),
    agents: parsed.whole("agents"),
    most: parsed.whole("limit"),
    retries: parsed.whole("retries"),
    backoffSecs: parsed.whole("backoff"),
    timeoutSecs: parsed.whole("timeout"),
    stallSecs: parsed.whole("stall"),
    target: parsed.text("target"),
    costPerIssue: amountOf(parsed, "cost-per-issue"),
    costInAll: amountOf(parsed, "cost"),
    commits: commits === undefined ? undefined : commits === "on",
    only: only.length === 0 ? undefined : only,
    push: pushes ? (remote ?? null) : undefined,
    clean: parsed.has("clean") ? true : undefined,
    delivery: parsed.has("land") ? "land" : parsed.has("pr") ? "pr" : "branch",
    filter: filterOf(filterFrom(parsed)),
    waits: parsed.has("wait"),
    ownCaches: !parsed.has("shared-caches"),
    allowsEmpty: parsed.has("allow-empty"),
  };
}

function amountOf(parsed: Parsed, flag: string): number | undefined {
  const text = parsed.text(flag);
  if (text === undefined) return undefined;
  const amount = Number(text);
  if (/^\d{1,9}(\.\d{1,6})?$/.test(text) && amount > 0) return amount;
  throw usage(`--${flag} takes an amount in US dollars, for example 2.50, not "${text}"`, HELP);
}
