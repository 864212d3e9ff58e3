import type { HolderRequest } from "../../../coordinator/requests";
import { givenReason, proofOf } from "../../../coordinator/requests";
import type { Session } from "../../../coordinator/session";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, usageError } from "../../../errors/cotenant-error";
import { printable, type Ulid } from "../../../kernel/ids";
import type { Lease } from "../../../kernel/lease";
import { shellWord } from "../../../kernel/printing";
import { carryAgents } from "../../harnesses/carried-settings";
import type { InstallHow } from "../../harnesses/installation";
import type { SitePlan } from "../../harnesses/plan";
import { keyOfIssue } from "../../issues/claim-refs";
import { confirmClaim, refuseUnclaimable } from "../../issues/claimable";
import { issuesIn } from "../../issues/desk";
import { meant } from "../../issues/meant";
import { shortId } from "../../issues/short-id";
import { tokenSeen } from "../../issues/stamps";
import { uncommittedIssues } from "../../issues/uncommitted";
import { checkedTerms, type LeaseTerms, tellLedger, warnOfTwin } from "../../locks/operations";
import { claimFor, ownClaim } from "../issue-claim";
import { branchForIssue, checkBranch } from "../names";
import { type Created, createWorktree, undoCreation } from "../new-worktree";
import { placeNamed, type Yard } from "../place";
import { settleRemovals } from "../removal";
import { runSetup } from "../setup";

export interface CreateRequest
  extends Omit<HolderRequest, "requestId">,
    Pick<LeaseTerms, "ttlSecs" | "reason" | "signal"> {
  /** New or not. Default: named by the issue. */
  readonly branch?: string | undefined;
  /** What it is for. The caller's own claim on it moves along. */
  readonly issue?: string | undefined;
  /** Claim the issue from there; `ttlSecs`, `reason`, `secret` and `signal` are about that. */
  readonly claim?: boolean;
  /** Though it waits for another issue; needs a reason. */
  readonly allowBlocked?: boolean;
  /** Where a new branch starts. Default: HEAD. */
  readonly base?: string | undefined;
  /** Where it goes, outside the repository. Default: beside the main one. */
  readonly path?: string | undefined;
  /** Without what `worktree.copy` names. */
  readonly noCopy?: boolean;
  /** Without running `worktree.setup`. */
  readonly noSetup?: boolean;
  /** What settings of harnesses start there; without it they do not ask. */
  readonly program?: InstallHow["program"];
  readonly onProgress?: (line: string) => void;
}

export interface CreatedWorktree extends Created {
  readonly agentId: string;
  readonly issueId: Ulid | null;
  /** Settings of harnesses that ask before each write there. */
  readonly guards: readonly SitePlan[];
  readonly setup: "done" | "failed" | null;
  /** The claim from there. */
  readonly lease: Lease | null;
  readonly claimMoved: boolean;
}

/** A worktree for a branch or an issue, ready to be worked in. */
export async function create(workspace: Workspace, request: CreateRequest): Promise<CreatedWorktree> {
  const issue = await issueWanted(workspace, request);
  const branch = request.branch ?? issue?.branch;
  if (branch === undefined)
    throw new CotenantError("E_USAGE", "a worktree is made for a branch or for an issue", {
      hint: "cotenant worktree create work/login, or --issue <id>",
    });
  checkBranch(branch);
  if (request.ttlSecs !== undefined && request.claim !== true)
    throw usageError("--ttl is about the claim, but --claim is missing", "add --claim");
  const terms = await checkedTerms(workspace, request, [], "claim");
  const { secret = null } = await proofOf(workspace, request);
  if (issue?.own != null) (await workspace.session("read")).refuseWrong(secret, [issue.own]);
  const trees = await workspace.surroundings.tools.trees();
  const yard: Yard = { workspace, session: await workspace.session("write"), trees };
  await settleRemovals(yard);
  const created = await createWorktree(yard, {
    branch,
    base: request.base ?? null,
    place: request.path === undefined ? null : placeNamed(workspace, request.path),
    issueId: issue?.id ?? null,
    copies: request.noCopy !== true,
  });
  const there = await workspace.elsewhere(created.root);
  const session = await there.session("write");
  const wish = { ...terms, secret, holder: await workspace.holder() };
  const grant =
    issue !== null && (request.claim === true || issue.own !== null)
      ? await claimThere(workspace, session, issue, request, wish).catch(async (error: unknown) => {
          // Nothing has happened in it: it goes as it came.
          await undoCreation(yard, created);
          throw error;
        })
      : null;
  if (grant !== null) tellLedger(workspace, grant);
  if (issue?.own != null) await warnOfTwin(workspace, wish.holder, [issue.own]);
  if (issue !== null) await warnOfUncommitted(workspace, issue.id);
  const carried =
    request.program === undefined
      ? { plans: [], failures: [] }
      : await carryAgents(workspace, there, request.program);
  workspace.warnings.push(...carried.failures);
  return {
    ...created,
    agentId: session.actor.agentId,
    issueId: issue?.id ?? null,
    guards: carried.plans,
    setup: request.noSetup === true ? null : await setUp(yard, created, request.onProgress),
    lease: grant?.leases[0] ?? null,
    claimMoved: grant !== null && issue?.own != null,
  };
}

interface IssueWanted {
  readonly id: Ulid;
  readonly branch: string;
  /** The caller's claim on it. */
  readonly own: Lease | null;
  readonly aboveToken: number;
}

async function issueWanted(workspace: Workspace, request: CreateRequest): Promise<IssueWanted | null> {
  const { issue: typed, claim = false, allowBlocked = false, reason } = request;
  if (typed === undefined) {
    if (!claim) return null;
    throw usageError("--claim claims an issue, but --issue is missing", "add --issue <id>");
  }
  const reader = await issuesIn(workspace);
  const found = await meant(reader, typed);
  const { id, issue } = found;
  if (allowBlocked) givenReason(reason, "claiming an issue that waits for another");
  // Without a claim it may be prepared for later.
  await refuseUnclaimable(reader, found, { allowsBlocked: allowBlocked || !claim });
  return {
    id,
    own: await claimOf(workspace, id, claim),
    aboveToken: tokenSeen([issue]),
    branch: branchForIssue(shortId(id, await reader.ids()), issue.title),
  };
}

/** Before anything is made: the claim itself decides, but mostly this spares the work. */
async function claimOf(workspace: Workspace, id: Ulid, isWanted: boolean): Promise<Lease | null> {
  const { actor } = await workspace.session("read");
  try {
    return await ownClaim(workspace.coordinator, actor, keyOfIssue(id));
  } catch (error) {
    // Whose issue it is matters only to those who want to claim it.
    if (!isWanted && error instanceof CotenantError && error.code === "E_LOCK_CONFLICT") return null;
    throw error;
  }
}

async function claimThere(
  workspace: Workspace,
  there: Session,
  { id, own, aboveToken }: IssueWanted,
  request: CreateRequest,
  wish: Parameters<typeof claimFor>[3],
) {
  const { signal } = request;
  const interrupted = signal === undefined ? {} : { interrupted: signal };
  const granted = await claimFor(there, keyOfIssue(id), own, { ...wish, ...interrupted, aboveToken });
  await confirmClaim(there, granted, () => issueWanted(workspace, request));
  return granted;
}

/** Git refuses to merge a branch over files that are not committed where it is merged: said while it costs one command. */
async function warnOfUncommitted({ repository, surroundings, warnings }: Workspace, id: Ulid): Promise<void> {
  const { worktreeRoot, mainWorktreeRoot } = repository;
  for (const root of new Set([worktreeRoot, mainWorktreeRoot ?? worktreeRoot])) {
    if (!(await uncommittedIssues(surroundings.git, root)).includes(id)) continue;
    const where = shellWord(root);
    warnings.push(
      `issue ${id} is not committed in ${printable(root, 500)}; before the branch is merged there: git -C ${where} add .cotenant && git -C ${where} commit -m 'Add issue ${id}'`,
    );
  }
}

async function setUp(
  yard: Yard,
  created: Created,
  onProgress: CreateRequest["onProgress"],
): Promise<"done" | "failed" | null> {
  const { config, surroundings, warnings } = yard.workspace;
  const line = config.values["worktree.setup"];
  if (line === null) return null;
  const root = printable(created.root, 500);
  onProgress?.(`running ${printable(line, 300)} in ${root}`);
  const end = await runSetup(yard, await surroundings.tools.commands(), created, line);
  if (end.exitStatus === 0 && !end.timedOut) return "done";
  const how = end.timedOut ? "did not end in time" : `ended with ${end.exitStatus ?? end.signal}`;
  const last = printable(end.output.trim().split("\n").at(-1) ?? "", 300);
  warnings.push(`worktree.setup ${how}: ${last}; run it again in ${root}`);
  return "failed";
}
