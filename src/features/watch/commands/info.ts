import type { Command, Output } from "../../../cli/grammar/command";
import { version } from "../../../cli/grammar/version";
import { jsonFields } from "../../../cli/terminal/render";
import type { Workspace } from "../../../coordinator/workspace";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { SCHEMA_VERSION } from "../../../store/schema";
import { bytesText, noteText, snapshotJson, warningWords } from "../../snapshots/commands/output";
import { warningsOf } from "../../snapshots/descriptor";
import { snapshotMeant } from "../../snapshots/descriptor-store";
import { accessJson, accessText } from "../../worktrees/access";
import { type Info, info, type SnapshotsInfo, type StoreInfo } from "../operations/info";

export const command: Command = {
  positional: "[<snapshot>]",
  about:
    "Shows where everything is and who you are: repository, worktree, control and data plane, agent, session and where\nthey came from, configuration files, the store's size, the last snapshot, versions. With a snapshot's id or tag: that snapshot.\nWrites nothing, and needs nobody's name.",
  flags: {},
  examples: ["cotenant info", "cotenant info --json"],
  words: { min: 0, max: 1 },
  async run(context, parsed) {
    if (parsed.words[0] !== undefined) return snapshotInfo(await context.workspace(), parsed.words[0]);
    const flags = { agentId: parsed.text("agent-id"), session: parsed.text("session") };
    const found = await info(context.surroundings(), flags);
    return { data: infoJson(found), text: infoText(found) };
  },
};

function infoJson(found: Info) {
  const { repository, worktree, agent, store, snapshots } = found;
  return {
    repository: jsonFields(repository, "gitDir", "commonDir", "mainWorktreeRoot"),
    worktree:
      worktree === null
        ? null
        : {
            worktree_id: worktree.identity.worktreeId,
            root: repository.worktreeRoot,
            branch: worktree.branch,
            is_main: repository.isMainWorktree,
            standing: worktree.standing,
          },
    control_directory: repository.controlDir,
    data_directory: found.dataDirectory,
    agent: agent === null ? null : jsonFields(agent, "agentId", "agentFrom", "sessionId", "sessionFrom"),
    ...jsonFields(found, "harness", "configFiles"),
    store:
      store === null
        ? null
        : jsonFields(store, "logBytes", "segments", "leases", "waiters", "sequence", "nextToken", "damaged"),
    versions: versionsOf(found),
    file_system: found.fileSystem,
    snapshots: snapshots === null ? null : snapshotsJson(snapshots),
    problems: found.problems,
  };
}

function versionsOf({ gitVersion }: Info) {
  return { cotenant: version(), node: process.versions.node, git: gitVersion, schema: SCHEMA_VERSION };
}

function snapshotsJson({ own, all, access }: SnapshotsInfo) {
  const latest = own.at(-1);
  return {
    count: own.length,
    latest: latest === undefined ? null : snapshotJson(latest, all),
    warning: own.some((descriptor) => warningsOf(descriptor).length > 0),
    ...accessJson(access),
  };
}

type Row = readonly [name: string, value: string];

function rowsText(rows: readonly Row[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

function infoText(found: Info): string {
  const { repository, worktree, agent, store, fileSystem: files } = found;
  const versions = versionsOf(found);
  const rows: Row[] = [
    ["repository", repository.commonDir],
    [
      "worktree",
      worktree === null
        ? "?"
        : `${repository.worktreeRoot} (${worktree.identity.worktreeId}${stored(worktree.standing)})`,
    ],
    ["branch", worktree === null ? "?" : (worktree.branch ?? "(detached)")],
    ["control", `${repository.controlDir}${store === null ? " (nothing there yet, or not readable)" : ""}`],
    ["data", found.dataDirectory],
    ["agent", agent === null ? "nobody yet" : `${agent.agentId} (from ${agent.agentFrom})`],
    ["session", agent === null ? "-" : `${agent.sessionId} (from ${agent.sessionFrom})`],
    ["harness", found.harness ?? "none"],
    ...found.configFiles
      .filter(({ exists }) => exists)
      .map(({ file, source }): Row => ["config", `${file} (${source})`]),
    ...(store === null ? [] : storeRows(store)),
    ["files", files === null ? "?" : `${files.name ?? "unknown"} (${files.network ? "not local" : "local"})`],
    [
      "versions",
      `cotenant ${versions.cotenant}, Node ${versions.node}, Git ${versions.git ?? "missing"}, schema ${versions.schema}`,
    ],
    ...(found.snapshots === null ? [] : snapshotRows(found.snapshots)),
    ...found.problems.map((problem): Row => ["problem", problem]),
  ];
  return rowsText(rows.map(([name, value]): Row => [name, printable(value, 1_000)]));
}

function stored(standing: string): string {
  return standing === "stored" ? "" : standing === "new" ? ", not stored yet" : `, ${standing}`;
}

function storeRows(store: StoreInfo): Row[] {
  const { leases, waiters, logBytes, segments, sequence, nextToken, damaged } = store;
  return [
    ["leases", `${count(leases, "lease")} in force, ${count(waiters, "waiter")}, next token ${nextToken}`],
    [
      "log",
      `${count(sequence, "line")}, ${logBytes} bytes in ${count(segments, "segment")}${damaged ? ", damaged" : ""}`,
    ],
  ];
}

function snapshotRows(snapshots: SnapshotsInfo): Row[] {
  const { count: n, latest, warning } = snapshotsJson(snapshots);
  const last =
    latest === null ? "" : `, the last ${String(latest["short_id"])} of ${String(latest["created_at"])}`;
  return [
    ["access", accessText(snapshots.access)],
    ["snapshots", `${n}${last}${warning ? " (! some have warnings: cotenant history)" : ""}`],
  ];
}

/** One snapshot, whole. */
async function snapshotInfo(workspace: Workspace, word: string): Promise<Output> {
  const { descriptor, all } = await snapshotMeant(workspace, word);
  const snapshot = snapshotJson(descriptor, all);
  const rows: Row[] = [
    ["snapshot", `${descriptor.snapshot_id} (${String(snapshot["short_id"])})`],
    ["worktree", `${descriptor.worktree_id}, ${printable(descriptor.root, 500)}`],
    ["taken", `${descriptor.created_at} by ${descriptor.agent_id}`],
    ["after", descriptor.parent ?? "nothing"],
    [
      "commit",
      `${descriptor.head ?? "none yet"}${descriptor.branch === null ? "" : ` (${printable(descriptor.branch)})`}`,
    ],
    [
      "holds",
      `${count(descriptor.files, "file")}, ${bytesText(descriptor.bytes)}${descriptor.includes_ignored ? ", ignored ones too" : ""}`,
    ],
    [
      "level",
      `${descriptor.consistency_level}${descriptor.fencing_token === null ? "" : `, token ${descriptor.fencing_token}`}`,
    ],
    ["digest", descriptor.digest],
    ["note", noteText(descriptor) || "-"],
    ...warningWords(descriptor).map((words): Row => ["!", words]),
    ...descriptor.by_commit.map(
      ({ path, commit }): Row => ["by commit", `${printable(path, 500)} ${commit}`],
    ),
    ...descriptor.left_out.map(({ path, why }): Row => ["left out", `${printable(path, 500)}: ${why}`]),
  ];
  return { data: { snapshot }, text: rowsText(rows) };
}
