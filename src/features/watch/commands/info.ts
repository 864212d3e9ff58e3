import type { Command, Output } from "../../../cli/grammar/command";
import { version } from "../../../cli/grammar/version";
import { count } from "../../../cli/terminal/render";
import { configFiles, userConfigDirectory } from "../../../config/load";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { type AgentIdentity, resolveAgent } from "../../../identity/agent";
import { currentBranch } from "../../../identity/branch";
import { detectHarness } from "../../../identity/harness";
import { readWorktreeIdentity } from "../../../identity/worktree";
import { printable } from "../../../kernel/ids";
import { parseGitVersion } from "../../../platform/git";
import { SCHEMA_VERSION } from "../../../store/schema";
import { archivedSegments } from "../../../store/segments";
import { fileSystemOf } from "../../doctor/file-system";
import { examine, type Patient } from "../../doctor/patient";
import { presenceOf } from "../../doctor/tree";
import { bytesText, noteText, snapshotJson, warningWords } from "../../snapshots/commands/output";
import { warningsOf } from "../../snapshots/descriptor";
import { DescriptorStore, snapshotMeant } from "../../snapshots/descriptor-store";
import { accessJson, accessOf, accessText } from "../../worktrees/access";

export const command: Command = {
  usage: "info [<snapshot>]",
  about:
    "Shows where everything is and who you are: repository, worktree, control and data plane, agent, session and where\nthey came from, configuration files, the store's size, the last snapshot, versions. With a snapshot's id or tag: that snapshot.\nWrites nothing, and needs nobody's name.",
  flags: {},
  examples: ["cotenant info", "cotenant info --json"],
  words: { min: 0, max: 1 },
  async run(context, parsed) {
    if (parsed.words[0] !== undefined) return snapshotInfo(await context.workspace(), parsed.words[0]);
    const machine = context.surroundings();
    const patient = await examine(machine);
    const problems: string[] = [];
    const orNull = async <T>(act: () => Promise<T>): Promise<T | null> => {
      try {
        return await act();
      } catch (error) {
        problems.push(error instanceof CotenantError ? error.message : "something cannot be read");
        return null;
      }
    };
    const { repository } = patient;
    const flags = { agentId: parsed.text("agent-id"), session: parsed.text("session") };
    const agent = await orNull(() => resolveAgent({ ...machine, controlDir: repository.controlDir, flags }));
    const data = {
      repository: {
        git_dir: repository.gitDir,
        common_dir: repository.commonDir,
        main_worktree_root: repository.mainWorktreeRoot,
      },
      worktree: await orNull(() => worktreeOf(patient)),
      control_directory: repository.controlDir,
      data_directory: patient.dataDirectory,
      agent: agent === null ? null : agentJson(agent),
      harness: detectHarness(machine.env)?.name ?? null,
      config_files: await filesOf(patient),
      store: patient.hasStore ? await orNull(() => storeOf(patient)) : null,
      versions: {
        cotenant: version(),
        node: process.versions.node,
        git: await orNull(() => gitVersion(patient)),
        schema: SCHEMA_VERSION,
      },
      file_system: await orNull(() => fileSystem(patient)),
      snapshots: await orNull(() => snapshotsOf(patient)),
      problems,
    };
    return { data, text: textOf(data) };
  },
};

type Info = Readonly<Record<string, unknown>> & {
  readonly repository: { readonly common_dir: string };
  readonly worktree: Awaited<ReturnType<typeof worktreeOf>> | null;
  readonly agent: ReturnType<typeof agentJson> | null;
  readonly harness: string | null;
  readonly config_files: Awaited<ReturnType<typeof filesOf>>;
  readonly store: Awaited<ReturnType<typeof storeOf>> | null;
  readonly versions: { cotenant: string; node: string; git: string | null; schema: number };
  readonly file_system: { name: string | null; network: boolean } | null;
  readonly snapshots: Awaited<ReturnType<typeof snapshotsOf>> | null;
  readonly problems: readonly string[];
};

function textOf(info: Info): string {
  const { worktree, agent, store, versions, file_system: files } = info;
  const rows: [string, string][] = [
    ["repository", info.repository.common_dir],
    [
      "worktree",
      worktree === null ? "?" : `${worktree.root} (${worktree.worktree_id}${stored(worktree.standing)})`,
    ],
    ["branch", worktree === null ? "?" : (worktree.branch ?? "(detached)")],
    [
      "control",
      `${info["control_directory"]}${store === null ? " (nothing there yet, or not readable)" : ""}`,
    ],
    ["data", String(info["data_directory"])],
    ["agent", agent === null ? "nobody yet" : `${agent.agent_id} (from ${agent.agent_from})`],
    ["session", agent === null ? "-" : `${agent.session_id} (from ${agent.session_from})`],
    ["harness", info.harness ?? "none"],
    ...info.config_files
      .filter(({ exists }) => exists)
      .map(({ file, source }): [string, string] => ["config", `${file} (${source})`]),
    ...(store === null ? [] : storeRows(store)),
    ["files", files === null ? "?" : `${files.name ?? "unknown"} (${files.network ? "not local" : "local"})`],
    [
      "versions",
      `cotenant ${versions.cotenant}, Node ${versions.node}, Git ${versions.git ?? "missing"}, schema ${versions.schema}`,
    ],
    ...snapshotRows(info.snapshots),
    ...info.problems.map((problem): [string, string] => ["problem", problem]),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${printable(value, 1_000)}`).join("\n");
}

function stored(standing: string): string {
  return standing === "stored" ? "" : standing === "new" ? ", not stored yet" : `, ${standing}`;
}

function storeRows(store: Awaited<ReturnType<typeof storeOf>>): [string, string][] {
  const { leases, waiters, log_bytes: bytes, segments, sequence, next_token: token } = store;
  return [
    ["leases", `${count(leases, "lease")} in force, ${count(waiters, "waiter")}, next token ${token}`],
    [
      "log",
      `${count(sequence, "line")}, ${bytes} bytes in ${count(segments, "segment")}${store.damaged ? ", damaged" : ""}`,
    ],
  ];
}

async function worktreeOf({ platform, place, repository }: Patient) {
  const { identity, standing } = await readWorktreeIdentity(platform, place.git, repository);
  return {
    worktree_id: identity.worktreeId,
    root: repository.worktreeRoot,
    branch: await currentBranch(platform, place.git, repository.gitDir),
    is_main: repository.isMainWorktree,
    standing,
  };
}

function agentJson({ agentId, agentFrom, sessionId, sessionFrom }: AgentIdentity) {
  return { agent_id: agentId, agent_from: agentFrom, session_id: sessionId, session_from: sessionFrom };
}

async function filesOf({ question, platform }: Patient) {
  const user = userConfigDirectory(question);
  const listed: { source: string; file: string }[] = [
    ...configFiles(question),
    ...(user === null ? [] : [{ source: "agent", file: `${user}/agent.toml` }]),
  ];
  const files: { source: string; file: string; exists: boolean }[] = [];
  for (const entry of listed)
    files.push({ ...entry, exists: (await presenceOf(platform.files, entry.file)) === "there" });
  return files;
}

async function storeOf({ platform, layout, coordinator }: Patient) {
  const { files } = platform;
  const { head, damage } = await coordinator.snapshot();
  const leases = await coordinator.list();
  const archived = await archivedSegments(files, layout);
  let bytes = (await files.stat(layout.log))?.size ?? 0;
  for (const name of archived) bytes += (await files.stat(`${layout.archive}/${name}`))?.size ?? 0;
  return {
    log_bytes: bytes,
    segments: archived.length + (head.sequence === 0 ? 0 : 1),
    leases: leases.length,
    waiters: (await coordinator.waiters()).length,
    sequence: head.sequence,
    next_token: head.nextToken,
    damaged: damage !== null,
  };
}

async function fileSystem({ platform, repository }: Patient) {
  const { network, type } = await fileSystemOf(platform.files, repository.commonDir);
  return { name: network ?? type, network: network !== null };
}

async function gitVersion({ place, repository }: Patient): Promise<string | null> {
  const { stdout } = await place.git.run(["version"], { cwd: repository.worktreeRoot });
  return parseGitVersion(new TextDecoder().decode(stdout))?.text ?? null;
}

async function snapshotsOf({ platform, place, repository, modes, coordinator }: Patient) {
  const { worktreeId } = (await readWorktreeIdentity(platform, place.git, repository)).identity;
  const all = await new DescriptorStore(platform, repository.controlDir, modes).all();
  const own = all.filter(({ worktree_id: id }) => id === worktreeId);
  const latest = own.at(-1);
  return {
    count: own.length,
    latest: latest === undefined ? null : snapshotJson(latest, all),
    warning: own.some((descriptor) => warningsOf(descriptor).length > 0),
    ...accessJson(await accessOf(coordinator, worktreeId)),
  };
}

function snapshotRows(snapshots: Info["snapshots"]): [string, string][] {
  if (snapshots === null) return [];
  const { count: n, latest, warning, access } = snapshots;
  const last =
    latest === null ? "" : `, the last ${String(latest["short_id"])} of ${String(latest["created_at"])}`;
  return [
    ["access", accessText(access)],
    ["snapshots", `${n}${last}${warning ? " (! some have warnings: cotenant history)" : ""}`],
  ];
}

/** One snapshot, whole. */
async function snapshotInfo(workspace: Workspace, word: string): Promise<Output> {
  const { descriptor, all } = await snapshotMeant(workspace, word);
  const snapshot = snapshotJson(descriptor, all);
  const rows: [string, string][] = [
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
    ...warningWords(descriptor).map((words): [string, string] => ["!", words]),
    ...descriptor.by_commit.map(({ path, commit }): [string, string] => [
      "by commit",
      `${printable(path, 500)} ${commit}`,
    ]),
    ...descriptor.left_out.map(({ path, why }): [string, string] => [
      "left out",
      `${printable(path, 500)}: ${why}`,
    ]),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return {
    data: { snapshot },
    text: rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n"),
  };
}
