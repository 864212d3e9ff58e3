import type { Surroundings, Whereabouts, Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { CommitReader, type Revisions } from "../../../git/commits";
import { rulingKey } from "../../../identity/path-keys";
import { printable } from "../../../kernel/ids";
import type { PathRuleSet } from "../../../kernel/path-rules";
import type { Git } from "../../../platform/git";
import { issueOf } from "../commit-rules";
import { commitOf, type MainRef, mainRef } from "../divergence";
import { allowedHere } from "../global-operations";
import { enforced, mendedRules, rulesHere, withMain } from "../path-rules";
import { type Court, judgeRevisions, type PushJudgement, type Testimony } from "../push";
import { type BranchRules, mainThere } from "../push-branches";
import type { TipMove } from "../push-tips";
import { courtOf, type ServerRules, serverCoordinator, serverRules } from "../server";
import { type HookAnswer, judged, PASSED, pushRefusal, unusableNames } from "./answer";

const NOTHING = /^0+$/;

/** Deletions bring nothing. */
function moveOf(ref: string, from: string, to: string): TipMove[] {
  return NOTHING.test(to) ? [] : [{ ref, to, from: NOTHING.test(from) ? null : from }];
}

/** What Git writes to a hook about a push: one line for each ref. */
function movesFrom(input: string, moveIn: (line: string) => TipMove[] | null): TipMove[] {
  return input.split("\n").flatMap((line): TipMove[] => {
    const moves = line === "" ? [] : moveIn(line);
    if (moves !== null) return moves;
    throw new CotenantError("E_GIT", "Git does not say what is pushed in a form that is known here");
  });
}

/** What is pushed may be named with spaces (`main@{1 day ago}`), where it goes may not. */
const PUSHED = /^[^\n]* ([0-9a-f]{40,64}) ([^ ]+) ([0-9a-f]{40,64})$/;

/** What is pushed: `<local ref> <local id> <remote ref> <remote id>` on each line. */
function pushedMoves(input: string): TipMove[] {
  return movesFrom(input, (line) => {
    const [, to, ref, from] = PUSHED.exec(line) ?? [];
    return to === undefined ? null : moveOf(ref!, from!, to);
  });
}

/** What commits of a clone are held against, but for where they go. */
async function clonesCourt(
  workspace: Workspace,
  isAsked: boolean,
): Promise<Omit<Court, "pathRules" | "pusher" | "hasHooks" | "branches">> {
  const { surroundings, repository, coordinator, config } = workspace;
  return {
    git: surroundings.git,
    place: { cwd: repository.worktreeRoot },
    coordinator,
    claims: await testimony(workspace, isAsked),
    digest: surroundings.platform.digest,
    mode: config.values["enforce.push"],
    keyOf: (path) => rulingKey(workspace, path),
  };
}

/** What the claims at the remote say about commits; null where there is no ledger. `isAsked`: the remote is asked first. */
async function testimony(workspace: Workspace, isAsked: boolean): Promise<Testimony | null> {
  if (workspace.config.values["sync.ledger_branch"] === null) return null;
  const { clonesTestimony } = await import("../../ledger/witness");
  return clonesTestimony(workspace, isAsked);
}

/** What a push is answered: every pushed change of an issue or of a leased file had its lease when it was committed. */
export async function answerPush(workspace: Workspace, input: string): Promise<HookAnswer> {
  const pushed = pushedMoves(input);
  if (pushed.length === 0) return PASSED;
  const { repository, surroundings, config } = workspace;
  const { git } = surroundings;
  const { values } = config;
  const place = { cwd: repository.worktreeRoot };
  const mode = values["worktree.enforce_leases"];
  const configured = values["global_operations.main_branch"];
  const main = await mainRef(git, place.cwd, configured);
  const mainNames = configured === null ? ["main", "master"] : [configured];
  const branches: BranchRules = {
    allowed: values["global_operations.allowed_branches"],
    main,
    mainNames: main === null ? mainNames : [main.branch],
    requireHistory: values["global_operations.require_main_history"],
    howToAllow: (branch) => allowedHere(config, "git push", branch),
    allowedTips: () => remoteTips(workspace, values["global_operations.allowed_branches"]),
  };
  const moves = await onlyKnown(workspace, pushed);
  const known = await withMain(rulesHere(workspace), { git, place }, main);
  const pathRules = await withMain(known, { git, place }, mainThere(branches, moves));
  if (mode === "off" && pathRules.rules.length === 0) return PASSED;
  const caller = await workspace.caller();
  const court = { pathRules, pusher: caller.agent?.agentId ?? null, hasHooks: true, branches };
  const { objections } = await judgeRevisions(
    { ...(await clonesCourt(workspace, false)), ...court },
    unpublished(moves),
    moves,
  );
  // What can be understood of the main branch's rules holds.
  const unread = [...known.problems, ...pathRules.problems].map(
    ({ place: at, message }) => `cotenant pre-push: ${at}: ${message}`,
  );
  return judged(enforced(mode, objections), (some) => pushRefusal("pre-push", some), [
    ...unread,
    ...unusableNames("pre-push", caller),
  ]);
}

/** What no remote has yet: what is published anywhere was looked at when it was, and may go to others. */
function unpublished(moves: readonly TipMove[]): Revisions {
  const known = moves.flatMap(({ from }) => (from === null ? [] : [`^${from}`]));
  return { names: [...moves.map(({ to }) => to), ...known], options: ["--not", "--remotes", "--not"] };
}

async function remoteTips(
  { surroundings, repository }: Workspace,
  branches: readonly string[],
): Promise<string[]> {
  if (branches.length === 0) return [];
  const { stdout } = await surroundings.git.run(
    ["for-each-ref", "--format=%(objectname)", ...branches.map((name) => `refs/remotes/*/${name}`)],
    { cwd: repository.worktreeRoot },
  );
  return new TextDecoder().decode(stdout).split("\n").slice(0, -1);
}

/** What the remote has and this clone does not know of excludes nothing, and cannot be compared with. */
async function onlyKnown(
  { surroundings, repository }: Workspace,
  moves: readonly TipMove[],
): Promise<TipMove[]> {
  return Promise.all(
    moves.map(async (move) => {
      if (move.from === null) return move;
      const { status } = await surroundings.git.run(["cat-file", "-e", `${move.from}^{commit}`], {
        cwd: repository.worktreeRoot,
      });
      return status === 0 ? move : { ...move, from: null };
    }),
  );
}

/** Where Git keeps what is pushed until the hook has let it in. */
const QUARANTINE = ["GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"];

/**
 * What somebody is answered who pushes here: changes of issues and of leased files are held against the leases that are kept
 * here. What it cannot tell, it refuses: nobody looks after it.
 */
export async function answerReceived(
  where: Pick<Whereabouts, "surroundings">,
  read: () => Promise<string>,
): Promise<HookAnswer> {
  try {
    return await received(where.surroundings(), await read());
  } catch (error) {
    const why = error instanceof CotenantError ? `${error.message} (${error.code})` : String(error);
    const next = error instanceof CotenantError && error.hint !== "" ? [`  next: ${error.hint}`] : [];
    const what = `cotenant pre-receive (layer 4): cannot tell, and so refuses: ${printable(why, 400)}`;
    return { isRefused: true, lines: [what, ...next] };
  }
}

async function received({ platform, git, env, cwd }: Surroundings, input: string): Promise<HookAnswer> {
  const gitDir = (await platform.files.realPath(env["GIT_DIR"] ?? cwd)) ?? cwd;
  const bare = { cwd: gitDir, env: { GIT_DIR: gitDir } };
  const rules = await serverRules(git, bare);
  const moves = receivedMoves(input, rules);
  if (moves.length === 0) return PASSED;
  const coordinator = await serverCoordinator(platform, gitDir);
  const { claimTestimony } = await import("../../ledger/witness");
  const claims =
    (await claimTestimony(git, bare, rules.claimsPrefix, platform.clock.wallMs())) ??
    (await noClaims(git, gitDir, rules));
  const quarantine = Object.fromEntries(
    QUARANTINE.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]!]])),
  );
  const repository = { config: { ignoreCase: rules.ignoreCase } };
  const place = { cwd: gitDir, env: { ...quarantine, GIT_DIR: gitDir } };
  const { branches, pathRules } = await courtOf(git, bare, rules, { moves, place });
  const { objections } = await judgeRevisions(
    {
      git,
      place,
      coordinator,
      claims,
      digest: platform.digest,
      mode: "at_commit",
      keyOf: (path) => rulingKey({ repository }, path),
      pathRules,
      pusher: null,
      hasHooks: false,
      branches,
    },
    // What is only on the ledger's own refs was never looked at: it excludes nothing.
    {
      names: moves.map(({ to }) => to),
      options: [
        "--not",
        `--exclude=refs/heads/${rules.ledgerBranch}`,
        `--exclude=${rules.claimsPrefix}*`,
        "--all",
        "--not",
      ],
    },
    moves,
  );
  if (objections.length === 0) return PASSED;
  return { isRefused: true, lines: pushRefusal("pre-receive", objections) };
}

/** Where there is a ledger, claims that are gone are no reason to let everything in. */
async function noClaims(git: Git, gitDir: string, { ledgerBranch }: ServerRules): Promise<Testimony | null> {
  if ((await commitOf(git, gitDir, `refs/heads/${ledgerBranch}`, { GIT_DIR: gitDir })) === null) return null;
  return { witness: { lease: () => null, written: () => null }, held: new Map() };
}

const RECEIVED = /^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ([^ \n]+)$/;

/** `<old id> <new id> <ref>` on each line. The ledger's own refs are no work of anybody. */
function receivedMoves(input: string, { ledgerBranch, claimsPrefix }: ServerRules): TipMove[] {
  return movesFrom(input, (line) => {
    const [, from, to, ref] = RECEIVED.exec(line) ?? [];
    if (ref === undefined) return null;
    if (ref === `refs/heads/${ledgerBranch}` || ref.startsWith(claimsPrefix)) return [];
    return moveOf(ref, from!, to!);
  });
}

/** Holds commits that exist against the log, as a push of them would be. */
export async function validateCommits(where: Whereabouts, range: string): Promise<PushJudgement> {
  if (range.startsWith("-"))
    throw new CotenantError("E_USAGE", `"${printable(range)}" is not a range of commits`, {
      hint: "write <from>..<to>, such as origin/main..HEAD",
    });
  const workspace = await where.workspace();
  const { repository, surroundings, config } = workspace;
  const configured = config.values["global_operations.main_branch"];
  const main = await mainRef(surroundings.git, repository.worktreeRoot, configured);
  const pathRules = await rulesFor(workspace, range, main);
  const pusher = (await workspace.agentOrNull())?.agentId ?? null;
  const found = await judgeRevisions(
    { ...(await clonesCourt(workspace, true)), pathRules, pusher, hasHooks: false, branches: null },
    { names: [range], options: [] },
    await movesOf(workspace, range),
  );
  if (found.objections.some(({ path }) => issueOf(path) !== null)) {
    const { claimsUnheard } = await import("../../ledger/open");
    const unheard = claimsUnheard(workspace);
    if (unheard !== null) throw unheard;
  }
  return found;
}

async function rulesFor(workspace: Workspace, range: string, main: MainRef | null): Promise<PathRuleSet> {
  const { git } = workspace.surroundings;
  const place = { cwd: workspace.repository.worktreeRoot };
  const known = await withMain(rulesHere(workspace), { git, place }, main);
  if (known.problems.length === 0 || main === null) return known;
  const tip = await commitOf(git, place.cwd, range.split(/\.{2,3}/).at(-1) || "HEAD");
  return mendedRules(known, { git, place }, main, tip ?? main.commit);
}

/**
 * The range as pushes: `<from>..<to>` goes to a branch that stands where the two part, and so do all others that have a
 * lower end. One without has all of a history in it: there each merge goes to the branch that its first parent is.
 */
async function movesOf({ surroundings, repository }: Workspace, range: string): Promise<TipMove[]> {
  const { git } = surroundings;
  const place = { cwd: repository.worktreeRoot };
  const reader = new CommitReader(git, place);
  const { stdout } = await git.run(["rev-parse", "--revs-only", range], place);
  const names = new TextDecoder().decode(stdout).split("\n").slice(0, -1);
  const upper = names.filter((name) => !name.startsWith("^"));
  // A range that is none has no moves either; reading its commits says what is wrong. Tags are looked through.
  const tips = upper.length === 0 ? [] : await reader.list({ names: upper, options: ["--no-walk"] });
  const ends = names.filter((name) => name.startsWith("^")).map((name) => name.slice(1));
  const ref = "refs/heads/range";
  if (ends.length === 0 && tips.length > 0) {
    const merges = await reader.read(await reader.list({ names: tips, options: ["--min-parents=2"] }));
    return merges.map(({ oid, parents }) => ({ ref, from: parents[0]!, to: oid }));
  }
  const moves: TipMove[] = [];
  for (const to of tips)
    for (const end of ends)
      for (const from of await reader.mergeBases(end, to)) moves.push({ ref, from, to });
  return moves;
}
