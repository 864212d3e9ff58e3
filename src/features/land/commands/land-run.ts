import type { Command, Context } from "../../../cli/grammar/command";
import { interruptibly } from "../../../cli/terminal/interrupts";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { count, shellWord } from "../../../kernel/printing";
import { landParts } from "../../../node-parts";
import { branchName } from "../../publish/branch-rules";
import { type LandReport, meantEntry, queueOf, runQueue, targetRef } from "../operations";
import { reportJson, reportText } from "./landing";

export const command: Command = {
  usage:
    "land run [--target <branch>] [--only <entry|branch>]… [--push] [--remote <name>] [--wait] [--parallel <n>]\n         [--as-branch <prefix>] [--clean] [--dry-run]",
  about:
    "Lands what is in the merge queue, in order: each branch is put onto the target, or onto those before it, without a\ncheckout, has to pass land.checks in a scratch worktree, and then the target moves. What conflicts or fails is put aside\nwith its output, and those behind it are built anew. Killed or interrupted, the next run goes on. A target that is\nchecked out moves with its files, if that worktree is clean and nobody else writes there. By those whom policy.land\nallows; one run per target at a time.",
  flags: {
    target: { value: "<branch>", completes: "ref", meaning: "where to land (else land.target, else main)" },
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
    const session = await workspace.session("write");
    const remote = parsed.text("remote");
    if (remote !== undefined && !parsed.has("push"))
      throw new CotenantError("E_USAGE", "--remote says where to push, but --push is missing", {
        hint: "add --push",
      });
    const target = await targetRef(workspace, parsed.text("target") ?? null);
    const named = await Promise.all(parsed.texts("only").map((word) => meantEntry(workspace, word, target)));
    const parts = await landParts(workspace, session);
    const report = await interruptibly(context, true, async (signal) => {
      const done = await runQueue(parts, {
        target,
        ...(named.length === 0 ? {} : { only: named.map(({ entryId }) => entryId) }),
        push: parsed.has("push") ? (remote ?? null) : undefined,
        wait: parsed.has("wait"),
        parallel: parallelOf(parsed.whole("parallel")),
        asBranch: parsed.text("as-branch") ?? null,
        clean: parsed.has("clean") ? true : null,
        dryRun: parsed.has("dry-run"),
        ...(signal === undefined ? {} : { signal }),
        onProgress: ({ text }) => {
          if (!context.quiet) context.note(printable(text, 500));
        },
      });
      refuseStopped(context, done);
      return done;
    });
    if (context.quiet) return { data: reportJson(report), text: "" };
    const text = [
      reportText(report),
      ...(report.entries.length === 0 ? await elsewhere(workspace, target) : []),
    ];
    return { data: reportJson(report), text: text.join("\n") };
  },
};

/** Nothing waited here: a branch that somebody misses was put aside, or waits for another target. */
async function elsewhere(workspace: Workspace, here: string): Promise<string[]> {
  const queue = await queueOf(workspace);
  const aside = queue.filter(({ state, target }) => state === "parked" && target === here).length;
  const waiting = queue.filter(({ state }) => state === "queued");
  const targets = [...new Set(waiting.map(({ target }) => target))];
  const lines = targets.map((target) => {
    const n = count(waiting.filter((entry) => entry.target === target).length, "branch", "branches");
    return `  ${n} for ${printable(branchName(target), 200)}: cotenant land run --target ${shellWord(branchName(target))}`;
  });
  if (aside === 0) return lines;
  const were = aside === 1 ? "1 branch was" : `${aside} branches were`;
  return [`  ${were} put aside: cotenant land list`, ...lines];
}

function parallelOf(given: number | undefined): number | null {
  if (given === undefined) return null;
  if (given >= 1 && given <= 8) return given;
  throw new CotenantError("E_USAGE", `--parallel takes 1 to 8, not ${given}`, {
    hint: "for example --parallel 2",
  });
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
