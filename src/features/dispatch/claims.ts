import { refuseRuled } from "../../coordinator/path-rules";
import { CotenantError, orThrow } from "../../errors/cotenant-error";
import { printable, type Ulid } from "../../kernel/ids";
import { dirKey, fileKey, issueKeyOf, issueOf, kindOf, type LeaseKey } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import type { IssueRow } from "../issues/board";
import { issuesIn } from "../issues/desk";
import { type Taken, takeNext } from "../issues/next";
import { type Answer, type Filter, HeldFiles, queryAvailable } from "../issues/query";
import type { IssueReader } from "../issues/reader";
import { isFound } from "../issues/resolve";
import { shortId } from "../issues/short-id";
import { tokenSeen } from "../issues/stamps";
import { hearOfClaims, workersIn } from "../ledger/workers";
import { workRecords } from "./record";
import type { ClaimOutcome } from "./report";
import type { Station } from "./slots";

/** An issue that a worker has claimed, with the files that it declares. */
export interface ClaimedIssue {
  readonly row: Pick<IssueRow, "id" | "shortId" | "title" | "dependencies">;
  readonly claim: Lease;
  readonly files: readonly Lease[];
  readonly outcome: ClaimOutcome;
}

/** Takes what is available, but for what this run is through with. */
export interface Wanted {
  readonly filter: Filter;
  isExcluded(id: Ulid): boolean;
}

/** What could be taken from a worktree now: the most urgent first, none whose files somebody else holds. */
export async function availableAt(
  { workspace, session }: Pick<Station, "workspace" | "session">,
  reader: IssueReader,
  { filter, isExcluded }: Wanted,
): Promise<Answer> {
  const setting = {
    reader,
    hierarchy: workspace.config.values["types.hierarchy"],
    ...(await workersIn(workspace)),
  };
  const { worktreeId } = session.actor;
  const held = new HeldFiles(await workspace.coordinator.list(), session.actor, worktreeId);
  const answer = await queryAvailable(setting, filter, held);
  return { ...answer, issues: answer.issues.filter(({ id }) => !isExcluded(id)) };
}

/** The most urgent issue that nobody else gets before us, with its files; null where there is none. */
export async function claimNext(
  station: Station,
  wanted: Wanted,
  say: (line: string) => void,
): Promise<ClaimedIssue | null> {
  const { workspace, session } = station;
  await hearOfClaims(workspace);
  const reader = await issuesIn(workspace);
  const ttlSecs = await workspace.usualTtlSecs("claim");
  const passedOver = new Set<Ulid>();
  const files = new Map<Ulid, readonly Lease[]>();
  const taken = await takeNext({
    reader,
    look: () =>
      availableAt(station, reader, {
        ...wanted,
        isExcluded: (id) => passedOver.has(id) || wanted.isExcluded(id),
      }),
    claims: async () => (await workersIn(workspace)).claims,
    acquire: async (id) => {
      const found = await reader.get(id);
      const keys = [{ key: keyOf(id), reach: "repository" as const }];
      const aboveToken = tokenSeen([found.issue]);
      const grant = await session.acquire(keys, { ttlSecs, aboveToken, reason: "dispatch" });
      try {
        files.set(id, await takeFiles(station, found.issue.files, ttlSecs, say));
      } catch (error) {
        await session.release([{ key: keyOf(id), leaseId: null }]).catch(() => {});
        passedOver.add(id);
        throw error;
      }
      return grant;
    },
    release: async ({ leases }) => {
      const ids = leases.map(({ key }) => issueOf(key));
      const held = [...leases, ...ids.flatMap((id) => files.get(id) ?? [])];
      for (const id of ids) passedOver.add(id);
      await session.release(held.map(({ key, leaseId }) => ({ key, leaseId })));
    },
  });
  return taken === null ? null : claimed(taken, files.get(taken.issue.id) ?? []);
}

function claimed({ issue, grant }: Taken, files: readonly Lease[]): ClaimedIssue {
  const { ledger, leases } = grant;
  const offline = ledger?.isOffline ?? false;
  const degraded = ledger?.isDegraded ?? false;
  const outcome = {
    success: true,
    reason: null,
    offline,
    degraded,
    error: degraded ? (ledger?.warnings[0] ?? null) : null,
  };
  return { row: issue, claim: leases[0]!, files, outcome };
}

function keyOf(id: Ulid): LeaseKey {
  return issueKeyOf(id);
}

/**
 * What an issue says that it changes is the worker's while it works on it: whoever would change the same in another worktree gets
 * another issue, and no conflict when both land. Names that cannot be leased are passed over: declaring them is a help, and no rule.
 */
async function takeFiles(
  { workspace, session, root }: Station,
  paths: readonly string[],
  ttlSecs: number,
  say: (line: string) => void,
): Promise<readonly Lease[]> {
  const keys: LeaseKey[] = [];
  for (const path of paths) {
    try {
      const { path: named, isDirectory } = await workspace.path(`${root}/${path}`);
      const key = orThrow(isDirectory === true ? dirKey(named) : fileKey(named));
      await refuseRuled(workspace, [key]);
      keys.push(key);
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      say(`the declared file ${printable(path, 200)} is not leased: ${error.message}`);
    }
  }
  if (keys.length === 0) return [];
  const wanted = [...new Set(keys)].map((key) => ({ key, reach: "repository" as const }));
  return (await session.acquire(wanted, { ttlSecs, reason: "declared by the issue" })).leases;
}

/** What a killed run of this very worker holds still, as if it had just been taken. Ended issues are let go. */
export async function claimsLeft(station: Station): Promise<ClaimedIssue[]> {
  const { workspace, session } = station;
  const valid = (await session.mine())
    .filter(({ standing }) => standing === "valid")
    .map(({ lease }) => lease);
  const kept = valid.filter(({ key }) => kindOf(key) === "issue");
  const claims = [...kept, ...(await claimDelivered(station, kept))];
  if (claims.length === 0) return [];
  const reader = await issuesIn(workspace);
  const ids = await reader.ids();
  const left: ClaimedIssue[] = [];
  for (const claim of claims) {
    const id = issueOf(claim.key);
    const found = await reader.find(id);
    const isThere = isFound(found);
    const row = {
      id,
      shortId: shortId(id, ids),
      title: isThere ? found.issue.title : "",
      dependencies: isThere ? found.dependencies : [],
    };
    const files = left.length === 0 ? valid.filter(({ key }) => ["file", "dir"].includes(kindOf(key))) : [];
    const outcome = { success: true, reason: null, offline: false, degraded: false, error: null };
    left.push({ row, claim, files, outcome });
  }
  return left;
}

/** What is delivered and only lacks its end, where the claim has run out meanwhile: it counts as done, so nobody takes it. */
async function claimDelivered(
  { workspace, session, slot }: Station,
  kept: readonly Lease[],
): Promise<readonly Lease[]> {
  const records = [...(await workRecords(workspace.coordinator)).values()].filter(
    ({ agentId, stage, issueId }) =>
      agentId === slot.agentId && stage === "delivered" && !kept.some(({ key }) => key === keyOf(issueId)),
  );
  if (records.length === 0) return [];
  const reader = await issuesIn(workspace);
  const ttlSecs = await workspace.usualTtlSecs("claim");
  const claims: Lease[] = [];
  for (const { issueId } of records) {
    const found = await reader.find(issueId);
    if (!isFound(found)) continue;
    try {
      const keys = [{ key: keyOf(issueId), reach: "repository" as const }];
      const aboveToken = tokenSeen([found.issue]);
      claims.push(...(await session.acquire(keys, { ttlSecs, aboveToken, reason: "dispatch" })).leases);
    } catch (error) {
      // Whoever has it now ends it.
      if (!(error instanceof CotenantError)) throw error;
    }
  }
  return claims;
}
