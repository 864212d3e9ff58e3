import type { Command, Context, Output, Parsed } from "../../../cli/grammar/command";
import { CotenantError } from "../../../errors/cotenant-error";
import { fromByteText } from "../../../git/byte-text";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { HOLDER_FLAGS, proof } from "../../locks/commands/holding";
import { accessOf, refuseShared } from "../../worktrees/access";
import { refuseBranch, refusePlace } from "../../worktrees/creating";
import { settleMakings } from "../../worktrees/making";
import { checkBranch, defaultPlace, normal } from "../../worktrees/naming";
import type { Descriptor } from "../descriptor";
import { type Preview, previewInPlace, restoreInPlace } from "../inplace";
import { isNothing, type Replacement } from "../replacing";
import { restoreAnew } from "../restoring";
import { refuseWrongSecret } from "../taking";
import { darkroom, readingRoom, snapshotJson, snapshotMeant, warningWords } from "./snapshots";

export const command: Command = {
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
    const wrong = parsed.has("inplace")
      ? ["path", "branch"].find((flag) => parsed.text(flag) !== undefined)
      : ["run", "fencing-token", "secret-file"].find((flag) => parsed.text(flag) !== undefined);
    if (wrong !== undefined)
      throw new CotenantError(
        "E_USAGE",
        `--${wrong} goes ${parsed.has("inplace") ? "without" : "with"} --inplace`,
        { hint: "see 'cotenant restore --help'" },
      );
    const { descriptor, all } = await snapshotMeant(workspace, parsed.words[0]!);
    return parsed.has("inplace")
      ? inPlace(context, parsed, descriptor, all)
      : anew(context, parsed, descriptor, all);
  },
};

async function anew(
  context: Context,
  parsed: Parsed,
  descriptor: Descriptor,
  all: readonly Descriptor[],
): Promise<Output> {
  const workspace = await context.workspace();
  const { repository, config, surroundings } = workspace;
  const snapshot = snapshotJson(descriptor, all);
  const branch = parsed.text("branch");
  if (branch !== undefined) checkBranch(branch);
  const room = await darkroom(workspace);
  const path = parsed.text("path");
  const mainRoot = repository.mainWorktreeRoot ?? repository.worktreeRoot;
  const place =
    path === undefined
      ? defaultPlace(
          mainRoot,
          config.values["worktree.directory"],
          branch ?? `restored-${snapshot["short_id"]}`,
        )
      : normal(path.startsWith("/") ? path : `${surroundings.cwd}/${path}`);
  await settleMakings(room);
  await refusePlace(room, place);
  if (branch !== undefined)
    await refuseBranch(
      room,
      branch,
      "--branch makes a new one, and moves none: name another, or leave it out",
    );
  const restored = await restoreAnew(room, descriptor, { place, branch: branch ?? null });
  const lines = [
    `restored ${snapshot["short_id"]} to ${printable(restored.root, 500)}: ${count(restored.files, "file")}, checked`,
    ...warningWords(descriptor).map((words) => `  note: ${words}`),
  ];
  return {
    data: {
      snapshot,
      worktree: { worktree_id: restored.worktreeId, root: restored.root, branch: branch ?? null },
      inplace: false,
    },
    text: context.quiet ? restored.root : lines.join("\n"),
  };
}

async function inPlace(
  context: Context,
  parsed: Parsed,
  descriptor: Descriptor,
  all: readonly Descriptor[],
): Promise<Output> {
  const workspace = await context.workspace();
  const { worktreeId } = (await workspace.worktree("read")).identity;
  const access = await accessOf(workspace.coordinator, worktreeId);
  refuseShared(access, worktreeId, "others may be writing, so nothing is restored in place");
  const snapshot = snapshotJson(descriptor, all);
  const planId = parsed.text("run");
  const { secret = null } = await proof(workspace, parsed);
  if (planId === undefined) {
    await refuseWrongSecret(await workspace.session("read"), secret);
    const preview = await previewInPlace(readingRoom(workspace), descriptor);
    return previewOutput(snapshot, preview);
  }
  const room = await darkroom(workspace);
  const { before, plan } = await restoreInPlace(room, descriptor, {
    planId,
    secret,
    fencingToken: parsed.whole("fencing-token") ?? null,
  });
  const kept = before === null ? null : before.snapshot_id;
  return {
    data: { snapshot, inplace: true, ran: true, plan_id: planId, before: kept, changes: planJson(plan) },
    text: context.quiet
      ? ""
      : [
          `restored ${snapshot["short_id"]} in place: ${planText(plan)}`,
          ...(kept === null ? [] : [`  what was there before is snapshot ${kept}`]),
        ].join("\n"),
  };
}

function previewOutput(snapshot: Record<string, unknown>, { plan, planId }: Preview): Output {
  const lines = [
    ...plan.write.map(({ path }) => `  write   ${shown(path)}`),
    ...plan.chmod.map(({ path, mode }) => `  mode    ${shown(path)} (${mode.toString(8)})`),
    ...plan.remove.map((path) => `  remove  ${shown(path)}`),
    ...plan.makeDirectories.map(([path]) => `  make    ${shown(path)}/`),
    ...plan.removeDirectories.map((path) => `  remove  ${shown(path)}/`),
    ...plan.untouched.map((path) => `  leave   ${shown(path)}/ (a repository of its own)`),
  ];
  return {
    data: {
      ...{ snapshot, inplace: true, ran: false, plan_id: planId, before: null },
      changes: planJson(plan),
    },
    text: isNothing(plan)
      ? "nothing would change"
      : [
          ...lines,
          `${planText(plan)}; to do it: cotenant restore ${snapshot["short_id"]} --inplace --run ${planId}`,
        ].join("\n"),
  };
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

function shown(path: string): string {
  return printable(fromByteText(path), 1_000);
}
