/** Preparing a repository and undoing it, its settings, and what of them this clone trusts. */
import { sharesClaims } from "../../config/shared-claims";
import { refuseRuledFiles } from "../../coordinator/path-rules";
import { Workspace } from "../../coordinator/workspace";
import { CotenantError, choiceOf, errorFrom, fileFailure, policyError } from "../../errors/cotenant-error";
import type { AgentIdentity } from "../../identity/agent";
import { DATA_PLANE_LINES, withLines } from "../../identity/data-plane";
import { HARNESS_NAMES } from "../../identity/harness";
import { PROVISIONAL_GITIGNORE, refuseLink, type WorktreeIdentity } from "../../identity/worktree-file";
import { listWorktrees } from "../../identity/worktree-list";
import { clearRemains, type Remains, remainsIn } from "../../identity/worktree-remains";
import { printable } from "../../kernel/ids";
import type { Lease } from "../../kernel/lease";
import { count } from "../../kernel/printing";
import { endingCommand, heldBy } from "../../kernel/words";
import { requireRecentGit } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import { replaceFile } from "../../platform/replace-file";
import { dismantle, removedStores } from "../../store/dismantle";
import type { LogActor } from "../../store/envelope";
import {
  harnessNamed,
  installAgents,
  planAgentRemoval,
  planAgents,
  projectLevel,
  removeAgents,
} from "../harnesses/operations";
import { hooksOf, installHooks, planRemoval, removeHooks } from "../hooks/operations";
import type { Installed } from "../installer/files";
import { MergeDriver } from "../issues/merge-driver";
import { keptIds } from "../snapshots/examination";
import { dropRef } from "../snapshots/snapshot-commit";
import { snapshotReader } from "../snapshots/snapshot-context";
import { ENFORCE_MODES, initialConfig, isAsInitMadeIt } from "./scaffold";
import { setSetting } from "./settings";
import { addTrust } from "./trust";

export { tomlOf } from "../../config/values";
export { type GateDefinition, MAX_COMMAND } from "../gates/registry";
export { ENFORCE_MODES } from "./scaffold";
export { resetSetting, type SettingSet, type Surveyed, setSetting, survey } from "./settings";
export { oneSetting, shownSettings, validateSettings } from "./shown-settings";
export { gateIn, trust, trustedValue, untrustedIn } from "./trust";

export interface InitRequest {
  /** How strictly issue writes need a lease; null as it is. */
  readonly enforce?: string | null;
  readonly hooks?: boolean;
  /** Names of harnesses that are to ask before each write. */
  readonly agents?: readonly string[] | null;
  readonly allowNetwork?: boolean;
  readonly program: Installed;
}

export interface Initialised {
  /** Of the data plane, as paths below the worktree. */
  readonly made: readonly string[];
  readonly worktree: WorktreeIdentity;
  readonly hasRegistered: boolean;
  readonly hooks: {
    readonly directory: string;
    readonly hasChanged: boolean;
    readonly remarks: readonly string[];
  } | null;
  readonly agents: {
    readonly hasChanged: boolean;
    readonly paths: readonly string[];
    /** Those that changed, as people know them. */
    readonly shown: readonly string[];
    readonly remarks: readonly string[];
  } | null;
}

export function refuseUnknownMode(enforce: string | null): void {
  if (enforce !== null) choiceOf("--enforce", enforce, ENFORCE_MODES);
}

/** Prepares a repository. Doing it again changes nothing. */
export async function init(
  workspace: Workspace,
  { enforce = null, hooks = false, agents: names = null, allowNetwork = false, program }: InitRequest,
): Promise<Initialised> {
  // Before anything is written: a refusal leaves no trace.
  const desk = hooks ? await hooksOf(workspace) : null;
  const how = { shared: false, force: false, program };
  if (desk !== null) await installHooks(desk, { ...how, isDry: true });
  const settings = projectLevel(workspace);
  const asking = { program, shared: false, via: null };
  const agents = names === null ? null : [...new Set(names.map(harnessNamed))];
  if (agents !== null) await planAgents(settings, agents, asking);
  const { platform, git } = workspace.surroundings;
  const { worktreeRoot, commonDir } = workspace.repository;
  await requireRecentGit(git, worktreeRoot);
  const made = await makeDataPlane(workspace, enforce);
  const { identity } = await workspace.worktree("write");
  await workspace.store.prepare();
  const hasRegistered = await new MergeDriver(git, commonDir).register(program, platform.timers);
  const { layout, options } = workspace.store;
  if (enforce !== null && made.includes(CONFIG))
    await addTrust(workspace, [{ key: ENFORCE, value: enforce }], "init");
  else if (enforce !== null && (await enforceAs(workspace, enforce))) made.push(CONFIG);
  if (allowNetwork && (await platform.files.stat(layout.allowNetwork)) === null)
    await replaceFile(platform, layout.allowNetwork, "", options.modes.file);
  const installed = desk === null ? null : await installHooks(desk, { ...how, isDry: false });
  const plans = agents === null ? null : await installAgents(settings, agents, asking);
  const changed = plans?.filter(({ after }) => after !== null) ?? [];
  return {
    made,
    worktree: identity,
    hasRegistered,
    hooks: installed && {
      directory: installed.directory,
      hasChanged: installed.plan.hooks.some(({ write }) => write !== null),
      remarks: installed.remarks,
    },
    agents: plans && {
      hasChanged: changed.length > 0,
      paths: plans.map(({ file }) => file.path),
      shown: changed.map(({ site }) => site.shown),
      remarks: [...new Set(changed.flatMap(({ remarks }) => remarks))],
    },
  };
}

const CONFIG = ".cotenant/config.toml";
const ENFORCE = "worktree.enforce_leases";

/** Answers what was made, as paths below the worktree. */
async function makeDataPlane(workspace: Workspace, enforce: string | null): Promise<string[]> {
  const { platform } = workspace.surroundings;
  const { worktreeRoot } = workspace.repository;
  const data = `${worktreeRoot}/.cotenant`;
  await refuseLink(platform, data, "directory");
  for (const name of ["config.toml", ".gitignore", ".gitattributes"])
    await refuseLink(platform, `${data}/${name}`, "file");
  const made: string[] = [];
  try {
    const changes = [
      await missing(platform, `${data}/config.toml`, initialConfig(enforce ?? undefined)),
      await lacking(platform, `${data}/.gitignore`, DATA_PLANE_LINES[".gitignore"], PROVISIONAL_GITIGNORE),
      await lacking(platform, `${data}/.gitattributes`, DATA_PLANE_LINES[".gitattributes"], null),
    ].filter((change) => change !== null);
    await refuseRuledFiles(
      workspace,
      changes.map(({ path }) => path),
    );
    if (await platform.files.makeDirectory(data, 0o755)) made.push(".cotenant/");
    for (const { path, content, mode } of changes) {
      await replaceFile(platform, path, content, mode);
      made.push(path.slice(worktreeRoot.length + 1));
    }
  } catch (error) {
    throw fileFailure(error, "writing the data plane", data);
  }
  return made;
}

/** In a configuration that is there already, as 'config set' would. */
async function enforceAs(workspace: Workspace, mode: string): Promise<boolean> {
  if (workspace.config.values[ENFORCE] === mode) return false;
  const place = { surroundings: () => workspace.surroundings, workspace: async () => workspace };
  return (await setSetting(place, { key: ENFORCE, isGlobal: false, text: mode })).hasChanged;
}

interface Change {
  readonly path: string;
  readonly content: string | Uint8Array;
  readonly mode: number;
}

/** Null for a file that is there. */
async function missing({ files }: Platform, path: string, content: string): Promise<Change | null> {
  return (await files.stat(path)) === null ? { path, content, mode: 0o644 } : null;
}

/** Null for a file that has all of these lines; `provisional` is a text of ours that may go altogether. */
async function lacking(
  { files }: Platform,
  path: string,
  lines: readonly string[],
  provisional: string | null,
): Promise<Change | null> {
  const bytes = (await files.readFile(path)) ?? new Uint8Array();
  const isOurs = provisional !== null && new TextDecoder().decode(bytes) === provisional;
  const content = withLines(isOurs ? new Uint8Array() : bytes, lines);
  const mode = ((await files.stat(path))?.mode ?? 0o644) & 0o777;
  return content === null ? null : { path, content, mode };
}

export interface DeinitRequest {
  /** Also files that `init` made and nobody has changed or given to Git. */
  readonly purge?: boolean;
  /** Also every snapshot. */
  readonly snapshots?: boolean;
  /** Only says what would go. */
  readonly dryRun?: boolean;
}

/** What went, or would go. */
export interface Deinitialised {
  /** The control plane of this clone, and what is left of earlier ones. */
  readonly controls: readonly string[];
  readonly files: readonly string[];
  readonly staying: readonly string[];
  /** Lines of its log. */
  readonly history: number;
  readonly ownLeases: number;
  /** Names in Git's configuration. */
  readonly settings: readonly string[];
  readonly hooks: readonly string[];
  readonly agents: readonly string[];
  /** Hooks and settings that keep what is ours. */
  readonly left: readonly string[];
  readonly snapshots: number;
  /** Issues whose claims were given back on the ledger. */
  readonly givenBack: readonly string[];
}

/** Undoes what cotenant did to this clone. Run again, it finishes what was interrupted. */
export async function deinit(
  workspace: Workspace,
  { purge = false, snapshots: withSnapshots = false, dryRun: isDry = false }: DeinitRequest = {},
): Promise<Deinitialised> {
  const { store, repository, surroundings, coordinator } = workspace;
  const { platform } = surroundings;
  // What the configuration loosens is of no interest to whoever leaves.
  workspace.warnings.length = 0;
  // Nobody needs a name to leave; but leases without one are always somebody else's.
  const me = await workspace.agentOrNull();
  const remains = await remainsOfAll(workspace, purge);
  const hasStore = (await platform.files.lstat(store.layout.root)) !== null;
  const driver = new MergeDriver(surroundings.git, repository.commonDir);
  const settings = await driver.registered();
  const desk = await hooksOf(workspace);
  const hooks = await planRemoval(desk, { shared: false, force: false });
  const agents = await agentRemovals(workspace);
  const leftBehind = await removedStores(platform.files, store.layout);
  const head = await coordinator.head();
  let own: readonly Lease[] = [];
  let givenBack: readonly string[] = [];
  const { machine, place, descriptors } = await snapshotReader(workspace);
  const snapshots = [
    ...(await descriptors.everything()).map(({ id }) => id),
    ...(await descriptors.asides()),
  ];
  const inspect = async () => {
    own = await refuseWhileOthersWork(workspace, me);
    if (!withSnapshots) refuseSnapshots((await keptIds({ descriptors, coordinator, machine, place })).length);
  };
  // Already now, so that a refusal leaves no trace; under the mutex it counts.
  if (hasStore) await inspect();
  const ownLeases = own.length;
  if (hasStore && sharesClaims(workspace.config)) {
    const { leaveLedger, previewLeaving } = await import("../ledger/departure");
    const actor = async () => (await workspace.session("write")).actor;
    givenBack = await (isDry ? previewLeaving(workspace, own) : leaveLedger(workspace, actor, own));
  }
  if (!isDry) {
    await dismantle(store, actorOf(workspace, me), inspect);
    // Not before: whoever is refused keeps it. Nor under the mutex, where no Git command may run.
    if (settings.length > 0) await driver.unregister(platform.timers);
    await removeHooks(desk, hooks);
    // All of them go: nobody else's needs to stay hidden.
    for (const { desk: there, plan } of agents) await removeAgents(there, { ...plan, others: [] });
    // Their descriptors are gone with the store.
    for (const id of snapshots) await dropRef(machine, place, id);
    for (const worktree of remains) await clearRemains(platform, worktree);
  }
  return {
    controls: [...(hasStore ? [repository.controlDir] : []), ...leftBehind],
    files: remains.flatMap(({ going }) => going),
    staying: remains.flatMap(({ staying }) => staying),
    history: head.sequence,
    ownLeases,
    settings,
    hooks: hooks.removals.map(({ path }) => path),
    agents: agents.flatMap(({ plan }) => plan.removals.map(({ found }) => found.file.path)),
    left: [hooks, ...agents.map(({ plan }) => plan)].flatMap(({ left }) => left.map(({ path }) => path)),
    snapshots: snapshots.length,
    givenBack,
  };
}

/** In every worktree: what is committed stays, and so do the user's own. */
async function agentRemovals(workspace: Workspace) {
  const { surroundings, repository } = workspace;
  const removals = [];
  for (const { root, exists } of await listWorktrees(surroundings.platform, surroundings.git, repository)) {
    if (!exists) continue;
    const there =
      root === repository.worktreeRoot
        ? workspace
        : await Workspace.open({ ...surroundings, cwd: root }, { despiteConfig: "mend" });
    const desk = projectLevel(there);
    removals.push({ desk, plan: await planAgentRemoval(desk, HARNESS_NAMES, false) });
  }
  return removals;
}

function refuseSnapshots(snapshots: number): void {
  if (snapshots === 0) return;
  throw policyError(
    `there ${snapshots === 1 ? "is" : "are"} ${count(snapshots, "snapshot")}, and what they hold may exist nowhere else`,
    "bring back what is still wanted ('cotenant history --all'); then 'cotenant snapshot prune', or --snapshots",
    { snapshots },
  );
}

/** Answers the leases of the caller's own: they go with the store. */
async function refuseWhileOthersWork(
  { coordinator, store }: Workspace,
  me: AgentIdentity | null,
): Promise<readonly Lease[]> {
  const isMine = (party: { readonly agentId: string; readonly sessionId: string }) =>
    party.agentId === me?.agentId && party.sessionId === me.sessionId;
  const leases = (await coordinator.list()).map(({ lease }) => lease);
  const others = leases.filter((lease) => !isMine(lease));
  if (others.length > 0) {
    const ways = others.flatMap((lease) => endingCommand(lease) ?? []).slice(0, 5);
    const hint = [
      "wait until they are released or have run out",
      ...(ways.length === 0 ? [] : [`a person may end them: ${ways.join("; ")}`]),
    ];
    throw errorFrom(heldBy(others, store.now(), hint.join("; ")));
  }
  const waiter = (await coordinator.waiters()).find((ticket) => !isMine(ticket));
  if (waiter !== undefined) {
    const keys = waiter.keys.map(({ key }) => printable(key)).join(", ");
    throw new CotenantError("E_QUEUED", `${waiter.agentId} waits for ${keys}`, {
      hint: "let it finish or give up, then run the same command again",
      data: { agent_id: waiter.agentId, pid: waiter.holder.pid },
    });
  }
  return leases;
}

async function remainsOfAll(workspace: Workspace, purge: boolean): Promise<Remains[]> {
  const { platform, git } = workspace.surroundings;
  const isScaffold = purge ? isAsInitMadeIt : () => false;
  const all: Remains[] = [];
  for (const worktree of await listWorktrees(platform, git, workspace.repository))
    if (worktree.exists) all.push(await remainsIn(platform, git, worktree, isScaffold));
  return all;
}

function actorOf({ surroundings }: Workspace, me: AgentIdentity | null): LogActor {
  const { processes } = surroundings.platform;
  const { agentId, sessionId } = me ?? { agentId: "nobody", sessionId: "" };
  return { agentId, sessionId, worktreeId: "", host: processes.host(), pid: processes.self().pid };
}
