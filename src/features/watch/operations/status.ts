import type { LeaseStatus } from "../../../coordinator/contract";
import { pauseOf } from "../../../coordinator/pause";
import { openProposals } from "../../../coordinator/proposals";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import type { Actor } from "../../../kernel/commands";
import { agentType, type LeaseId } from "../../../kernel/ids";
import { type Holder, sameParty } from "../../../kernel/lease";
import type { Pause } from "../../../kernel/pause";
import type { Ticket } from "../../../kernel/tickets";
import { liveStrangers } from "../../guard/calling-process";
import { escalated } from "../../guard/escalation";
import { seenContentions } from "../../guard/overview";
import { seenViolations } from "../../guard/violations";
import { hooksWord } from "../../hooks/installation/upkeep";
import { openViolations } from "../../hooks/violations";
import { issuesIn } from "../../issues/desk";
import { elsewhereIn, workersAmong } from "../../issues/effective";
import { queryAbandoned, queryGated } from "../../issues/query";
import type { ClaimsView } from "../../ledger/view";
import { ledgerView } from "../../ledger/workers";
import { abandonedAmong, abandonedText } from "../../snapshots/abandoned-work";
import { type Access, accessOf } from "../../worktrees/access";
import { homelessAmong } from "../../worktrees/homeless";
import { type Finding, needsAPerson, type Situation } from "../findings";

/** Everything that `status` says, at one instant. */
export interface Status {
  readonly place: {
    readonly root: string;
    readonly control: string;
    readonly worktreeId: string;
    readonly access: Access;
  };
  readonly me: Actor | null;
  /** Valid ones, the caller's first. */
  readonly leases: readonly LeaseStatus[];
  readonly lapsed: number;
  readonly waiters: readonly Ticket[];
  readonly sequence: number;
  readonly nextToken: number;
  readonly findings: readonly Finding[];
  readonly pause: Pause | null;
  /** What the ledger knows of claims; null where there is none. */
  readonly ledger: ClaimsView | null;
}

/** Who holds what, who waits, and what needs a person. Writes nothing. */
export async function status(workspace: Workspace): Promise<Status> {
  const { repository, coordinator } = workspace;
  const me = await workspace.actorOrNull();
  const { identity } = await workspace.worktree("read");
  const { leases: all, head, damage } = await coordinator.survey();
  workspace.seen = all;
  const leases = all
    .filter(({ standing }) => standing === "valid")
    .sort((a, b) => order(a, me) - order(b, me) || (a.lease.key < b.lease.key ? -1 : 1));
  const waiters = await coordinator.waiters();
  const ledger = await ledgerView(workspace);
  const pause = await pauseOf(coordinator);
  return {
    ledger,
    pause,
    place: {
      root: repository.worktreeRoot,
      control: repository.controlDir,
      worktreeId: identity.worktreeId,
      access: await accessOf(coordinator, identity.worktreeId),
    },
    me,
    leases,
    lapsed: all.length - leases.length,
    waiters,
    sequence: head.sequence,
    nextToken: head.nextToken,
    findings: needsAPerson(workspace, {
      pause,
      proposals: await openProposals(coordinator),
      leases: all,
      waiters,
      damage,
      now: workspace.store.now(),
      violations: await openViolations(
        coordinator,
        workspace.store.now().wallMs,
        workspace.surroundings.git,
        repository.worktreeRoot,
      ),
      contentions: await seenContentions(workspace),
      escalated: await escalated(workspace),
      trespasses: (await seenViolations(workspace)).filter(({ isOpen }) => isOpen),
      ...(await issuesHere(workspace, all, ledger)),
      homeless: await homelessAmong({ ...workspace.surroundings, repository }, leases),
      strangers: await strangersOf(workspace, leases),
      gone: await withoutProcess(workspace, leases),
      hooks: await hooksWord(workspace),
      missedDaemon: await workspace.missedDaemon(),
      isLedgerUnread: ledger !== null && ledger.asOf === null,
      provisional: leases.filter(({ lease }) => ledger?.standing(lease) === "provisional"),
    }),
  };
}

/** What somebody has left, and what waits for its gates. An issue that cannot be read keeps nobody from seeing the rest. */
async function issuesHere(
  workspace: Workspace,
  statuses: readonly LeaseStatus[],
  view: ClaimsView | null,
): Promise<Pick<Situation, "left" | "gated">> {
  const reader = await issuesIn(workspace);
  const workers = await workersAmong(workspace.coordinator, statuses, elsewhereIn(view));
  try {
    const setting = { reader, hierarchy: [], ...workers };
    const { issues } = await queryAbandoned(setting);
    const left = await abandonedAmong(workspace, reader, workers, issues);
    const { issues: gated, gates } = await queryGated(setting);
    return {
      left: issues.map(({ id, shortId, title }) => ({
        shortId,
        title,
        words: abandonedText(left.get(id)!, reader.here.root),
      })),
      gated: gated.flatMap(({ id, shortId, title }) => {
        const [gate, ...others] = gates.get(id) ?? [];
        return gate === undefined ? [] : { shortId, title, gate, others: others.length };
      }),
    };
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    workspace.warnings.push(`what was left cannot be told: ${error.message}`);
    return { left: [], gated: [] };
  }
}

/** Leases that only their holder or a person ends, and whose holder's process has ended. People outlive their shells. */
async function withoutProcess(
  { surroundings }: Workspace,
  valid: readonly LeaseStatus[],
): Promise<ReadonlySet<LeaseId>> {
  const gone = new Set<LeaseId>();
  for (const { lease } of valid) {
    if (lease.expiresAt !== null || lease.bind !== "ttl") continue;
    if (["human", "admin"].includes(agentType(lease.agentId))) continue;
    if ((await surroundings.platform.processes.liveness(lease.holder)) === "dead") gone.add(lease.leaseId);
  }
  return gone;
}

/** Of each agent the live processes that lock and claim in its name. */
async function strangersOf(
  { surroundings }: Workspace,
  valid: readonly LeaseStatus[],
): Promise<ReadonlyMap<string, readonly Holder[]>> {
  const named = new Map<string, Holder[]>();
  for (const { lease } of valid) {
    // A person may well have two terminals.
    if (lease.bind !== "ttl" || lease.agentId.startsWith("human:")) continue;
    const known = named.get(lease.agentId);
    if (known === undefined) named.set(lease.agentId, [lease.holder]);
    else known.push(lease.holder);
  }
  const found = new Map<string, readonly Holder[]>();
  for (const [agentId, holders] of named)
    if (holders.length > 1) found.set(agentId, await liveStrangers(surroundings.platform.processes, holders));
  return found;
}

function order({ lease }: LeaseStatus, me: Actor | null): number {
  return me !== null && sameParty(lease, me) ? 0 : 1;
}
