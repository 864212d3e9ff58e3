import { resolveFrom } from "../../identity/path-text";
import type { Repository } from "../../identity/repository";
import { listWorktrees, type WorktreeEntry } from "../../identity/worktree-list";
import { printable } from "../../kernel/ids";
import { dirKey, isFullRefName, kindOf, nameOf } from "../../kernel/keys";
import { belongsTo, type Lease } from "../../kernel/lease";
import { andMore, shellWord } from "../../kernel/printing";
import { isRefusal } from "../../kernel/refusal";
import { gitList, gitText } from "../../platform/git-answers";
import { ALLOWED, allowedSaying, type Verdict } from "./answers";
import { type Checking, directoryOf } from "./check";
import { othersOn, wantingIn, withoutYielding } from "./holders";
import { strayed } from "./home";
import type { GitUse } from "./shell/arguments";
import type { ShellWrite } from "./shell/walk";
import { whoIs } from "./who";
import type { Words } from "./words";
import { type GuardedWorktree, openWorktree, repositoryOf } from "./worktree";
import type { World } from "./world";

/** Leases whose holder works in the checkout that they were taken in. */
const AT_WORK = ["file", "dir", "worktree", "issue"];

/**
 * HEAD, the index and the working tree as a whole belong to everybody who works in a checkout, and the stash to everybody
 * in the repository: a command that moves them is refused while another session does. Nobody waits for it: others may work
 * there for hours, and a worktree of one's own is to be had at once. Where it cannot be told where a command would run, it is
 * judged as if it ran where the shell was started.
 */
export async function checkShared(
  checking: Checking,
  writes: readonly ShellWrite[],
  shellCwd: string,
): Promise<Verdict> {
  const { world } = checking;
  const tells: string[] = [];
  const standsIn = async () => repositoryOf(world, directoryOf(checking));
  for (const { use, cwd } of writes) {
    if (use === undefined || (use.kind === "own" && cwd === null)) continue;
    const repository = await repositoryOf(world, cwd ?? shellCwd);
    if (repository === null) continue;
    // Only whoever strays is of interest, and nobody can.
    if (use.kind === "own" && (await world.platform.files.stat(`${repository.commonDir}/worktrees`)) === null)
      continue;
    const who = checking.who ?? (await whoIs(world, checking.report));
    const here = await openWorktree(world, repository, who);
    for (const place of await placesOfUse(here, use, cwd ?? shellCwd)) {
      const away = await strayed(checking, place, use.command);
      if (away !== null && !away.isAllowed) return away;
      if (away?.tell != null && !tells.includes(away.tell)) tells.push(away.tell);
      const verdict = await judge(place, use, { isPlaceGuessed: cwd === null, standsIn });
      if (!verdict.isAllowed) return verdict;
    }
  }
  return allowedSaying(...tells);
}

/** The worktrees that a command is about: mostly the one it runs in. */
async function placesOfUse(here: GuardedWorktree, use: GitUse, cwd: string): Promise<GuardedWorktree[]> {
  const { which, kind } = use;
  if (kind !== "worktree" && (kind !== "checkout" || which === null)) return [here];
  const { world, repository, who } = here;
  const all = await listWorktrees(world.platform, world.git, repository);
  const real = which === null ? null : await realPlace(world, resolveFrom(cwd, which));
  const isMeant = ({ root, branch, isMain }: WorktreeEntry) => {
    if (kind === "checkout") return which === `refs/heads/${branch}`;
    // Git takes the end of a path for it, too.
    return !isMain && (which === null || root === real || root.endsWith(`/${which}`));
  };
  const found: GuardedWorktree[] = [];
  for (const entry of all.filter((one) => one.exists && isMeant(one))) {
    const there = await repositoryOf(world, entry.root);
    if (there !== null) found.push(await openWorktree(world, there, who));
  }
  return found;
}

async function realPlace({ platform }: World, path: string): Promise<string> {
  try {
    return (await platform.files.realPath(path)) ?? path;
  } catch {
    return path;
  }
}

interface Viewpoint {
  readonly isPlaceGuessed: boolean;
  /** Where the agent will run what it is told to: often not where this command acts. */
  standsIn(): Promise<Repository | null>;
}

async function judge(place: GuardedWorktree, use: GitUse, at: Viewpoint): Promise<Verdict> {
  if (use.kind === "own") return ALLOWED;
  if (use.kind === "stash") return judgeStash(place, use, at);
  const others = await othersAtWork(place);
  if (others.length === 0) return ALLOWED;
  const refusal = use.kind === "worktree" ? worktreeOfOthers : sharedByOthers;
  return { isAllowed: false, ...(await refusal(place, use, others, at)) };
}

/** For commands about this worktree; null where the agent stands in it. */
async function worktreeToName(
  { repository }: GuardedWorktree,
  { standsIn }: Viewpoint,
): Promise<string | null> {
  const { worktreeRoot } = repository;
  return (await standsIn())?.worktreeRoot === worktreeRoot ? null : worktreeRoot;
}

/** For commands about the whole repository; null where the agent stands in one of its worktrees. */
async function repositoryToName(
  { repository }: GuardedWorktree,
  { standsIn }: Viewpoint,
): Promise<string | null> {
  const { commonDir, mainWorktreeRoot, worktreeRoot } = repository;
  return (await standsIn())?.commonDir === commonDir ? null : (mainWorktreeRoot ?? worktreeRoot);
}

/** One word of a checkout may be a path as well. */
async function isCommit({ world, repository }: GuardedWorktree, word: string): Promise<boolean> {
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${word}^{commit}`];
  return (await gitText(world.git, args, { cwd: repository.worktreeRoot })) !== null;
}

/**
 * An entry says on which branch it was made, and a branch is checked out in one worktree only: one that was made on another
 * branch than this worktree's may be somebody else's, as long as others work in other worktrees.
 */
async function judgeStash(place: GuardedWorktree, use: GitUse, at: Viewpoint): Promise<Verdict> {
  const entries = await stashEntries(place);
  const number = /^(?:(?:refs\/)?stash@\{)?(\d+)\}?$/.exec(use.which ?? "")?.[1];
  const taken = number === undefined ? entries : entries.filter(({ at }) => at === Number(number));
  const foreign = taken.filter(({ branch }) => branch === null || branch !== place.branch);
  if (foreign.length === 0) return ALLOWED;
  const others = (await leasesOfOthers(place)).filter(({ worktreeId }) => worktreeId !== place.worktreeId);
  if (others.length === 0) return ALLOWED;
  const [branch, from] = [place.branch, await worktreeToName(place, at)];
  return { isAllowed: false, ...stashOfOthers(use, foreign, others, { branch, from }) };
}

interface StashEntry {
  readonly at: number;
  readonly title: string;
  /** Null where it was made on none, or does not say. */
  readonly branch: string | null;
}

async function stashEntries({ world, repository }: GuardedWorktree): Promise<StashEntry[]> {
  const args = ["log", "--walk-reflogs", "-z", "--format=%gs", "refs/stash", "--"];
  return gitList(await gitText(world.git, args, { cwd: repository.worktreeRoot })).map((title, at) => {
    return { at, title, branch: /^(?:WIP on|On) ([^\s:]+): /.exec(title)?.[1] ?? null };
  });
}

/** What others hold from this very worktree, or in it. */
async function othersAtWork(place: GuardedWorktree): Promise<Lease[]> {
  const { coordinator, worktreeId } = place;
  const whole = dirKey(".");
  const wanting = wantingIn(place);
  const inside = isRefusal(whole) ? [] : await othersOn(coordinator, wanting, [whole]);
  const counting = (await withoutYielding(coordinator, wanting, inside)).map(({ lease }) => lease);
  const fromHere = (await leasesOfOthers(place)).filter((lease) => lease.worktreeId === worktreeId);
  return [...new Map([...counting, ...fromHere].map((lease) => [lease.leaseId, lease])).values()];
}

async function leasesOfOthers({ coordinator, who, session }: GuardedWorktree): Promise<Lease[]> {
  return (await coordinator.list())
    .map(({ lease }) => lease)
    .filter(
      (lease) =>
        lease.sessionId !== who.sessionId &&
        AT_WORK.includes(kindOf(lease.key)) &&
        !belongsTo(lease, session.actor),
    );
}

const MOST_TRIES = 100;
/** Longer names are not printed whole. */
const LONGEST = 200;

/** A branch for a worktree of one's own that can be made as it is printed: the one that was wanted, if it can be. */
async function branchToOffer(place: GuardedWorktree, wanted: string | null): Promise<string> {
  const [branches, directories] = [await branchesOf(place), await directoriesOf(place)];
  const isFree = (name: string) =>
    !branches.some(
      (there) => there === name || there.startsWith(`${name}/`) || name.startsWith(`${there}/`),
    ) &&
    // Directories of worktrees are named after branches.
    !directories.some((there) => there.endsWith(name.slice(name.lastIndexOf("/") + 1)));
  if (wanted !== null && isName(wanted) && isFree(wanted)) return wanted;
  const id = place.who.sessionId.replace(/[^0-9A-Za-z]/g, "").slice(0, 8) || "mine";
  const first = branches.includes("work") ? `work-${id}` : `work/${id}`;
  for (let i = 2; i < MOST_TRIES; i++) {
    const name = i === 2 ? first : `${first}-${i - 1}`;
    if (isFree(name)) return name;
  }
  return first;
}

function isName(name: string): boolean {
  return (
    !name.startsWith("-") &&
    name !== "HEAD" &&
    isFullRefName(`refs/heads/${name}`) &&
    printable(name, LONGEST) === name
  );
}

async function branchesOf({ world, repository }: GuardedWorktree): Promise<string[]> {
  const args = ["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"];
  const text = await gitText(world.git, args, { cwd: repository.worktreeRoot });
  return (text ?? "").split("\n").filter((name) => name !== "");
}

async function directoriesOf({ world, repository, settings }: GuardedWorktree): Promise<readonly string[]> {
  const { mainWorktreeRoot } = repository;
  if (mainWorktreeRoot === null) return [];
  const { worktreeDirectory: configured } = settings;
  const parent =
    configured === null ? `${mainWorktreeRoot}.worktrees` : resolveFrom(mainWorktreeRoot, configured);
  try {
    return (await world.platform.files.readDirectory(parent)) ?? [];
  } catch {
    return [];
  }
}

// --- what the agent is told ---------------------------------------------------------------------------------

async function sharedByOthers(
  place: GuardedWorktree,
  use: GitUse,
  others: readonly Lease[],
  at: Viewpoint,
): Promise<Words> {
  const root = place.repository.worktreeRoot;
  const base = use.base !== null && (await isCommit(place, use.base)) ? use.base : null;
  const branch = place.settings.makesWorktrees ? await branchToOffer(place, use.branch) : null;
  const from = await worktreeToName(place, at);
  const said = printable(use.command, 80);
  const isHere = from === null && use.which === null;
  const create = [
    "cotenant worktree create",
    shellWord(branch ?? ""),
    ...(base === null || printable(base, 200) !== base ? [] : ["--base", revisionWord(base)]),
  ];
  return refusal(use, others, root, [
    `cotenant: \`${said}\` moves what everybody in ${isHere ? "this checkout" : printable(root, 300)} shares (HEAD, index, stash, files), and ${workers(others)} ${isHere ? "here" : "there"}. Nothing was run.`,
    ...(at.isPlaceGuessed
      ? [
          "Where it would run cannot be told. If it is meant for another repository, name it: git -C <directory> …",
        ]
      : []),
    ...(branch === null
      ? []
      : [`Work in a worktree of your own instead: ${runFrom(from, create.join(" "))}`]),
    `Your own files alone you can commit (${gitIn(from)} commit -- <path>) or undo (${gitIn(from)} restore -- <path>) ${from === null ? "here" : "there"}.`,
  ]);
}

async function worktreeOfOthers(
  place: GuardedWorktree,
  use: GitUse,
  others: readonly Lease[],
  at: Viewpoint,
): Promise<Words> {
  const root = place.repository.worktreeRoot;
  const from = await repositoryToName(place, at);
  const said = printable(use.command, 80);
  const there = printable(root, 300);
  const what =
    use.which === null
      ? `cannot tell which worktree \`${said}\` takes away, and in ${there} ${workers(others)}`
      : `\`${said}\` takes ${there} away, and ${workers(others)} there`;
  return refusal(use, others, root, [
    `cotenant: ${what}. Nothing was run.`,
    use.which === null
      ? "Name the worktree."
      : `When they have finished: ${runFrom(from, `cotenant worktree remove ${shellWord(root)}`)}, which keeps what is not committed.`,
  ]);
}

function stashOfOthers(
  use: GitUse,
  foreign: readonly StashEntry[],
  others: readonly Lease[],
  { branch, from }: { readonly branch: string | null; readonly from: string | null },
): Words {
  const [first] = foreign;
  const name = `stash@{${first!.at}}`;
  const more = andMore(foreign.length - 1);
  return refusal(use, others, null, [
    `cotenant: \`${printable(use.command, 80)}\` takes ${name} (${printable(first!.title, 80)})${more} away. The stash is one for all worktrees, it was not made on ${branch === null ? "a branch of yours" : printable(branch, 100)}, and ${workers(others)} in another worktree. Nothing was run.`,
    `To have its changes and leave it to whoever made it: ${gitIn(from)} stash apply '${name}'`,
  ]);
}

function refusal(
  { command }: GitUse,
  others: readonly Lease[],
  root: string | null,
  lines: readonly string[],
): Words {
  return {
    isHardStop: false,
    code: "E_LOCK_CONFLICT",
    data: {
      command: printable(command, 80),
      worktree_root: root,
      holders: others.slice(0, 20).map(({ agentId, key }) => ({ agent_id: agentId, key })),
    },
    reason: lines.join("\n"),
  };
}

const MOST_NAMED = 5;

/** `agent:a (a.txt, b.txt) works`. */
function workers(others: readonly Lease[]): string {
  const agents = [...new Set(others.map(({ agentId }) => agentId))];
  const shown = agents.slice(0, MOST_NAMED).map((agentId) => {
    const keys = others
      .filter((lease) => lease.agentId === agentId)
      .map(({ key }) => printable(nameOf(key), 100));
    return `${agentId} (${keys.slice(0, 3).join(", ")}${keys.length > 3 ? `, and ${keys.length - 3} more` : ""})`;
  });
  const more = andMore(agents.length - MOST_NAMED);
  return `${shown.join(", ")}${more} ${agents.length === 1 ? "works" : "work"}`;
}

/** `HEAD~1` and the like need no quotes. */
function revisionWord(revision: string): string {
  return /^[\w./@~^+-]+$/.test(revision) ? revision : shellWord(revision);
}

/** Without moving a shell that stays open. */
function runFrom(directory: string | null, command: string): string {
  return directory === null ? command : `(cd ${shellWord(directory)} && ${command})`;
}

function gitIn(directory: string | null): string {
  return directory === null ? "git" : `git -C ${shellWord(directory)}`;
}
