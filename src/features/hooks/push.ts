import type { Coordinator } from "../../coordinator/contract";
import { CommitReader, type Revisions } from "../../git/commits";
import { parseUlid } from "../../kernel/ids";
import { isPathKey, issueKey, type LeaseKey } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import type { PathRuleSet } from "../../kernel/path-rules";
import { isRefusal } from "../../kernel/refusal";
import type { Git, GitPlace } from "../../platform/git";
import type { Digest } from "../../platform/platform";
import { brokenRules, RuleJudge } from "./path-rules";
import { type BranchRules, branchObjections } from "./push-branches";
import { withEdits } from "./push-edits";
import { FileJudge } from "./push-files";
import {
  aboutCommit,
  type HeldClaim,
  issueObjections,
  oldest,
  type PushedCommit,
  type PushObjection,
  type PushQuestion,
  shortOf,
  takenOverBy,
} from "./push-rules";
import { type TipCourt, type TipMove, tipObjections } from "./push-tips";
import { spellingObjections } from "./spelling";
import { recordedViolations } from "./violations";
import { type LogWitness, type Witness, witnessOf } from "./witness";

/** Where commits are looked at, and who can testify. */
export interface Court {
  readonly git: Git;
  readonly place: GitPlace;
  /** Null where there is no store that could testify. */
  readonly coordinator: Coordinator | null;
  /** What claims that are kept on a remote say, beside the store; null where there are none. */
  readonly claims: Testimony | null;
  readonly digest: Digest;
  readonly mode: PushQuestion["mode"];
  /** What rules a path. */
  readonly keyOf: (path: string) => LeaseKey;
  /** Which agents may write where. */
  readonly pathRules: PathRuleSet;
  /** Who pushes; null where that is not known. */
  readonly pusher: string | null;
  readonly hasHooks: PushQuestion["hasHooks"];
  /** Null where commits are looked at that go nowhere. */
  readonly branches: BranchRules | null;
}

/** Evidence from outside the log. */
export interface Testimony {
  readonly witness: Witness;
  readonly held: ReadonlyMap<string, HeldClaim>;
}

export interface PushJudgement {
  readonly commits: readonly PushedCommit[];
  readonly objections: readonly PushObjection[];
}

/** What speaks against these revisions, as `git rev-list` names them, and against what they make of the refs. */
export async function judgeRevisions(
  court: Court,
  revisions: Revisions,
  moves: readonly TipMove[],
): Promise<PushJudgement> {
  const { git, place, coordinator, claims, mode, digest, pusher, hasHooks } = court;
  const reader = new CommitReader(git, place);
  const sources = { git, place, reader, digest };
  const commits = await withEdits(sources, await reader.changing(revisions));
  const branchwise = [
    ...commits.flatMap(misspelt),
    ...(court.branches === null ? [] : await branchObjections(reader, court.branches, moves, commits)),
  ];
  const rules = await RuleJudge.of(court.pathRules, court, sources, commits);
  const broken = court.branches === null ? [] : await brokenRules(sources, court.branches, moves);
  const judged = new Set(commits.map(({ oid }) => oid));
  const main = court.branches?.main?.commit ?? null;
  // Where nothing is known of any lease, nobody can say that one was missing.
  if (coordinator === null && claims === null) {
    const objections = rules === null ? [] : commits.flatMap((commit) => rules.objections(commit));
    const keepers = rules === null ? [] : [rules];
    await addTips(objections, { sources, testify: null, keepers, main, judged }, moves);
    return { commits, objections: [...objections, ...branchwise, ...broken] };
  }
  const sinceMs = oldest(commits);
  const log = coordinator === null ? null : await witnessOf(coordinator, sinceMs);
  // Of commits that came earlier, the log has to be read from earlier on.
  const testify = async (fromMs: number) =>
    both(coordinator === null || fromMs >= sinceMs ? log : await witnessOf(coordinator, fromMs), claims);
  const held = new Map([...(await heldNow(coordinator, commits)), ...(claims?.held ?? [])]);
  const witness = both(log, claims);
  const takenOver = takenOverBy({ witness, held }, commits);
  const question: PushQuestion = { witness, held, mode, pusher, takenOver, hasHooks };
  const judge = log === null ? null : await fileJudge(court, log);
  const objections = commits.flatMap((commit) => {
    const files = judge?.objections(commit) ?? [];
    // What is on record against the very rule need not be said twice.
    const said = new Set(files.filter(({ code }) => code === "E_PATH_RULE").map(({ path }) => path));
    const ruled = (rules?.objections(commit) ?? []).filter(({ path }) => !said.has(path));
    return [...issueObjections(question, commit), ...files, ...ruled];
  });
  const keepers = [judge, rules].filter((keeper) => keeper !== null);
  await addTips(objections, { sources, testify, keepers, main, judged }, moves);
  return { commits, objections: [...objections, ...branchwise, ...broken] };
}

function misspelt(commit: PushedCommit): PushObjection[] {
  return spellingObjections(commit.changes).map((objection) => ({
    ...objection,
    ...aboutCommit(commit, objection.path),
    message: `${shortOf(commit)}: ${objection.message}`,
  }));
}

/** What a commit is refused for need not be said again of where it leads. */
async function addTips(
  objections: PushObjection[],
  court: TipCourt,
  moves: readonly TipMove[],
): Promise<void> {
  if (court.testify === null && court.keepers.length === 0) return;
  const said = new Set(objections.map(({ path }) => path));
  for (const move of moves)
    for (const objection of await tipObjections(court, move))
      if (!said.has(objection.path)) objections.push(objection);
}

/** The store's own word counts beside what a remote says. */
function both(log: LogWitness | null, claims: Testimony | null): Witness {
  return {
    lease: (id) => claims?.witness.lease(id) ?? log?.lease(id) ?? null,
    written: (id, digest) => log?.written(id, digest) ?? claims?.witness.written(id, digest) ?? null,
  };
}

async function fileJudge(
  { coordinator, keyOf, mode, pusher, hasHooks }: Court,
  witness: LogWitness,
): Promise<FileJudge> {
  const leases = (await coordinator!.list()).filter(({ lease }) => isPathKey(lease.key));
  return new FileJudge({
    witness,
    held: leases.filter(({ standing, stale }) => standing === "valid" && !stale).map(({ lease }) => lease),
    keyOf,
    violations: await recordedViolations(coordinator!),
    mode,
    pusher,
    hasHooks,
  });
}

async function heldNow(
  coordinator: Coordinator | null,
  commits: readonly PushedCommit[],
): Promise<ReadonlyMap<string, Lease>> {
  const ids = new Set(commits.flatMap(({ edits }) => edits.map(({ issueId }) => issueId)));
  const refs = [...ids].flatMap((text) => {
    const id = parseUlid(text);
    const key = isRefusal(id) ? id : issueKey(id);
    return isRefusal(key) ? [] : [{ key, leaseId: null }];
  });
  const found = coordinator === null || refs.length === 0 ? [] : await coordinator.find(refs);
  const valid = found.filter(({ standing }) => standing === "valid");
  return new Map(valid.map(({ lease }) => [lease.key.slice("issue:".length), lease]));
}
