import type { Workspace } from "../../../coordinator/workspace";
import { printable } from "../../../kernel/ids";
import type { LeaseKey } from "../../../kernel/keys";
import { worldOf } from "../../guard/entry/world-of";
import { keyOf } from "../../guard/git-state";
import { forgetCommitted, holdsFiles, releaseCommitted } from "../../guard/life";
import { type GuardViolation, guardViolations, settleViolations } from "../../guard/violations";
import { type GuardedWorktree, openWorktree } from "../../guard/worktree";
import { committedChanges, givenChanges } from "../changes";
import { type Judgement, judgeHead, judgeStaged } from "../commit";
import { freshTrailers, isMadeOfOthers, isMerging, messageTrailers } from "../commit-message";
import { dropNote, findNote, keepNote } from "../commit-note";
import { namingHolders, type Objection } from "../commit-rules";
import { isAmending, isReverting } from "../git-caller";
import { hooksWord } from "../installation/upkeep";
import type { CommitNote } from "../note-format";
import { enforced, mayBeRuled } from "../path-rules";
import { isReplaying } from "../replay";
import { parseTrailers, trailerLines, withoutTrailers } from "../trailers";
import { recordViolation } from "../violations";
import { type HookAnswer, judged, PASSED, refusalLines, unusableNames } from "./answer";

const ENFORCE = "worktree.enforce_leases";

/**
 * What a commit of what is staged is answered: what somebody else holds, and issues changed without a claim, are refused. `read`:
 * what Git says is staged, if somebody has asked it.
 */
export async function answerStaged(
  workspace: Workspace,
  read: (() => Uint8Array) | null,
): Promise<HookAnswer> {
  const staged = read === null ? null : readStaged(read);
  const mode = workspace.config.values[ENFORCE];
  const paths = staged?.map(({ path }) => path) ?? null;
  if (mode === "off" && !mayBeRuled(workspace, paths)) return PASSED;
  const judgement = await judgeStaged(workspace, staged);
  await noteOf(workspace, judgement);
  const changed = judgement.changes.map(({ path }) => path);
  const committer = judgement.committer?.agentId ?? null;
  const objections = enforced(mode, await withHolders(workspace, judgement.objections));
  const violated = await violatedLines(workspace, changed);
  const remarks =
    violated.length === 0 ? [] : ["cotenant pre-commit: look at these before you commit them:", ...violated];
  const root = workspace.surroundings.env["GIT_PREFIX"] ? ":/" : "";
  const lines = (some: readonly Objection[]) => {
    const theirs = new Set(some.map(({ path }) => path));
    const own = changed.filter((path) => !theirs.has(path));
    return refusalLines("pre-commit", some, committer, { own, root });
  };
  const unusable = unusableNames("pre-commit", await workspace.caller());
  return judged(objections, lines, [...remarks, ...unusable]);
}

/** Null when it cannot be read, or is not all there: then Git is asked again. */
function readStaged(read: () => Uint8Array) {
  try {
    return givenChanges(read());
  } catch {
    return null;
  }
}

/** What was last heard of other machines; nobody is asked, and nothing is loaded where nobody needs to know. */
async function withHolders(
  workspace: Workspace,
  objections: readonly Objection[],
): Promise<readonly Objection[]> {
  if (!objections.some(({ code }) => code === "E_LEASE_REQUIRED")) return objections;
  const { ledgerView } = await import("../../ledger/workers");
  const view = await ledgerView(workspace);
  if (view === null || view.others.size === 0) return objections;
  const { holderOf } = await import("../../ledger/words");
  const held = [...view.others].map(([id, record]) => {
    const { agentId, leaseId } = record;
    return [id, { agentId, leaseId, words: holderOf(record) }] as const;
  });
  return namingHolders(objections, new Map(held));
}

/** Leaves for the hooks that come after this one what was found out about the commit. */
async function noteOf(workspace: Workspace, judgement: Judgement): Promise<CommitNote> {
  const hasRecords = async () => (await workspace.coordinator.glance(["left", "guard-violation"])).length > 0;
  const note: CommitNote = {
    isClean: judgement.objections.length === 0,
    // What the guard has on record may be settled by this commit.
    needsSettling: judgement.isHeld || (await hasRecords()),
    paths: judgement.changes.map(({ path }) => path),
    trailers: trailerLines(await freshTrailers(workspace, judgement), judgement.isRuled),
    isMadeOfOthers: (await amends(workspace, judgement.changes.length)) || (await isMadeOfOthers(workspace)),
  };
  await keepNote(workspace, note);
  return note;
}

/** Where nobody can see it: a commit of nothing that is no merge takes the place of another. */
async function amends(workspace: Workspace, staged: number): Promise<boolean> {
  return (await isAmending(workspace)) ?? (staged === 0 && !(await isMerging(workspace)));
}

/** The message as it says on which claims its commit rests; null where it is as it should be, or the commit is refused. */
export async function answerMessage(
  workspace: Workspace,
  source: string | undefined,
  read: () => string,
): Promise<HookAnswer & { readonly message: Uint8Array | null }> {
  // Git did not call the other one, as it does for all but merges: this commit has been judged by nobody.
  if (source !== "merge" && ((await isReverting(workspace)) || (await lacksPreCommit(workspace)))) {
    const answer = await answerStaged(workspace, null);
    if (answer.isRefused) return { ...answer, message: null };
  }
  const known = await findNote(workspace, "staged");
  const { trailers, paths } = known ?? (await noteOf(workspace, await judgeStaged(workspace)));
  const text = read();
  const lines = await messageTrailers(workspace, parseTrailers(trailers.join("\n")), {
    text,
    isAmending: await amends(workspace, paths.length),
  });
  return { ...PASSED, message: lines.length === 0 ? null : await withTrailers(workspace, text, lines) };
}

/** Git knows where trailers go in a message, and what of it is a comment, if its last line has an end: that of a merge has none. */
async function withTrailers(
  { surroundings, repository }: Workspace,
  text: string,
  lines: readonly string[],
): Promise<Uint8Array | null> {
  const { status, stdout } = await surroundings.git.run(
    ["interpret-trailers", "--if-exists", "add", ...lines.flatMap((line) => ["--trailer", line])],
    { cwd: repository.worktreeRoot, input: withoutTrailers(text).replace(/[^\n]$/, "$&\n") },
  );
  return status === 0 ? stdout : null;
}

async function lacksPreCommit(workspace: Workspace): Promise<boolean> {
  return (await hooksWord(workspace))?.hooks.includes("pre-commit") === true;
}

/** After a commit: gives back what it holds, and puts on record what went around the hooks. */
export async function answerCommitted(workspace: Workspace): Promise<HookAnswer> {
  const known = await findNote(workspace, "committed");
  await dropNote(workspace);
  const isAsked = isEnforced(workspace) || mayBeRuled(workspace, known?.paths ?? null);
  // The pre-commit hook has looked at this very commit.
  const isJudged = !isAsked || known?.isClean === true;
  const lines = isJudged ? [] : await judge(workspace);
  // What is only made anew is given back when all of it is done.
  const settled = (await isReplaying(workspace)) ? [] : await settleCommit(workspace);
  return { isRefused: false, lines: [...lines, ...settled] };
}

/** A variable switches the hooks off for whoever sets it; it does not change what others hold. */
function isEnforced({ config }: Workspace): boolean {
  if (config.values[ENFORCE] !== "off") return true;
  const own = config.layers.find(({ source, entries }) => !PASSING.has(source) && entries.has(ENFORCE));
  return PASSING.has(config.origin(ENFORCE).source) && own?.entries.get(ENFORCE)?.value !== "off";
}

const PASSING: ReadonlySet<string> = new Set(["flag", "environment"]);

/** What the hooks would have refused, had they been asked. */
async function judge(workspace: Workspace): Promise<string[]> {
  const { objections: all, commit } = await judgeHead(workspace);
  const objections = isEnforced(workspace) ? all : enforced("off", all).refused;
  if (objections.length === 0) return [];
  await recordViolation(await workspace.recorder(), commit, objections);
  return [
    `cotenant post-commit: ${commit.slice(0, 12)} goes against ${whatOf(objections)}:`,
    ...objections.slice(0, 5).map(({ message }) => `  ${message}`),
    "  it is on record; 'cotenant status' shows it",
    ...unusableNames("post-commit", await workspace.caller()),
  ];
}

function whatOf(objections: readonly Objection[]): string {
  const ruled = objections.filter(({ code }) => code === "E_PATH_RULE").length;
  const some = (count: number, one: string) => (count === 0 ? [] : [count === 1 ? `a ${one}` : `${one}s`]);
  return [...some(objections.length - ruled, "lease"), ...some(ruled, "rule")].join(" and ");
}

/** What a commit holds is given back, and what was on record about it is settled. Answers what to say. */
async function settleCommit(workspace: Workspace): Promise<string[]> {
  const { surroundings, repository, coordinator } = workspace;
  const place = await placeOf(workspace);
  if (place === null) return [];
  // Mostly there is nothing to be done, and Git need not be asked.
  const isConcerned =
    (await holdsFiles(place)) || (await coordinator.glance(["guard-violation", "left"])).length > 0;
  if (!isConcerned) return [];
  const changes = await committedChanges(surroundings.git, { cwd: repository.worktreeRoot }, "HEAD");
  const keys = changes.map(({ path }) => keyOf({ repository }, path)).filter((key) => key !== null);
  if (keys.length === 0) return [];
  await releaseCommitted(place, new Set(keys));
  await forgetCommitted(place, keys);
  const concerned = await violationsOf(place, keys);
  if (concerned.length === 0) return [];
  // Whose command it was is told, but does not settle it: somebody else has to look.
  const { agentId, sessionId } = place.who;
  const settled = concerned.filter(([, one]) => one.agentId !== agentId && one.sessionId !== sessionId);
  await settleViolations(place.session, settled, "committed");
  return [
    "cotenant post-commit: committed, though it was changed under somebody's lease:",
    ...concerned.map(([, violation]) => lineOf(violation)),
  ];
}

/** Before a commit: what shell commands changed in these files under somebody else's lease. */
async function violatedLines(workspace: Workspace, paths: readonly string[]): Promise<string[]> {
  const { coordinator, repository } = workspace;
  if ((await coordinator.glance(["guard-violation"])).length === 0) return [];
  const { worktreeId } = (await workspace.worktree("read")).identity;
  const keys = paths.map((path) => keyOf({ repository }, path)).filter((key) => key !== null);
  const concerned = await violationsOf({ coordinator, worktreeId }, keys);
  return concerned.map(([, violation]) => lineOf(violation));
}

function lineOf({ path, agentId, owner, at, command }: GuardViolation): string {
  return `  ${printable(path, 200)} was changed by a command of ${agentId} under the lease of ${owner}, ${at}: ${printable(command, 80)}`;
}

async function violationsOf(
  { coordinator, worktreeId }: Pick<GuardedWorktree, "coordinator" | "worktreeId">,
  keys: readonly LeaseKey[],
) {
  return (await guardViolations(coordinator)).filter(
    ([, violation]) => violation.worktreeId === worktreeId && keys.includes(violation.key),
  );
}

/** Null where nobody has said who commits: then nothing is theirs to give back. */
async function placeOf(workspace: Workspace): Promise<GuardedWorktree | null> {
  const { agent } = await workspace.caller();
  if (agent === null) return null;
  const { agentId, sessionId } = agent;
  const world = worldOf(workspace.surroundings, null);
  const holder = world.platform.processes.self();
  return openWorktree(world, workspace.repository, { agentId, sessionId, mainAgentId: agentId, holder });
}
