import type { Workspace } from "../../coordinator/workspace";
import { CommitReader } from "../../git/commits";
import type { ObjectId } from "../../git/object-name";
import { printable } from "../../kernel/ids";
import type { Commands } from "../../platform/commands";
import { overwriteFile } from "../../platform/overwrite-file";
import { modesFor } from "../../store/layout";
import { branchName } from "../publish/branch-rules";
import { type CheckOutcome, howItEnded, runChecks } from "../publish/checks";
import { entriesOf, type LandEntry } from "./entry";
import { addingAgain, retrying } from "./outcomes";
import type { ScratchRoom } from "./scratch";
import type { Rejection, Verdict } from "./speculation";

/** What of its output goes with an entry; the file has more. */
const TOLD_OUTPUT = 4_096;
const KEPT_OUTPUT = 1 << 20;

export interface Checking {
  readonly workspace: Workspace;
  readonly commands: Commands;
  readonly room: ScratchRoom;
  readonly usualTarget: string;
  readonly signal: AbortSignal;
  readonly onStart: (line: string) => void;
}

/** Issues, their comments and the results of their gates: nothing of it is built or run. */
const ISSUE_DATA = /^\.cotenant\/(?:issues|gates\/results|events)\//;

/** Whether an entry changes only such files: then its checks would say of the code what they have said before. */
async function changesOnlyIssues(
  { surroundings, repository }: Workspace,
  at: { readonly base: ObjectId; readonly commit: ObjectId },
): Promise<boolean> {
  const reader = new CommitReader(surroundings.git, { cwd: repository.worktreeRoot });
  return (await reader.difference(at.base, at.commit)).every(({ path }) => ISSUE_DATA.test(path));
}

/** Runs `land.checks` on what an entry came to, in a scratch worktree. */
export async function checked(
  { workspace, commands, room, usualTarget, signal, onStart }: Checking,
  entry: LandEntry,
  at: { readonly base: ObjectId; readonly commit: ObjectId },
): Promise<Verdict> {
  const { values } = workspace.config;
  if (await changesOnlyIssues(workspace, at)) return { kind: "passed" };
  const scratch = await room.with(at.commit);
  try {
    if (signal.aborted) return { kind: "pending" };
    const outcomes = await runChecks(commands, {
      lines: values["land.checks"],
      cwd: scratch.root,
      timeoutMs: values["land.check_timeout_secs"] * 1000,
      env: {
        COTENANT_LANDING_ENTRY: entry.entryId,
        COTENANT_LANDING_BRANCH: branchName(entry.branch),
        COTENANT_LANDING_TARGET: branchName(entry.target),
        COTENANT_LANDING_BASE: at.base,
        COTENANT_LANDING_COMMIT: at.commit,
        // What proves the lander's leases is none of the checks' business.
        COTENANT_SECRET: undefined,
      },
      onStart,
      signal,
      inherit: [scratch.lock],
      keepBytes: KEPT_OUTPUT,
    });
    if (signal.aborted) return { kind: "pending" };
    const failed = outcomes.find(({ passed }) => !passed);
    if (failed === undefined) return { kind: "passed" };
    return {
      kind: "rejected",
      rejection: await rejection(workspace, entry, usualTarget, { failed, outcomes }),
    };
  } finally {
    await room.giveBack(scratch);
  }
}

async function rejection(
  workspace: Workspace,
  entry: LandEntry,
  usualTarget: string,
  { failed, outcomes }: { readonly failed: CheckOutcome; readonly outcomes: readonly CheckOutcome[] },
): Promise<Rejection> {
  const told = plain(failed.output).trimEnd();
  return {
    why: "checks",
    message: `${printable(failed.command, 200)} ${howItEnded(failed)}`,
    hint: `mend the branch and add it again: ${addingAgain(entry, { usualTarget })}; if it was not at fault: ${retrying(entry, { usualTarget })}`,
    paths: [],
    output: told.slice(-TOLD_OUTPUT),
    outputFile: await keepOutput(workspace, entry, outcomes),
  };
}

/** Where people find all of it, as far as it was kept. What cannot be written is not worth failing for. */
async function keepOutput(
  { surroundings, repository, store }: Workspace,
  { entryId }: LandEntry,
  outcomes: readonly CheckOutcome[],
): Promise<string | null> {
  const { files } = surroundings.platform;
  const modes = modesFor(repository.config.sharedRepository);
  const directory = `${store.layout.root}/land`;
  const path = `${directory}/${entryId.toLowerCase()}.log`;
  const text = outcomes.map((one) => `$ ${one.command}\n${one.output}\n# ${howItEnded(one)}\n`).join("");
  try {
    await files.makeDirectory(directory, modes.directory);
    await overwriteFile(files, path, text, modes.file);
    return path;
  } catch {
    return null;
  }
}

/** Output of entries that have left the queue. Nothing depends on it. */
export async function clearOutputs({ surroundings, store, coordinator }: Workspace): Promise<void> {
  const { files } = surroundings.platform;
  const directory = `${store.layout.root}/land`;
  const names = ((await files.readDirectory(directory)) ?? []).filter((name) => name.endsWith(".log"));
  if (names.length === 0) return;
  const aside = (await entriesOf(coordinator)).filter(({ state }) => state === "parked");
  const wanted = new Set(aside.map(({ entryId }) => `${entryId.toLowerCase()}.log`));
  for (const name of names) if (!wanted.has(name)) await files.unlink(`${directory}/${name}`);
}

/** Lines stay lines; what would move a terminal's cursor, or colour it, goes. */
function plain(text: string): string {
  return text
    .replaceAll(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, "")
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => printable(line.replaceAll("\t", "  "), 2_000))
    .join("\n");
}
