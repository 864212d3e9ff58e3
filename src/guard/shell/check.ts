import { dirKey } from "../../kernel/keys";
import { isRefusal } from "../../kernel/refusal";
import { ALLOWED, type Verdict } from "../answers";
import { type Checking, checkTargets } from "../check";
import { repositoryOf } from "../place";
import { type Group, locate, type Named, type Target } from "../target";
import type { Wish } from "../tools";
import type { World } from "../world";
import { remember } from "./compare";
import { shellDirectory } from "./directory";
import { namedBy } from "./targets";
import { readCommand } from "./walk";

type ShellWish = Extract<Wish, { kind: "shell" }>;

/** Before a shell command: what it plainly writes is leased like an edit; for the rest, how things stand is put down. */
export async function checkShell(checking: Checking, wish: ShellWish): Promise<Verdict> {
  const { world } = checking;
  const { command, dialect } = wish;
  const cwd = shellDirectory(checking, wish);
  const reading =
    dialect === "powershell"
      ? { writes: [], isKnown: false }
      : readCommand(command, { cwd, home: world.home });
  const groups = await groupsOf(world, cwd, await namedBy(world, reading.writes));
  const verdict = groups.length === 0 ? ALLOWED : await checkTargets(checking, groups);
  if (verdict.isAllowed && !reading.isKnown) await remember(checking, cwd, command);
  return verdict;
}

const WHOLE = "/:/";

async function groupsOf(world: World, cwd: string, named: readonly Named[]): Promise<Group[]> {
  const wholes = named
    .filter(({ path }) => path.endsWith(WHOLE))
    .map(({ path }) => path.slice(0, -WHOLE.length));
  const groups = await locate(
    world,
    cwd,
    named.filter(({ path }) => !path.endsWith(WHOLE)),
  );
  const tracked: Group[] = [];
  for (const group of groups) {
    const targets = await withoutIgnored(world, group);
    if (targets.length > 0) tracked.push({ ...group, targets });
  }
  for (const start of new Set(wholes)) {
    const whole = await wholeWorktree(world, start);
    if (whole === null) continue;
    const root = whole.repository.worktreeRoot;
    const at = tracked.findIndex(({ repository }) => repository.worktreeRoot === root);
    if (at === -1) tracked.push(whole);
    else tracked[at] = { ...whole, targets: [...tracked[at]!.targets, ...whole.targets] };
  }
  return tracked;
}

async function wholeWorktree(world: World, start: string): Promise<Group | null> {
  const repository = await repositoryOf(world, start);
  const key = dirKey(".");
  if (repository === null || isRefusal(key)) return null;
  const target: Target = { key, path: ".", absolutePath: repository.worktreeRoot, mode: "look" };
  return { repository, targets: [target] };
}

/** Two agents may build at the same time: what Git ignores is nobody's work. */
async function withoutIgnored(world: World, { repository, targets }: Group): Promise<readonly Target[]> {
  const input = targets.map(({ path }) => `${path}\0`).join("");
  const { status, stdout } = await world.git.run(["check-ignore", "-z", "--stdin"], {
    cwd: repository.worktreeRoot,
    input,
  });
  if (status !== 0) return targets;
  const ignored = new Set(new TextDecoder().decode(stdout).split("\0"));
  return targets.filter(({ path }) => !ignored.has(path));
}
