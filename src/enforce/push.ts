import type { Coordinator } from "../coordinator/contract";
import { decodeIssue } from "../issues/model";
import { issueKey } from "../kernel/keys";
import type { Lease } from "../kernel/lease";
import { isRefusal } from "../kernel/refusal";
import type { Git } from "../platform/git";
import type { Digest } from "../platform/platform";
import { blobs } from "./changes";
import { issueOf } from "./commit-rules";
import { type HeldClaim, judgePush, type PushObjection, type PushQuestion } from "./push-rules";
import { type GuardedCommit, guardedCommits, type Place, type Revisions } from "./pushed";
import { type Witness, witnessOf } from "./witness";

/** Where commits are looked at, and who can testify. */
export interface Court {
  readonly git: Git;
  readonly place: Place;
  /** Null where there is no store that could testify. */
  readonly coordinator: Coordinator | null;
  /** What claims that are kept on a remote say, beside the store; null where there are none. */
  readonly claims: Testimony | null;
  readonly digest: Digest;
  readonly mode: PushQuestion["mode"];
}

/** What somebody else than the log knows. */
export interface Testimony {
  readonly witness: Witness;
  readonly held: ReadonlyMap<string, HeldClaim>;
}

export interface PushJudgement {
  readonly commits: readonly GuardedCommit[];
  readonly objections: readonly PushObjection[];
}

/** What speaks against these revisions, as `git rev-list` names them. */
export async function judgeRevisions(court: Court, revisions: Revisions): Promise<PushJudgement> {
  const { git, place, coordinator, claims, mode } = court;
  const commits = await guardedCommits(git, place, revisions);
  if (commits.length === 0) return { commits, objections: [] };
  const content = await contentsOf(court, commits);
  const oldestMs = Math.min(
    ...commits.map(({ authoredAtMs, committedAtMs }) => Math.min(authoredAtMs, committedAtMs)),
  );
  const store = coordinator === null ? null : await witnessOf(coordinator, oldestMs);
  const here = coordinator === null ? new Map<string, HeldClaim>() : await heldNow(coordinator, commits);
  const witness: Witness = {
    lease: (id) => claims?.witness.lease(id) ?? store?.lease(id) ?? null,
    hasWritten: (id, text) =>
      store?.hasWritten(id, text) === true || claims?.witness.hasWritten(id, text) === true,
  };
  const held = new Map([...here, ...(claims?.held ?? [])]);
  return { commits, objections: judgePush({ commits, content, witness, held, mode }) };
}

async function contentsOf(
  { git, place, digest }: Court,
  commits: readonly GuardedCommit[],
): Promise<PushQuestion["content"]> {
  const files = commits.flatMap(({ changes }) => changes.filter(({ path }) => path.endsWith("/issue.json")));
  const oids = [...new Set(files.flatMap(({ oid }) => (oid === null ? [] : [oid])))];
  const texts = await blobs(git, place, oids);
  return ({ changes }, issueId) => {
    const file = changes.find(({ path }) => path.endsWith(`/${issueId}/issue.json`));
    const text = file?.oid == null ? undefined : texts.get(file.oid);
    if (text === undefined) return { digest: null, version: null };
    const reading = decodeIssue(text);
    return { digest: digest.sha256(text), version: "issue" in reading ? reading.issue.stamp.version : null };
  };
}

async function heldNow(
  coordinator: Coordinator,
  commits: readonly GuardedCommit[],
): Promise<ReadonlyMap<string, Lease>> {
  const ids = new Set(commits.flatMap(({ changes }) => changes.map(({ path }) => issueOf(path))));
  const refs = [...ids].flatMap((id) => {
    const key = id === null ? null : issueKey(id);
    return key === null || isRefusal(key) ? [] : [{ key, leaseId: null }];
  });
  const found = refs.length === 0 ? [] : await coordinator.find(refs);
  const valid = found.filter(({ standing }) => standing === "valid");
  return new Map(valid.map(({ lease }) => [lease.key.slice("issue:".length), lease]));
}
