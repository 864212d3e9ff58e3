import type { Change, LeaseStatus, LedgerSay } from "../../../coordinator/contract";
import {
  type Approved,
  approveEviction,
  forceEvict,
  meantProposal,
  noOpenProposal,
  openProposals,
} from "../../../coordinator/proposals";
import {
  type ChangeRequest,
  givenReason,
  type HolderRequest,
  proofOf,
  requestIdOf,
} from "../../../coordinator/requests";
import type { Acquired } from "../../../coordinator/session";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, orThrow } from "../../../errors/cotenant-error";
import { listWorktrees } from "../../../identity/worktree-list";
import { type Actor, byKey, type LeaseRef } from "../../../kernel/commands";
import {
  parseAgentId,
  parseUlid,
  parseWorktreeId,
  printable,
  type Ulid,
  type WorktreeId,
} from "../../../kernel/ids";
import { issueOf, type LeaseKey } from "../../../kernel/keys";
import { isLandingKey } from "../../../kernel/landing-right";
import { belongsTo, sameParty } from "../../../kernel/lease";
import type { Proposal } from "../../../kernel/proposals";
import { isRefusal } from "../../../kernel/refusal";
import { claimRef, keyOfIssue } from "../../issues/claim-refs";
import type { ClaimTerms } from "../../issues/claimable";
import { issuesIn, writerIn } from "../../issues/desk";
import { meantId } from "../../issues/meant";
import { isFound } from "../../issues/resolve";
import { shortId } from "../../issues/short-id";
import { writeBack } from "../../issues/write-back";
import { claimable, claimOf, type IssueClaim, meantForClaim } from "../../ledger/claim-issue";
import type { ClaimsView } from "../../ledger/view";
import { ledgerView, workersOn } from "../../ledger/workers";
import {
  acquireLeases,
  type LeaseTerms,
  type ReleaseRequest,
  type RenewRequest,
  releaseLeases,
  renewLeases,
  tellLedger,
} from "../../locks/operations";
import { type AbandonedWork, abandonedWorkOn } from "../../snapshots/abandoned-work";
import { meantWorktree } from "../../worktrees/meant";
import { leaseMeant } from "../lease-meant";
import { createClaimed } from "./create";
import { claimNext } from "./next";

/** Claims: leases on issues. An issue is named by its id, short or whole, and its claim by the lease's id as well. */

export interface ClaimRequest extends LeaseTerms {
  readonly issue: string;
  /** Also one that is over, to bring it back. */
  readonly reopen?: boolean | undefined;
  /** Only what is ready, or was left. */
  readonly ifReady?: boolean | undefined;
  /** Also while it waits for another; needs a reason. */
  readonly allowBlocked?: boolean | undefined;
  /** End somebody else's live claim; needs a reason and the policy's permission. */
  readonly force?: boolean;
}

export interface Claimed extends Acquired {
  /** The issue's id as short as it can be written. */
  readonly shortId: string;
  /** What somebody has left unfinished of it, and where; null where nobody has. */
  readonly abandoned: AbandonedWork | null;
}

export interface LeaseNamed {
  /** An issue, or a lease's id. */
  readonly claim: string;
}

export interface TransferRequest extends HolderRequest, LeaseNamed {
  readonly toAgent: string;
  /** By its id, directory or branch. Default: the caller's. */
  readonly toWorktree?: string | undefined;
  readonly reason?: string | undefined;
}

export interface Evicted extends Change {
  /** Claims of other machines that this has ended. */
  readonly elsewhere: NonNullable<LedgerSay["endedThere"]>;
}

export interface ClaimFilter {
  /** Only those of this agent, session and worktree. */
  readonly mine?: boolean;
  readonly agent?: string | undefined;
  readonly issue?: string | undefined;
}

export interface Claims {
  readonly leases: readonly LeaseStatus[];
  /** What the ledger says of them, and of claims of other machines; null where there is none. */
  readonly view: ClaimsView | null;
  /** Who is looking; null where nobody has said so. */
  readonly me: Actor | null;
}

export interface AllClaims extends Claims {
  readonly generatedAtMs: number;
  readonly sequence: number;
}

export const claim = {
  async acquire(workspace: Workspace, request: ClaimRequest): Promise<Claimed> {
    const { issue: typed, reopen, ifReady, allowBlocked, force } = request;
    const id =
      request.offline === true
        ? await meantId(await issuesIn(workspace), typed)
        : await meantForClaim(workspace, typed);
    const reader = await issuesIn(workspace);
    const terms: ClaimTerms = { isReopening: reopen, onlyIfReady: ifReady, allowsBlocked: allowBlocked };
    const found = await claimable(reader, id, terms);
    if (allowBlocked === true) givenReason(request.reason, "claiming an issue that waits for another");
    const workers = await workersOn(workspace, id);
    const me = await workspace.actorOrNull();
    const held = workers.claims.get(id);
    const isOwn = held !== undefined && me !== null && belongsTo(held.lease, me);
    const { keys, ...wish } = await claimOf(workspace, found, terms, isOwn);
    const abandoned = await abandonedWorkOn(workspace, reader, workers, found);
    const shortened = abandoned === null ? id : shortId(id, await reader.ids());
    const granted = await acquireLeases(
      workspace,
      { ...wish, keys: keys.map(({ key }) => key), steal: force ?? false },
      request,
    );
    return { ...granted, shortId: shortened, abandoned };
  },

  async renew(workspace: Workspace, request: RenewRequest & LeaseNamed): Promise<Change> {
    return renewLeases(workspace, [await claimRef(workspace, request.claim)], request);
  },

  /** Shows that work goes on. It moves the claim's last beat and nothing else. */
  async heartbeat(workspace: Workspace, request: HolderRequest & LeaseNamed): Promise<Change> {
    const ref = await claimRef(workspace, request.claim);
    const proof = await proofOf(workspace, request);
    const session = await workspace.session("write");
    const change = await session.heartbeat([ref], proof);
    tellLedger(workspace, change);
    try {
      await session.writeHeartbeat(workspace.store.layout, workspace.store.options.modes);
    } catch {
      // The beat itself is in the log; nothing depends on the file.
      workspace.warnings.push(`the heartbeat is logged, but its file could not be written`);
    }
    return change;
  },

  async release(workspace: Workspace, request: ReleaseRequest & LeaseNamed): Promise<Change> {
    return giveBack(workspace, [await claimRef(workspace, request.claim)], request);
  },

  /** Hands a lease over to another agent, without a moment in which somebody else could take it. */
  async transfer(workspace: Workspace, request: TransferRequest): Promise<Change> {
    const toAgent = orThrow(parseAgentId(request.toAgent));
    const named = request.toWorktree;
    const wanted = named === undefined ? null : await worktreeNamed(workspace, named);
    const reason = givenReason(request.reason, "a transfer");
    const proof = await proofOf(workspace, request);
    const ref = await leaseMeant(workspace, request.claim, "transfer");
    const session = await workspace.session("write");
    const toWorktree = wanted ?? session.actor.worktreeId;
    const isHere = toWorktree === session.actor.worktreeId;
    const toBranch = isHere ? session.actor.branch : await branchOf(workspace, toWorktree);
    const change = await session.transfer(ref, { ...proof, toAgent, toWorktree, toBranch, reason });
    tellLedger(workspace, change);
    return change;
  },

  /** Ends somebody's lease of any kind. Where others have to agree first: `E_APPROVAL_NEEDED`, and it is proposed. */
  async forceEvict(
    workspace: Workspace,
    request: ChangeRequest & LeaseNamed & { readonly reason?: string | undefined },
  ): Promise<Evicted> {
    const ref = await evictedRef(workspace, request.claim);
    const reason = givenReason(request.reason, "ending somebody's lease");
    const requestId = requestIdOf(workspace, request);
    const { coordinator } = workspace;
    const session = await workspace.session("write");
    const change = await forceEvict({ session, coordinator }, [ref], { reason, requestId });
    tellLedger(workspace, change);
    const isHere = (id: Ulid) => change.leases.some(({ leaseId }) => leaseId === id);
    const elsewhere = (change.ledger?.endedThere ?? []).filter(({ leaseId }) => !isHere(leaseId));
    return { ...change, elsewhere };
  },

  /** Agrees to end somebody's live lease, as others have proposed it: by a proposal's id, or a lease as for an eviction. */
  async approve(workspace: Workspace, { proposal }: { readonly proposal: string }): Promise<Approved> {
    const { coordinator } = workspace;
    const id = await proposalMeant(workspace, proposal);
    const session = await workspace.session("write");
    const approved = await approveEviction({ session, coordinator }, id);
    if (approved.change !== null) tellLedger(workspace, approved.change);
    return approved;
  },

  /** Evictions that wait for the approval of others. */
  proposals(workspace: Workspace): Promise<readonly Proposal[]> {
    return openProposals(workspace.coordinator);
  },

  /** All claims, the caller's own first. */
  async status(workspace: Workspace, { mine = false, ...only }: ClaimFilter = {}): Promise<Claims> {
    const agent = only.agent === undefined ? null : orThrow(parseAgentId(only.agent));
    const issue = only.issue === undefined ? null : await claimRef(workspace, only.issue);
    const me = mine ? (await workspace.session("read")).actor : await workspace.actorOrNull();
    const isMine = ({ lease }: LeaseStatus) => me !== null && sameParty(lease, me);
    const leases = (await claimsIn(workspace))
      .filter(({ lease }) => agent === null || lease.agentId === agent)
      .filter(({ lease }) => issue === null || lease.key === issue.key || lease.leaseId === issue.leaseId)
      .filter((status) => !mine || isMine(status))
      .sort((a, b) => Number(isMine(b)) - Number(isMine(a)) || a.lease.fencingToken - b.lease.fencingToken);
    const view = await ledgerView(workspace);
    if (view === null) return { leases, view, me };
    const others = [...view.others].filter(
      ([id, record]) =>
        !mine &&
        (agent === null || record.agentId === agent) &&
        (issue === null || issue.key === `issue:${id}` || issue.leaseId === record.leaseId),
    );
    return { leases, view: { ...view, others: new Map(others) }, me };
  },

  async list(workspace: Workspace): Promise<AllClaims> {
    const { sequence } = await workspace.coordinator.head();
    const leases = await claimsIn(workspace);
    const view = await ledgerView(workspace);
    const generatedAtMs = workspace.surroundings.platform.clock.wallMs();
    return { leases, view, me: await workspace.actorOrNull(), generatedAtMs, sequence };
  },

  create: createClaimed,
  next: claimNext,
};

/** Leases on things of any kind, all of them or none; issues among them by the rules of claims. */
export async function acquireKeys(
  workspace: Workspace,
  keys: readonly LeaseKey[],
  request: LeaseTerms & { readonly steal?: boolean },
): Promise<Acquired> {
  const claims: IssueClaim[] = [];
  for (const id of issuesAmong(keys)) {
    const found = await (await issuesIn(workspace)).get(id);
    claims.push(await claimOf(workspace, found, {}, await isHeldByCaller(workspace, id)));
  }
  return acquireLeases(
    workspace,
    {
      keys,
      steal: request.steal ?? false,
      aboveToken: Math.max(0, ...claims.map(({ aboveToken }) => aboveToken)),
      confirm: async (session, grant) => {
        for (const { confirm } of claims) await confirm(session, grant);
      },
    },
    request,
  );
}

/** Leases of any kind; what was written under claims among them goes with them. */
export async function giveBack(
  workspace: Workspace,
  leases: readonly LeaseRef[],
  request: ReleaseRequest,
): Promise<Change> {
  for (const ref of leases) await putBackClaim(workspace, ref, request);
  return releaseLeases(workspace, leases, request);
}

function issuesAmong(keys: readonly LeaseKey[]): Ulid[] {
  return keys.filter((key) => key.startsWith("issue:") && !isLandingKey(key)).map(issueOf);
}

async function isHeldByCaller(workspace: Workspace, id: Ulid): Promise<boolean> {
  const me = await workspace.actorOrNull();
  const held = (await workersOn(workspace, id)).claims.get(id);
  return held !== undefined && me !== null && belongsTo(held.lease, me);
}

async function claimsIn({ coordinator }: Workspace): Promise<LeaseStatus[]> {
  const all = await coordinator.list();
  return all.filter(({ lease }) => lease.key.startsWith("issue:") && !isLandingKey(lease.key));
}

/** What the claimed issues are called, as far as they can be read. */
export async function titlesOf(
  workspace: Workspace,
  leases: readonly LeaseStatus[],
): Promise<ReadonlyMap<string, string>> {
  if (leases.length === 0) return new Map();
  const reader = await issuesIn(workspace);
  const found = await reader.findAll(leases.map(({ lease }) => issueOf(lease.key)));
  return new Map(
    [...found].flatMap(([id, one]) => (isFound(one) ? [[`issue:${id}`, `"${one.issue.title}"`]] : [])),
  );
}

/** What was written under a claim goes with it. Nothing where the caller does not hold it: the release says why. */
async function putBackClaim(workspace: Workspace, ref: LeaseRef, request: HolderRequest): Promise<void> {
  const [held] = await workspace.coordinator.find([ref]);
  const id = held?.lease.key.startsWith("issue:") === true ? issueOf(held.lease.key) : null;
  if (held === undefined || id === null || held.standing !== "valid") return;
  const { secret = null } = await proofOf(workspace, request);
  const session = await workspace.session("write");
  if (secret === null && !belongsTo(held.lease, session.actor)) return;
  const reader = await issuesIn(workspace);
  const writer = await writerIn(workspace, reader);
  const of = { id, holder: held.lease.agentId };
  const { failure } = await writeBack(writer, reader, of, { secret, enforcement: "strict" });
  if (failure !== null) workspace.warnings.push(failure);
}

/** The claim on an issue that was just changed; false where the caller holds none. */
export async function releaseIfHeld(
  workspace: Workspace,
  id: Ulid,
  request: ReleaseRequest,
): Promise<boolean> {
  const ref = byKey(keyOfIssue(id));
  const [held] = await workspace.coordinator.find([ref]);
  const session = await workspace.session("write");
  const { secret = null } = await proofOf(workspace, request);
  if (held?.standing !== "valid" || (secret === null && !belongsTo(held.lease, session.actor))) return false;
  await putBackClaim(workspace, ref, request);
  tellLedger(workspace, await session.release([ref], { secret, reason: request.reason ?? null }));
  return true;
}

/** By its id, or as everywhere else by its directory or branch. */
async function worktreeNamed(workspace: Workspace, named: string): Promise<WorktreeId> {
  if (named.startsWith("wt:")) return orThrow(parseWorktreeId(named));
  const { worktreeId, root } = await meantWorktree(workspace, named);
  if (worktreeId !== null) return worktreeId;
  throw new CotenantError("E_NOT_FOUND", `the worktree at ${printable(root, 500)} is gone`, {
    hint: "'cotenant worktree list' shows them",
  });
}

async function branchOf(workspace: Workspace, worktreeId: WorktreeId): Promise<string | null> {
  const { platform, git } = workspace.surroundings;
  const worktrees = await listWorktrees(platform, git, workspace.repository);
  const target = worktrees.find((worktree) => worktree.worktreeId === worktreeId);
  if (target !== undefined) return target.branch;
  throw new CotenantError("E_NOT_FOUND", `there is no worktree ${worktreeId} in this repository`, {
    hint: "'cotenant worktree list' shows them",
  });
}

/** Also a claim of another machine on an issue that this one has never seen, by either of its ids. */
async function evictedRef(workspace: Workspace, typed: string): Promise<LeaseRef> {
  const ref = await leaseMeant(workspace, typed, "force-evict");
  if (ref.key !== null) return ref;
  const others = [...((await ledgerView(workspace))?.others.values() ?? [])];
  const found = others.find(({ issueId, leaseId }) => issueId === ref.leaseId || leaseId === ref.leaseId);
  return found === undefined ? ref : byKey(keyOfIssue(found.issueId));
}

async function proposalMeant(workspace: Workspace, typed: string): Promise<Ulid> {
  const id = parseUlid(typed);
  const ref = await leaseMeant(workspace, typed, "approve").catch((error: unknown) => {
    const isNobodys = error instanceof CotenantError && error.code === "E_NOT_FOUND";
    throw isNobodys ? noOpenProposal(typed) : error;
  });
  return meantProposal(workspace.coordinator, isRefusal(id) ? null : id, ref);
}
