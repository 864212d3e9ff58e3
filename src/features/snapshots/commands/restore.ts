import type { Command, Context, Output } from "../../../cli/grammar/command";
import { fromByteText } from "../../../git/byte-text";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { HOLDER_FLAGS, holderFrom } from "../../locks/commands/flags";
import { type Restoration, restore as restoreSnapshot } from "../operations";
import { isNothing, type Replacement } from "../replacement";
import { noteLines, shownPath, snapshotJson } from "./output";

export const restore: Command = {
  usage:
    "restore <snapshot> [--path <directory>] [--branch <name>] | restore <snapshot> --inplace [--run <plan>]",
  about:
    "Brings a snapshot back as a new worktree: equal file by file, with its commit and its index. Needs no lock, and\ntouches nothing that is there. With --inplace it changes this worktree's files instead: first shows what it would\ndo, then does it when run again with the plan's id, if nothing has changed since; needs the writer lock, and keeps\nwhat it replaces as a snapshot. HEAD, index and .cotenant/ stay as they are then.",
  flags: {
    ...HOLDER_FLAGS,
    path: {
      value: "<directory>",
      completes: "directory",
      meaning: "where the new worktree goes (default: beside the main one)",
    },
    branch: { value: "<name>", meaning: "a new branch for it (default: none; HEAD is detached)" },
    inplace: { meaning: "change the files of this worktree" },
    run: { value: "<plan>", meaning: "with --inplace: do it; the id that the preview showed" },
    "fencing-token": { value: "<n>", meaning: "fail unless this is the writer lock's token now" },
  },
  examples: ["cotenant restore latest", "cotenant restore latest --inplace"],
  words: { min: 1, max: 1 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const restored = await restoreSnapshot(workspace, {
      ...holderFrom(parsed, workspace),
      snapshot: parsed.words[0]!,
      path: parsed.text("path"),
      branch: parsed.text("branch"),
      inplace: parsed.has("inplace"),
      run: parsed.text("run"),
      fencingToken: parsed.whole("fencing-token"),
    });
    return restoredOutput(context, restored, parsed.text("run"));
  },
};

function restoredOutput({ quiet }: Context, restored: Restoration, planId: string | undefined): Output {
  const { descriptor, all } = restored;
  const snapshot = snapshotJson(descriptor, all);
  const id = snapshot["short_id"];
  if (restored.how === "anew") {
    const { worktreeId, root, branch, files } = restored.worktree;
    const done = `restored ${id} to ${printable(root, 500)}: ${count(files, "file")}, checked`;
    return {
      data: { snapshot, worktree: { worktree_id: worktreeId, root, branch }, inplace: false },
      text: quiet ? root : [done, ...noteLines(descriptor)].join("\n"),
    };
  }
  const isDone = restored.how === "inplace";
  const { plan } = isDone ? restored : restored.preview;
  const before = isDone ? (restored.before?.snapshot_id ?? null) : null;
  const plan_id = isDone ? planId : restored.preview.planId;
  const lines = isDone
    ? [
        `restored ${id} in place: ${planText(plan)}`,
        ...(before === null ? [] : [`  what was there before is snapshot ${before}`]),
      ]
    : previewLines(plan, `cotenant restore ${id} --inplace --run ${plan_id}`);
  return {
    data: { snapshot, inplace: true, ran: isDone, plan_id, before, changes: planJson(plan) },
    text: quiet && isDone ? "" : lines.join("\n"),
  };
}

function previewLines(plan: Replacement, next: string): string[] {
  if (isNothing(plan)) return ["nothing would change"];
  return [
    ...plan.write.map(({ path }) => `  write   ${shownPath(path)}`),
    ...plan.chmod.map(({ path, mode }) => `  mode    ${shownPath(path)} (${mode.toString(8)})`),
    ...plan.remove.map((path) => `  remove  ${shownPath(path)}`),
    ...plan.makeDirectories.map(([path]) => `  make    ${shownPath(path)}/`),
    ...plan.removeDirectories.map((path) => `  remove  ${shownPath(path)}/`),
    ...plan.untouched.map((path) => `  leave   ${shownPath(path)}/ (a repository of its own)`),
    `${planText(plan)}; to do it: ${next}`,
  ];
}

function planText(plan: Replacement): string {
  const modes = plan.chmod.length + plan.chmodDirectories.length;
  return [
    `${count(plan.write.length, "file")} written`,
    `${plan.remove.length} removed`,
    ...(modes === 0 ? [] : [`${modes} with other permissions`]),
  ].join(", ");
}

function planJson(plan: Replacement): Record<string, unknown> {
  const names = (paths: readonly string[]) => paths.map(fromByteText);
  return {
    write: names(plan.write.map(({ path }) => path)),
    mode: names([...plan.chmod.map(({ path }) => path), ...plan.chmodDirectories.map(([path]) => path)]),
    remove: names(plan.remove),
    make_directories: names(plan.makeDirectories.map(([path]) => path)),
    remove_directories: names(plan.removeDirectories),
    untouched: names(plan.untouched),
  };
}
