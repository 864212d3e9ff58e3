import { gitList, gitText } from "../../../platform/git-answers";
import { saying, type Verdict } from "../answers";
import { type Checking, checkTargets, shellDirectory } from "../check";
import { rememberFamily } from "../family";
import { HARNESSES } from "../harness";
import { checkShared } from "../shared-checkout";
import type { Wish } from "../tools";
import { repositoryOf } from "../worktree";
import type { World } from "../world";
import { type Group, locate, type WriteTarget } from "../write-target";
import { settleWords } from "./ask-git";
import { remember } from "./compare";
import { namedBy } from "./targets";
import type { Reading, ShellWrite, Start } from "./walk";

type ShellWish = Extract<Wish, { kind: "shell" }>;

/** Before a shell command: what it plainly writes is leased like an edit; for the rest, how things stand is put down. */
export async function checkShell(checking: Checking, wish: ShellWish): Promise<Verdict> {
  const { world } = checking;
  const { command } = wish;
  await rememberFamily(checking);
  if (checking.report.harness === "cursor") {
    const { settleFinished } = await import("../cursor-family");
    await settleFinished(checking);
  }
  const cwd = shellDirectory(checking, wish);
  const { writes, isKnown } = await readAt(world, wish, cwd);
  const shared = await checkShared(checking, writes, cwd);
  if (!shared.isAllowed) return shared;
  const { groups: written, isAll } = await groupsOf(world, cwd, writes);
  const groups = [...written, ...(await committedBy(checking, writes))];
  const verdict = groups.length === 0 ? shared : saying(shared.tell, await checkTargets(checking, groups));
  if (verdict.isAllowed && !(isKnown && isAll)) await remember(checking, cwd, command);
  return verdict;
}

/** What it would commit, where no hook of Git's looks at that. */
async function committedBy(
  { world, report }: Checking,
  writes: readonly ShellWrite[],
): Promise<readonly Group[]> {
  if (HARNESSES[report.harness].runsNoGitHooks !== true) return [];
  const { committed } = await import("./commits");
  return committed(world, writes);
}

/** What it plainly writes, for whoever can do no more than look. */
export async function groupsIn(checking: Checking, wish: ShellWish): Promise<readonly Group[]> {
  const cwd = shellDirectory(checking, wish);
  const { writes } = await readAt(checking.world, wish, cwd);
  return (await groupsOf(checking.world, cwd, writes)).groups;
}

/** What it may commit where no hook looks at that, for whoever has asked Git in vain. Only Git knows about aliases. */
export async function mayBeCommittedIn(
  checking: Checking,
  wish: ShellWish,
  { asksGit }: { readonly asksGit: boolean },
): Promise<readonly Group[]> {
  const { world, report } = checking;
  if (HARNESSES[report.harness].runsNoGitHooks !== true || wish.dialect === "powershell") return [];
  const cwd = shellDirectory(checking, wish);
  const { writes } = asksGit
    ? await readWithAliases(world, wish.command, cwd)
    : await read(wish.command, { cwd, home: world.home });
  const { mayCommit } = await import("./commits");
  return mayCommit(world, writes);
}

async function readAt(world: World, { command, dialect }: ShellWish, cwd: string) {
  if (dialect === "powershell") return { writes: [], isKnown: false };
  const { writes, isKnown } = await readWithAliases(world, command, cwd);
  return { writes: await settleWords(world, writes), isKnown };
}

/** The parser is a file of its own, for those who need it. */
async function read(command: string, start: Start): Promise<Reading> {
  return (await import("./walk")).readCommand(command, start);
}

/** Aliases are looked up for those who use any: Git knows a command that we do not. */
async function readWithAliases(world: World, command: string, cwd: string): Promise<Reading> {
  const start = { cwd, home: world.home, root: await rootFor(world, command, cwd) };
  const reading = await read(command, start);
  if (reading.verbs.length === 0) return reading;
  const entries = gitList(
    await gitText(world.git, ["config", "--null", "--get-regexp", "^alias\\."], { cwd }),
  );
  if (entries.length === 0) return reading;
  const aliases = new Map<string, string>();
  for (const entry of entries) {
    const at = entry.indexOf("\n");
    if (at !== -1) aliases.set(entry.slice("alias.".length, at).toLowerCase(), entry.slice(at + 1).trim());
  }
  return read(command, { ...start, aliases });
}

/** Only for those who ask Git for it. */
async function rootFor(world: World, command: string, cwd: string): Promise<string | null> {
  if (!command.includes("--show-toplevel")) return null;
  return (await repositoryOf(world, cwd))?.worktreeRoot ?? null;
}

async function groupsOf(world: World, cwd: string, writes: readonly ShellWrite[]) {
  const { named, isAll } = await namedBy(world, writes);
  const tracked: Group[] = [];
  for (const group of await locate(world, cwd, named)) {
    const targets = await withoutIgnored(world, group);
    if (targets.length > 0) tracked.push({ ...group, targets });
  }
  return { groups: tracked, isAll };
}

/** Two agents may build at the same time: what Git ignores is nobody's work. */
async function withoutIgnored(world: World, { repository, targets }: Group): Promise<readonly WriteTarget[]> {
  const input = targets.map(({ path }) => `${path}\0`).join("");
  const options = { cwd: repository.worktreeRoot, input };
  const ignored = new Set(gitList(await gitText(world.git, ["check-ignore", "-z", "--stdin"], options)));
  return targets.filter(({ path }) => !ignored.has(path));
}
