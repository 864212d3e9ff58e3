import type { Command, Context, Flag } from "../../../cli/grammar/command";
import { interruptibly } from "../../../cli/terminal/interrupts";
import { columns } from "../../../cli/terminal/render";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { count, shellWord } from "../../../kernel/printing";
import { REASON_FLAG } from "../../locks/commands/flags";
import { branchName } from "../../publish/branch-rules";
import { pushFrom } from "../../publish/commands/flags";
import { type LandEntry, METHODS, type Method } from "../entry";
import { land } from "../operations";
import type { LandReport } from "../report";
import { shownBranch } from "../target";
import { asideLines, entryJson, queuePauseJson, queuePauseText, reportJson, reportText } from "./output";

function targetFlag(meaning: string): Readonly<Record<string, Flag>> {
  return { target: { value: "<branch>", completes: "ref", meaning } };
}

const ONE_ENTRY = {
  words: { min: 1, max: 1, what: "a branch of the queue" },
  completes: ["ref"],
} as const;

export const add: Command = {
  usage:
    "land add <branch>… [--target <branch>] [--method merge|squash|rebase] [--message <text>]…\n         [--issue <id>]",
  about:
    "Adds branches to the merge queue, as they are now: what is committed there later needs another 'land add', which\nreplaces the entry and keeps its method, message and issue unless you name others. Anybody may add; 'land run'\nlands them, by those whom policy.land allows.",
  flags: {
    ...targetFlag("where they are to land (else land.target, else main)"),
    method: { value: "<method>", choices: METHODS, meaning: "how they are put there (else land.method)" },
    message: {
      value: "<text>",
      many: true,
      meaning: "the landing commit's message; once more for another paragraph",
    },
    issue: {
      value: "<id>",
      completes: "issue",
      meaning: "the issue that is done by it, for the commit's trailers",
    },
  },
  examples: ["cotenant land add work/login", "cotenant land add work/login work/docs --method squash"],
  words: { min: 1, max: 100, what: "a branch" },
  completes: ["ref"],
  async run(context, parsed) {
    const message = parsed.texts("message").join("\n\n");
    const enqueued = await land.add(await context.workspace(), {
      branches: parsed.words,
      target: parsed.text("target"),
      method: parsed.text("method") as Method | undefined,
      message: message === "" ? undefined : message,
      issue: parsed.text("issue"),
    });
    const lines = enqueued.map(({ entry, changed, replaced }) => {
      const [branch, target] = [shownBranch(entry.branch), shownBranch(entry.target)];
      if (!changed) return `${branch} is in the queue for ${target} already`;
      const instead = replaced === null ? "" : `, in place of ${replaced.commit.slice(0, 12)}`;
      return `added ${branch} at ${entry.commit.slice(0, 12)} to the queue for ${target}${instead}`;
    });
    return {
      data: {
        entries: enqueued.map(({ entry, changed, replaced }) => ({
          entry: entryJson(entry),
          changed,
          replaces: replaced?.entryId ?? null,
        })),
      },
      text: context.quiet ? enqueued.map(({ entry }) => entry.entryId).join("\n") : lines.join("\n"),
    };
  },
};

/** A branch is what people name an entry by; its id is needed only where one is in two queues. */
const HEAD = ["BRANCH", "STATE", "", "TARGET", "COMMIT", "ADDED BY", "ENTRY"];

export const list: Command = {
  about:
    "Shows the merge queue: what waits to land, in order, and what was put aside and why. With --all also what has\nlanded lately. Writes nothing.",
  flags: {
    ...targetFlag("only what is to land there"),
    all: { meaning: "also the last 50 that have landed" },
  },
  examples: ["cotenant land list", "cotenant land list --all"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const request = { target: parsed.text("target"), all: parsed.has("all") };
    const { entries, pauses } = await land.list(await context.workspace(), request);
    const rows = entries.map((entry) => [
      printable(branchName(entry.branch), 60),
      entry.state,
      detail(entry),
      printable(branchName(entry.target), 40),
      entry.commit.slice(0, 12),
      entry.addedBy,
      entry.entryId,
    ]);
    const table = rows.length === 0 ? "the merge queue is empty" : columns(context.terminal, HEAD, rows);
    const aside = entries.flatMap(({ branch, parked }) =>
      parked === null ? [] : asideLines(shownBranch(branch), parked),
    );
    return {
      data: { entries: entries.map(entryJson), paused: pauses.map(queuePauseJson) },
      text: [...pauses.map(queuePauseText), table, ...aside].join("\n"),
    };
  },
};

function detail({ parked, landed, method, target }: LandEntry): string {
  if (parked !== null) return parked.why;
  if (landed === null) return method;
  return landed.commit === null
    ? "had it already"
    : `as ${landed.commit.slice(0, 12)}${placeOf(landed, target)}`;
}

function placeOf({ ref, isRemoteOnly }: NonNullable<LandEntry["landed"]>, target: string): string {
  if (ref !== target) return `, at ${printable(branchName(ref), 60)}`;
  return isRemoteOnly ? ", on the remote only" : "";
}

export const remove: Command = {
  positional: "<entry|branch>",
  about: "Takes an entry out of the merge queue. Its branch stays as it is.",
  flags: {
    ...targetFlag("of the queue for this branch"),
    ...REASON_FLAG,
  },
  examples: ["cotenant land remove work/login"],
  ...ONE_ENTRY,
  async run(context, parsed) {
    const entry = await land.remove(await context.workspace(), {
      entry: parsed.words[0]!,
      target: parsed.text("target"),
      reason: parsed.text("reason"),
    });
    const text = `took ${shownBranch(entry.branch)} out of the queue for ${shownBranch(entry.target)}; the branch stays`;
    return { data: { entry: entryJson(entry) }, text: context.quiet ? "" : text };
  },
};

export const retry: Command = {
  positional: "<entry|branch>",
  about:
    "Puts an entry that was put aside back into the merge queue, at its old place and with the commit that was added.\nFor a branch that was changed since: 'land add'.",
  flags: targetFlag("of the queue for this branch"),
  examples: ["cotenant land retry work/login"],
  ...ONE_ENTRY,
  async run(context, parsed) {
    const request = { entry: parsed.words[0]!, target: parsed.text("target") };
    const { entry, changed } = await land.retry(await context.workspace(), request);
    const how = changed ? `again, at ${entry.commit.slice(0, 12)}` : "already";
    const text = `${shownBranch(entry.branch)} is in the queue for ${shownBranch(entry.target)} ${how}`;
    return { data: { entry: entryJson(entry), changed }, text: context.quiet ? "" : text };
  },
};

export const pause: Command = {
  about:
    "Stops landings on a target: whoever runs the queue is told by whom and why, and a run that is under way ends before\nits next landing. Entries can be added meanwhile. By those whom policy.land allows.",
  flags: {
    ...targetFlag("of the queue for this branch (else land.target, else main)"),
    reason: {
      value: "<text>",
      isRequired: true,
      meaning: "why; told to everybody who is refused, and logged",
    },
  },
  examples: ['cotenant land pause --reason "release in progress" --agent-id human:ada'],
  words: { min: 0, max: 0 },
  isForPeople: true,
  async run(context, parsed) {
    const request = { target: parsed.text("target"), reason: parsed.text("reason") };
    const { pause, changed } = await land.pause(await context.workspace(), request);
    const text = `${changed ? "" : "already: "}${queuePauseText(pause)}\n  next: cotenant land resume, when it is over`;
    return { data: { ...queuePauseJson(pause), changed }, text: context.quiet ? "" : text };
  },
};

export const resume: Command = {
  about: "Lets landings on a target go on after 'land pause'. By those whom policy.land allows.",
  flags: {
    ...targetFlag("of the queue for this branch (else land.target, else main)"),
  },
  examples: ["cotenant land resume --agent-id human:ada"],
  words: { min: 0, max: 0 },
  isForPeople: true,
  async run(context, parsed) {
    const { target, ended } = await land.resume(await context.workspace(), { target: parsed.text("target") });
    const text = `landing on ${shownBranch(target)} ${ended === null ? "was not paused" : "goes on"}`;
    return {
      data: { target: branchName(target), ended: queuePauseJson(ended), changed: ended !== null },
      text: context.quiet ? "" : text,
    };
  },
};

export const run: Command = {
  usage:
    "land run [--target <branch>] [--only <entry|branch>]… [--push] [--remote <name>] [--wait] [--parallel <n>]\n         [--as-branch <prefix>] [--clean] [--dry-run]",
  about:
    "Lands what is in the merge queue, in order: each branch is put onto the target, or onto those before it, without a\ncheckout, has to pass land.checks in a scratch worktree, and then the target moves. What conflicts or fails is put aside\nwith its output, and those behind it are built anew. Killed or interrupted, the next run goes on. A target that is\nchecked out moves with its files, if that worktree is clean and nobody else writes there. By those whom policy.land\nallows; one run per target at a time.",
  flags: {
    ...targetFlag("where to land (else land.target, else main)"),
    only: {
      value: "<entry|branch>",
      many: true,
      completes: "ref",
      meaning: "only this one; the others stay",
    },
    push: { meaning: "land on the remote first; the target here follows" },
    remote: { value: "<name>", meaning: "where to push (else the target's own, else origin)" },
    wait: { meaning: "wait for another run on the same target, instead of being refused" },
    parallel: { value: "<n>", meaning: "how many are checked at once, 1 to 8 (else land.parallel)" },
    "as-branch": {
      value: "<prefix>",
      meaning: "put each at <prefix>/<branch> instead, for a forge's own merge queue; the target stays",
    },
    clean: { meaning: "delete landed branches and their worktrees, where nothing is lost (else land.clean)" },
    "dry-run": { meaning: "show what would merge, without checks, and land nothing" },
  },
  examples: ["cotenant land run --agent-id human:ada", "cotenant land run --dry-run --agent-id human:ada"],
  words: { min: 0, max: 0, instead: "for one branch only: --only <branch>" },
  isForPeople: true,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const only = parsed.texts("only");
    const request = {
      target: parsed.text("target"),
      only: only.length === 0 ? undefined : only,
      push: pushFrom(parsed),
      wait: parsed.has("wait"),
      parallel: parsed.whole("parallel"),
      asBranch: parsed.text("as-branch"),
      clean: parsed.has("clean") || undefined,
      dryRun: parsed.has("dry-run"),
      onProgress: ({ text }: { readonly text: string }) => {
        if (!context.quiet) context.note(printable(text, 500));
      },
    };
    const report = await interruptibly(context, true, async (signal) => {
      const done = await land.run(workspace, { ...request, signal });
      refuseStopped(context, done);
      return done;
    });
    const data = reportJson(report);
    if (context.quiet) return { data, text: "" };
    const others = report.entries.length === 0 ? await elsewhere(workspace, report.target) : [];
    return { data, text: [reportText(report), ...others].join("\n") };
  },
};

/** Nothing waited here: a branch that somebody misses was put aside, or waits for another target. */
async function elsewhere(workspace: Workspace, here: string): Promise<string[]> {
  const { entries: queue } = await land.list(workspace);
  const aside = queue.filter(({ state, target }) => state === "parked" && target === here).length;
  const waiting = queue.filter(({ state }) => state === "queued");
  const targets = [...new Set(waiting.map(({ target }) => target))];
  const lines = targets.map((target) => {
    const n = count(waiting.filter((entry) => entry.target === target).length, "branch", "branches");
    return `  ${n} for ${shownBranch(target)}: cotenant land run --target ${shellWord(branchName(target))}`;
  });
  if (aside === 0) return lines;
  const were = aside === 1 ? "1 branch was" : `${aside} branches were`;
  return [`  ${were} put aside: cotenant land list`, ...lines];
}

/** What has landed before has landed, and the error says so. */
function refuseStopped({ note, quiet }: Context, report: LandReport): void {
  const { stopped } = report;
  if (stopped === null) return;
  if (!quiet && report.entries.some(({ outcome }) => outcome !== "waiting")) note(reportText(report));
  throw new CotenantError(stopped.code, stopped.message, {
    hint: stopped.hint,
    data: { ...stopped.data, report: reportJson(report) },
  });
}
