import type { Command } from "../../../cli/grammar/command";
import { count } from "../../../cli/terminal/render";
import { sharesClaims } from "../../../config/shared-claims";
import { Workspace } from "../../../coordinator/workspace";
import { CotenantError, errorFrom } from "../../../errors/cotenant-error";
import type { AgentIdentity } from "../../../identity/agent";
import { HARNESS_NAMES } from "../../../identity/harness";
import { listWorktrees } from "../../../identity/worktree-list";
import { clearRemains, type Remains, remainsIn } from "../../../identity/worktree-remains";
import type { Lease } from "../../../kernel/lease";
import { endingCommand, heldBy } from "../../../kernel/words";
import { dismantle, removedStores } from "../../../store/dismantle";
import type { LogActor } from "../../../store/envelope";
import { projectDesk } from "../../harnesses/desk";
import { planAgentRemoval, removeAgents } from "../../harnesses/installing";
import { deskOf } from "../../hooks/commands/hooks";
import { planRemoval, removeHooks } from "../../hooks/installing/install";
import { MergeDriver } from "../../issues/merge-driver";
import { ticketKeys } from "../../locks/commands/output";
import { keptIds } from "../../snapshots/examination";
import { dropRef } from "../../snapshots/snapshot-commit";
import { snapshotReader } from "../../snapshots/snapshot-context";
import { isAsInitMadeIt } from "./scaffold";

export const command: Command = {
  usage: "deinit [--purge] [--snapshots] [--dry-run]",
  about:
    "Undoes what cotenant did to this clone: removes the control plane below the Git directory, with all leases and\ntheir history, the identities of its worktrees, our lines in its hooks and in settings of harnesses, and what Git was told about merging issues.\nIssues, configuration and whatever Git has in .cotenant/ stay: they are versioned with the code. Your claims are given\nback on the ledger first. Refused while somebody else holds or waits for a lease, while a claim cannot be given back, and while there\nare snapshots, unless --snapshots says that they may go. Run again, it finishes what was interrupted, or finds nothing to undo.",
  flags: {
    purge: { meaning: "also remove files that 'init' made and nobody has changed or given to Git" },
    snapshots: { meaning: "also every snapshot: what it holds exists nowhere else" },
    "dry-run": { meaning: "only show what would go and be given back; exits as without it" },
  },
  examples: ["cotenant deinit --dry-run", "cotenant deinit", "cotenant deinit --purge"],
  words: { min: 0, max: 0 },
  leavesHooks: true,
  mendsConfig: true,
  remindsOfExpiry: false,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const { store, repository, surroundings } = workspace;
    const { platform } = surroundings;
    // What the configuration loosens is of no interest to whoever leaves.
    workspace.warnings.length = 0;
    // Nobody needs a name to leave; but leases without one are always somebody else's.
    const me = await workspace.agentOrNull();
    const isDry = parsed.has("dry-run");
    const remains = await remainsOfAll(workspace, parsed.has("purge"));
    const hasStore = (await platform.files.lstat(store.layout.root)) !== null;
    const driver = new MergeDriver(surroundings.git, repository.commonDir);
    const settings = await driver.registered();
    const desk = await deskOf(workspace);
    const hooks = await planRemoval(desk, { shared: false, force: false });
    const agents = await agentRemovals(workspace);
    const leftBehind = await removedStores(platform.files, store.layout);
    const { head } = await workspace.coordinator.snapshot();
    let own: readonly Lease[] = [];
    let givenBack: readonly string[] = [];
    const { machine, place, descriptors } = await snapshotReader(workspace);
    const examined = { descriptors, coordinator: workspace.coordinator, machine, place };
    const snapshots = [
      ...(await descriptors.everything()).map(({ id }) => id),
      ...(await descriptors.asides()),
    ];
    const inspect = async () => {
      own = await refuseWhileOthersWork(workspace, me);
      if (!parsed.has("snapshots")) refuseSnapshots((await keptIds(examined)).length);
    };
    // Already now, so that a refusal leaves no trace; under the mutex it counts.
    if (hasStore) await inspect();
    const ownBefore = own.length;
    if (hasStore && sharesClaims(workspace.config)) {
      const { leaveLedger, previewLeaving } = await import("../../ledger/leaving");
      const actor = async () => (await workspace.session("write")).actor;
      givenBack = await (isDry ? previewLeaving(workspace, own) : leaveLedger(workspace, actor, own));
    }
    if (!isDry) {
      await dismantle(store, actorOf(workspace, me), inspect);
      // Not before: whoever is refused keeps it. Nor under the mutex, where no Git command may run.
      if (settings.length > 0) await driver.unregister(platform.timers);
      await removeHooks(desk, hooks);
      // All of them go: nobody else's needs to stay hidden.
      for (const { desk: settings, plan } of agents) await removeAgents(settings, { ...plan, others: [] });
      // Their descriptors are gone with the store.
      for (const id of snapshots) await dropRef(machine, place, id);
      for (const worktree of remains) await clearRemains(platform, worktree);
    }
    const controls = [...(hasStore ? [repository.controlDir] : []), ...leftBehind];
    const files = remains.flatMap(({ going }) => going);
    const staying = remains.flatMap(({ staying: paths }) => paths);
    const what = [...controls, ...files].map((path) =>
      path === repository.controlDir ? `${path}: ${described(head.sequence, ownBefore)}` : path,
    );
    const { removals } = hooks;
    what.push(...removals.map(({ path }) => `cotenant's lines in ${path}`));
    const taken = agents.flatMap(({ plan }) => plan.removals.map(({ found }) => found.file.path));
    what.push(...taken.map((path) => `cotenant's entries in ${path}`));
    if (snapshots.length > 0) what.push(count(snapshots.length, "snapshot"));
    what.push(...settings.map((name) => `${name} in ${repository.commonDir}/config`));
    const back =
      givenBack.length === 0
        ? []
        : [
            `${isDry ? "would give back" : "given back"} on the ledger: ${givenBack.map((id) => `issue ${id}`).join(", ")}`,
          ];
    return {
      data: {
        dry_run: isDry,
        removed: [...controls, ...files],
        settings,
        hooks: removals.map(({ path }) => path),
        agents: taken,
        kept: [
          ...staying,
          ...[hooks, ...agents.map(({ plan }) => plan)].flatMap(({ left }) => left.map(({ path }) => path)),
        ],
        own_leases: ownBefore,
        given_back: givenBack,
      },
      text: context.quiet
        ? ""
        : [textOf(isDry ? "would remove:" : "removed:", what, staying), ...back].join("\n"),
    };
  },
};

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
    const desk = projectDesk(there);
    removals.push({ desk, plan: await planAgentRemoval(desk, HARNESS_NAMES, false) });
  }
  return removals;
}

function refuseSnapshots(snapshots: number): void {
  if (snapshots === 0) return;
  throw new CotenantError(
    "E_POLICY",
    `there ${snapshots === 1 ? "is" : "are"} ${count(snapshots, "snapshot")}, and what they hold may exist nowhere else`,
    {
      hint: "bring back what is still wanted ('cotenant history --all'); then 'cotenant snapshot prune', or --snapshots",
      data: { snapshots },
    },
  );
}

function textOf(done: string, what: readonly string[], staying: readonly string[]): string {
  if (what.length === 0) return "nothing to undo";
  return [
    done,
    ...what.map((line) => `  ${line}`),
    ...(staying.length === 0 ? [] : ["kept, as it belongs to the code:"]),
    ...staying.map((line) => `  ${line}`),
  ].join("\n");
}

function described(lines: number, own: number): string {
  const leases = own === 0 ? "" : ` and ${count(own, "lease")} of yours`;
  return `a history of ${count(lines, "line")}${leases}`;
}

/** Answers the leases of the caller's own: they go with the store. */
async function refuseWhileOthersWork(
  workspace: Workspace,
  me: AgentIdentity | null,
): Promise<readonly Lease[]> {
  const { coordinator, store } = workspace;
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
    throw new CotenantError("E_QUEUED", `${waiter.agentId} waits for ${ticketKeys(waiter)}`, {
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

function actorOf(workspace: Workspace, me: AgentIdentity | null): LogActor {
  const { processes } = workspace.surroundings.platform;
  const { agentId, sessionId } = me ?? { agentId: "nobody", sessionId: "" };
  return { agentId, sessionId, worktreeId: "", host: processes.host(), pid: processes.self().pid };
}
