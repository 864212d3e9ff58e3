import type { Change, LeaseStatus, Wait } from "../../coordinator/contract";
import { refuseRuled } from "../../coordinator/path-rules";
import { type Pausing, pauseRepository, resumeRepository } from "../../coordinator/pause";
import {
  type ChangeRequest,
  givenReason,
  type HolderRequest,
  proofOf,
  requestIdOf,
} from "../../coordinator/requests";
import type { Acquired, Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, orThrow } from "../../errors/cotenant-error";
import { dirtyPaths, pathspecsOf } from "../../identity/dirty-paths";
import type { Cover } from "../../identity/patterns";
import type { Actor, LeaseRef } from "../../kernel/commands";
import { printable } from "../../kernel/ids";
import { isInside, isPathKey, type LeaseKey, nameOf, pathOf, type RepoPath } from "../../kernel/keys";
import { isLandingKey } from "../../kernel/landing-right";
import type { Bind, Holder, Lease, Reach } from "../../kernel/lease";
import type { Pause } from "../../kernel/pause";
import { checkIndefinite, checkText, checkTtl } from "../../kernel/policy";
import type { Ticket } from "../../kernel/tickets";
import { twinOf } from "../guard/calling-process";
import { coversOf, keysOf, type LockTargets, leaseRefsOf, pathNamed } from "./targets";

/** Leases on files, directories, resources and refs, and what leases of every kind have in common. */

/** On which terms something is leased. */
export interface LeaseTerms extends ChangeRequest {
  /** How long it lasts unless renewed; 0, with a reason: without expiry. Default: the repository's or the agent's own. */
  readonly ttlSecs?: number | undefined;
  /** `process`: the lease lives exactly as long as the calling process. Default `ttl`. */
  readonly bind?: Bind | undefined;
  readonly reach?: Reach | undefined;
  readonly reason?: string | undefined;
  readonly note?: string | undefined;
  /** Wait in the queue where somebody else holds it. */
  readonly wait?: Waiting | undefined;
  /** Of claims that are shared between machines: without asking the others. */
  readonly offline?: boolean | undefined;
  /** Takes back what was begun, and rejects. */
  readonly signal?: AbortSignal | undefined;
}

export interface Waiting {
  /** Default 300. */
  readonly timeoutSecs?: number | undefined;
  /** Told whenever the caller's place in the queue changes. */
  readonly onWait?: ((place: { readonly ahead: number; readonly message: string }) => void) | undefined;
}

/** What a command or another operation wants leased. */
export interface Wish {
  readonly keys: readonly LeaseKey[];
  readonly steal?: boolean;
  readonly aboveToken?: number;
  /** Asked when it is granted: throws, and gives it back, where it may not be had any more. */
  readonly confirm?: (session: Session, grant: Acquired) => Promise<void>;
}

const DEFAULT_WAIT_SECS = 300;
const MAX_WAIT_SECS = 7 * 86_400;

/** How long to wait at most, if at all. */
export function waitMs({ timeoutSecs: secs = DEFAULT_WAIT_SECS }: Waiting = {}): number {
  if (secs <= MAX_WAIT_SECS) return secs * 1000;
  throw new CotenantError("E_LIMIT", `--timeout ${secs} is over the limit of ${MAX_WAIT_SECS} s`, {
    hint: "wait for less, and ask again when that is over",
  });
}

/** How a session waits, on these terms. */
export function waitOf({ wait, signal }: LeaseTerms): Wait | null {
  if (wait === undefined) return null;
  return {
    timeoutMs: waitMs(wait),
    ...(wait.onWait === undefined ? {} : { onWait: wait.onWait }),
    ...(signal === undefined ? {} : { signal }),
  };
}

/** All that can be wrong with the terms alone, before anything is written. */
export async function checkedTerms(
  workspace: Workspace,
  terms: LeaseTerms,
  keys: readonly LeaseKey[],
  noun: "claim" | "lock",
) {
  waitMs(terms.wait);
  const requestId = requestIdOf(workspace, terms);
  const ttlSecs = terms.ttlSecs ?? (await workspace.usualTtlSecs(noun));
  const { reason = null, note = null } = terms;
  orThrow(checkText(reason, "reason") ?? checkText(note, "note"));
  const { agentId } = await workspace.agent();
  const { policy } = workspace.config;
  orThrow(checkTtl(ttlSecs, agentId, policy));
  // What others hold without expiry is looked at later, under the mutex; all else can be said now.
  if (ttlSecs === 0) orThrow(checkIndefinite(keys, agentId, reason, [], policy));
  return { ttlSecs, reason, note, requestId, ...(terms.bind === undefined ? {} : { bind: terms.bind }) };
}

/** What every operation that leases something ends in. */
export async function acquireLeases(workspace: Workspace, wish: Wish, terms: LeaseTerms): Promise<Acquired> {
  const { keys } = wish;
  const isClaim = keys.some((key) => key.startsWith("issue:"));
  const checked = await checkedTerms(workspace, terms, keys, isClaim ? "claim" : "lock");
  await refuseRuled(workspace, keys);
  const session = await workspace.session("write");
  const holder = await workspace.holder();
  const { reach = "repository", signal } = terms;
  const grant = await session.acquire(
    keys.map((key) => ({ key, reach })),
    {
      ...checked,
      holder,
      steal: wish.steal ?? false,
      aboveToken: wish.aboveToken ?? 0,
      isOffline: terms.offline ?? false,
      ...(signal === undefined ? {} : { interrupted: signal }),
      wait: waitOf(terms),
    },
  );
  await wish.confirm?.(session, grant);
  tellLedger(workspace, grant);
  await warnOfTwin(
    workspace,
    holder,
    grant.leases.filter((lease) => !grant.fresh.includes(lease)),
  );
  warnOfKeptWords(workspace, checked, grant);
  return withLedger(workspace, grant);
}

/** What people should hear of how a change of claims went beyond this clone. */
export function tellLedger(workspace: Workspace, { ledger }: Pick<Change, "ledger">): void {
  if (ledger !== undefined) workspace.warnings.push(...ledger.warnings);
}

/** A claim that was held and confirmed already needed no answer of the remote: its answer says so all the same. */
export function withLedger<G extends Change>(workspace: Workspace, grant: G): G {
  const claim = grant.leases.find(({ key }) => key.startsWith("issue:"));
  if (grant.ledger !== undefined || claim === undefined) return grant;
  if (workspace.config.values["sync.ledger_branch"] === null) return grant;
  const ledger = { claimedBy: claim.agentId, retries: 0, isOffline: false, isDegraded: false, warnings: [] };
  return { ...grant, ledger };
}

/** A lease that stands is not written anew: its reason and note stay, and a caller who gave others must hear so. */
function warnOfKeptWords(
  workspace: Workspace,
  { reason, note }: { readonly reason: string | null; readonly note: string | null },
  { leases, fresh, replayed }: Acquired,
): void {
  if (replayed) return;
  for (const lease of leases.filter((one) => !fresh.includes(one)))
    for (const [word, given, kept] of [
      ["reason", reason, lease.reason],
      ["note", note, lease.note],
    ] as const)
      if (given !== null && given !== kept)
        workspace.warnings.push(
          `${printable(lease.key)} was yours already and keeps ${kept === null ? `no ${word}` : `its ${word} "${printable(kept, 100)}"`}: release it first to take it with another`,
        );
}

/** What one agent is given is given to everybody of its name: those who share it without knowing must hear so. */
export async function warnOfTwin(
  workspace: Workspace,
  mine: Holder,
  /** Those that were held under the name before. */
  held: readonly Lease[],
  what = "THIS",
): Promise<void> {
  const twin = await twinOf(workspace.surroundings.platform.processes, mine, held);
  if (twin === null) return;
  const { agentId } = held[0]!;
  workspace.warnings.push(
    `ANOTHER LIVE PROCESS HOLDS ${what} UNDER THE SAME NAME: process ${twin.pid} uses ${agentId}, too. If that is another agent, nothing keeps the two apart: give each its own COTENANT_AGENT_ID or COTENANT_SESSION_ID`,
  );
}

export interface RenewRequest extends HolderRequest {
  /** Counted anew from now. Default: the lease's own. */
  readonly ttlSecs?: number | undefined;
  /** Past the total lifetime; needs a reason. */
  readonly overrideMax?: boolean | undefined;
  readonly reason?: string | undefined;
}

export async function renewLeases(
  workspace: Workspace,
  leases: readonly LeaseRef[],
  request: RenewRequest,
): Promise<Change> {
  const { ttlSecs = null, overrideMax = false, reason = null } = request;
  const proof = await proofOf(workspace, request);
  if (overrideMax) givenReason(reason, "--override-max");
  const { agentId } = await workspace.agent();
  orThrow(checkTtl(ttlSecs ?? 0, agentId, workspace.config.policy));
  orThrow(checkText(reason, "reason"));
  const session = await workspace.session("write");
  const holder = await workspace.holder();
  const change = await session.renew(leases, { ...proof, ttlSecs, overrideMax, reason, holder });
  tellLedger(workspace, change);
  return change;
}

export interface ReleaseRequest extends HolderRequest {
  readonly reason?: string | undefined;
}

export async function releaseLeases(
  workspace: Workspace,
  leases: readonly LeaseRef[],
  request: ReleaseRequest,
): Promise<Change> {
  const { reason = null } = request;
  orThrow(checkText(reason, "reason"));
  const proof = await proofOf(workspace, request);
  const session = await workspace.session("write");
  const change = await session.release(leases, { ...proof, reason });
  tellLedger(workspace, change);
  return change;
}

/** The next holder finds these changes, and cannot know whose they are. */
async function uncommittedIn(workspace: Workspace, leases: readonly Lease[]): Promise<string[]> {
  const { git } = workspace.surroundings;
  const { identity } = await workspace.worktree("read");
  const paths = leases
    .filter(({ key, worktreeId }) => /^(?:file|dir):/.test(key) && worktreeId === identity.worktreeId)
    .map(({ key }) => nameOf(key));
  if (paths.length === 0) return [];
  const { worktreeRoot } = workspace.repository;
  const dirty = await dirtyPaths(git, worktreeRoot, pathspecsOf(paths)).catch(() => []);
  const [first] = dirty;
  if (first === undefined) return [];
  const others = dirty.length - 1;
  const more = others === 0 ? "" : ` and ${others} other${others === 1 ? "" : "s"}`;
  return [
    `${printable(first, 300)}${more} in what you released ${others === 0 ? "has" : "have"} uncommitted changes: whoever takes it next in this worktree finds them`,
  ];
}

export interface LockRequest extends LeaseTerms, LockTargets {
  /** Patterns of Git's: the smallest directory that covers what matches each is leased. */
  readonly globs?: readonly string[];
}

export interface Locked extends Acquired {
  /** What each pattern matches now, and which directory was leased for it. */
  readonly covers: readonly Cover[];
}

export interface LockStatus {
  readonly leases: readonly LeaseStatus[];
  readonly waiters: readonly Ticket[];
  /** How many have lapsed and are free to take. */
  readonly lapsed: number;
  /** Who is looking; null where nobody has said so. */
  readonly me: Actor | null;
}

/** All of these act on everything that they name, or on nothing. */
export const lock = {
  async acquire(workspace: Workspace, request: LockRequest): Promise<Locked> {
    const covers = await coversOf(workspace, request.globs ?? []);
    const keys = await keysOf(workspace, request, covers);
    return { ...(await acquireLeases(workspace, { keys }, request)), covers };
  },

  /** Ends what stands in the way and takes the lock, in one step. */
  async steal(workspace: Workspace, request: LeaseTerms & LockTargets): Promise<Acquired> {
    return acquireLeases(workspace, { keys: await keysOf(workspace, request), steal: true }, request);
  },

  async renew(workspace: Workspace, request: RenewRequest & LockTargets): Promise<Change> {
    return renewLeases(workspace, await leaseRefsOf(workspace, request), request);
  },

  async release(workspace: Workspace, request: ReleaseRequest & LockTargets): Promise<Change> {
    const change = await releaseLeases(workspace, await leaseRefsOf(workspace, request), request);
    workspace.warnings.push(...(await uncommittedIn(workspace, change.leases)));
    return change;
  },

  /** Who holds what, issues apart, and who waits. `all`: also what has lapsed and nobody has taken since. */
  async status(
    workspace: Workspace,
    { path, all = false }: { readonly path?: string | undefined; readonly all?: boolean } = {},
  ): Promise<LockStatus> {
    const hint = "name a file or a directory: everything in it is shown, too";
    const prefix = path === undefined ? null : (await pathNamed(workspace, path, hint)).path;
    workspace.seen = await workspace.coordinator.list({ lapsed: true });
    const locks = workspace.seen.filter(
      ({ lease }) =>
        (!lease.key.startsWith("issue:") || isLandingKey(lease.key)) && reachesInto(lease.key, prefix),
    );
    const valid = locks.filter(({ standing }) => standing === "valid");
    return {
      leases: all ? locks : valid,
      waiters: await workspace.coordinator.waiters(),
      lapsed: locks.length - valid.length,
      me: await workspace.actorOrNull(),
    };
  },

  /** Logs the end of leases that have lapsed. */
  async gc(workspace: Workspace): Promise<Change> {
    const { actor } = await workspace.session("write");
    return workspace.coordinator.gc({ actor });
  },
};

/** Whether a lease on the key reaches into the prefix: on it, in it, or on a directory around it. */
export function reachesInto(key: LeaseKey, prefix: RepoPath | null): boolean {
  if (prefix === null) return true;
  if (!isPathKey(key)) return false;
  const path = pathOf(key);
  return path === prefix || isInside(path, prefix) || (key.startsWith("dir:") && isInside(prefix, path));
}

/** Stops all new grants, for people. */
export async function pause(
  workspace: Workspace,
  request: { readonly reason?: string | undefined },
): Promise<Pausing> {
  const reason = givenReason(request.reason, "a pause");
  return pauseRepository(await workspace.session("write"), reason);
}

/** Ends a pause; null where nothing was paused. */
export async function resume(workspace: Workspace): Promise<Pause | null> {
  return resumeRepository(await workspace.session("write"));
}
