import type { Command } from "../../../cli/grammar/command";
import { endOfFlags } from "../../../cli/grammar/parse";
import { paint } from "../../../cli/terminal/render";
import { parseAge } from "../../../coordinator/since";
import { fromByteText } from "../../../git/byte-text";
import { count } from "../../../kernel/printing";
import { HOLDER_FLAGS, holderFrom } from "../../locks/commands/flags";
import type { Compared } from "../comparison";
import { CONSISTENCY_LEVELS } from "../descriptor";
import { drawGraph } from "../graph";
import { type Pruning, history as snapshotHistory, snapshot as snapshots } from "../operations";
import { bytesText, noteLines, noteText, shownPath, snapshotJson, warningWords } from "./output";

export const snapshot: Command = {
  about:
    "Keeps this worktree as it is: every file that Git tracks or would add, with --ignored the rest too, with\npermissions, links and empty directories, the index and the commit. It goes to Git's objects under\nrefs/cotenant/snapshots/; your branches, index and stash are not touched. Takes a free writer lock meanwhile.\n'cotenant history' shows the snapshots that there are, 'cotenant restore' brings one back.",
  flags: {
    ...HOLDER_FLAGS,
    message: { value: "<text>", meaning: "what it is, for whoever looks (also -m)" },
    tag: { value: "<name>", many: true, meaning: "a name to find it by; tagged ones are never cleared away" },
    consistency: {
      value: "<level>",
      choices: CONSISTENCY_LEVELS,
      meaning: "quiesced: fails if anything changes meanwhile (default); best_effort: says so instead",
    },
    ignored: { meaning: "also what Git ignores (else as snapshot.ignored says)" },
    "fencing-token": { value: "<n>", meaning: "fail unless this is the writer lock's token now" },
  },
  examples: ["cotenant snapshot", 'cotenant snapshot -m "before the rewrite" --tag before-rewrite'],
  words: { min: 0, max: 0 },
  prepare: (args) => {
    const end = endOfFlags(args);
    return args.map((arg, i) => (arg === "-m" && i < end ? "--message" : arg));
  },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const { descriptor, all, captured, replayed } = await snapshots(workspace, {
      ...holderFrom(parsed, workspace),
      message: parsed.text("message"),
      tags: parsed.texts("tag"),
      consistency: parsed.text("consistency"),
      ignored: parsed.has("ignored") || undefined,
      fencingToken: parsed.whole("fencing-token"),
    });
    const shown = snapshotJson(descriptor, all);
    const { files, bytes } = descriptor;
    const read = captured === null ? "" : `, ${captured.read} read`;
    const lines = [
      `${replayed ? "already taken" : "snapshot"} ${shown["short_id"]}: ${count(files, "file")}, ${bytesText(bytes)}${read}`,
      ...noteLines(descriptor),
      `  restore: cotenant restore ${shown["short_id"]}`,
    ];
    return {
      data: { snapshot: shown, replayed },
      text: context.quiet ? descriptor.snapshot_id : lines.join("\n"),
    };
  },
};

const MARKS = { added: "A", removed: "D", changed: "M", mode: "m" } as const;

export const diff: Command = {
  positional: "<snapshot> [<snapshot>]",
  about:
    "Shows which files differ between two snapshots, or between one and this worktree as it is now. A: added, D: removed,\nM: changed, m: only its permissions. --patch shows the changes themselves, between two. Writes nothing.",
  flags: { patch: { meaning: "the changes line by line, as 'git diff' has them; of two snapshots only" } },
  examples: ["cotenant snapshot diff latest"],
  words: { min: 1, max: 2 },
  async run(context, parsed) {
    const [from, to] = parsed.words as [string, string | undefined];
    const request = { from, to, patch: parsed.has("patch") };
    const { before, after, all, files, patch } = await snapshots.diff(await context.workspace(), request);
    const lines = files.map(({ path, difference }) => `${MARKS[difference]}  ${shownPath(path)}`);
    return {
      data: {
        before: snapshotJson(before, all),
        after: after === null ? null : snapshotJson(after, all),
        files: files.map(comparedJson),
        ...(patch === null ? {} : { patch }),
      },
      text:
        patch !== null
          ? patch.replace(/[^\P{C}\n\t]/gu, "\u{fffd}")
          : lines.length === 0
            ? "nothing differs"
            : [...lines, count(lines.length, "file")].join("\n"),
    };
  },
};

function comparedJson({ path, difference, before, after }: Compared): Record<string, unknown> {
  const mode = (of: Compared["before"]) =>
    of?.kind === "file" ? of.mode.toString(8).padStart(4, "0") : null;
  const shown = (of: Compared["before"]) =>
    of === null ? null : { kind: of.kind, oid: of.oid, mode: mode(of) };
  return { path: fromByteText(path), difference, before: shown(before), after: shown(after) };
}

export const prune: Command = {
  positional: "[<snapshot>…]",
  about:
    "Shows which snapshots would go, and removes them when it is run again with the plan's id: nothing goes that was not\nshown. Without more: automatic ones beyond snapshot.keep_automatic. Tagged ones, the last of each worktree and what\nwas kept of removed worktrees go only by name.",
  flags: {
    "older-than": { value: "<age>", meaning: "those older than this: 30d, 12h" },
    manual: { meaning: "with --older-than: also those that somebody took" },
    keep: { value: "<n>", meaning: "how many automatic ones of a worktree stay" },
    all: { meaning: "of every worktree, not only of this one" },
    run: { value: "<plan>", meaning: "do it: the id that the preview showed" },
  },
  examples: ["cotenant snapshot prune", "cotenant snapshot prune --older-than 30d --all"],
  words: { min: 0, max: 100 },
  async run(context, parsed) {
    const age = parsed.text("older-than");
    const pruning = await snapshots.prune(await context.workspace(), {
      snapshots: parsed.words,
      olderThanMs: age === undefined ? undefined : parseAge(age, "--older-than"),
      manual: parsed.has("manual"),
      keep: parsed.whole("keep"),
      all: parsed.has("all"),
      run: parsed.text("run"),
    });
    const { doomed, all, planId, removed } = pruning;
    return {
      data: {
        snapshots: doomed.map(({ descriptor, why }) => ({ ...snapshotJson(descriptor, all), why })),
        plan_id: planId,
        removed,
      },
      text: context.quiet && removed ? "" : pruningText(pruning),
    };
  },
};

function pruningText({ doomed, planId, removed }: Pruning): string {
  if (doomed.length === 0) return "nothing to take away";
  const lines = doomed.map(
    ({ descriptor, why }) =>
      `${descriptor.snapshot_id}  ${descriptor.created_at}  ${descriptor.worktree_id}  (${why})  ${noteText(descriptor)}`,
  );
  const end = removed
    ? `removed ${count(doomed.length, "snapshot")}`
    : `${count(doomed.length, "snapshot")} would go; to do it, the same again with --run ${planId}`;
  return [...lines, end].join("\n");
}

export const history: Command = {
  about:
    "Shows the snapshots of this worktree, newest first, and what came after what. A ! marks those that are best effort\nor hold repositories by their commit alone. Writes nothing, and takes no lock.",
  flags: {
    all: { meaning: "those of every worktree, also of removed ones" },
    worktree: {
      value: "<worktree>",
      completes: "worktree",
      meaning: "those of this one: id, branch or directory",
    },
    tag: { value: "<name>", meaning: "only those with this tag" },
    limit: { value: "<n>", meaning: "at most so many" },
  },
  examples: ["cotenant history", "cotenant history --all --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const isOfAll = parsed.has("all");
    const { snapshots, all } = await snapshotHistory(await context.workspace(), {
      all: isOfAll,
      worktree: parsed.text("worktree"),
      tag: parsed.text("tag"),
      limit: parsed.whole("limit"),
    });
    const { terminal } = context;
    const rows = drawGraph(snapshots).map(({ descriptor, lanes }) => {
      const { short_id: id, warning } = snapshotJson(descriptor, all);
      const at = descriptor.created_at.replace("T", " ").replace(/\.\d+Z$/, "Z");
      const where = isOfAll ? `  ${descriptor.worktree_id}` : "";
      const mark = warning === true ? paint(terminal, "yellow", "!") : " ";
      const line = `${lanes} ${mark} ${paint(terminal, "bold", String(id))}  ${at}  ${descriptor.agent_id}${where}  ${noteText(descriptor)}`;
      return [
        line.trimEnd(),
        ...warningWords(descriptor).map((words) => paint(terminal, "dim", `      ${words}`)),
      ];
    });
    return {
      data: { snapshots: snapshots.map((descriptor) => snapshotJson(descriptor, all)) },
      text: rows.length === 0 ? "no snapshots" : rows.flat().join("\n"),
    };
  },
};
