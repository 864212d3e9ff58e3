import { joinPath, parentOf } from "../../../identity/path-text";
import { readable, toBinary } from "../../../platform/binary-text";
import type { Files } from "../../../platform/platform";
import { LONGEST, type Program } from "../../installer/files";
import {
  type Block,
  blockText,
  comesFirst,
  findBlock,
  hooksIn,
  type InstalledHook,
  keptName,
  programIn,
} from "./block";
import {
  callsUs,
  hasEntry,
  isHuskyDirectory,
  type Manager,
  managerOf,
  named,
  PROJECT_FILES,
} from "./managers";
import { type HooksHome, type HooksPlace, hooksPlace, versionedAmong } from "./place";

/** A file as it is. Its text is binary, as in `bytes.ts`; null for what cannot be a hook. */
export interface FoundFile {
  readonly path: string;
  readonly kind: "file" | "symlink" | "other";
  readonly text: string | null;
  readonly mode: number;
  readonly inode: number;
}

/** Everything that decides about one hook. */
export interface FoundHook {
  readonly hook: InstalledHook;
  /** What Git runs. */
  readonly path: string;
  readonly file: FoundFile | null;
  /** What the framework pre-commit runs before its own. */
  readonly legacy: FoundFile | null;
  /** What lefthook moved out of its way, and nobody runs. */
  readonly old: FoundFile | null;
  /** What husky's own file passes on to. */
  readonly passedTo: FoundFile | null;
  /** Somebody else's hook that we keep. */
  readonly kept: { readonly around: FoundFile | null; readonly above: FoundFile | null };
  readonly manager: Manager | null;
  /** A file in which somebody wrote our call by hand. */
  readonly byHand: string | null;
}

export interface HooksSurvey {
  readonly place: HooksPlace;
  readonly hooks: readonly FoundHook[];
  /** Of the files above: what is committed, or would be. */
  readonly versioned: ReadonlySet<string>;
  /** What Git has. */
  readonly tracked: ReadonlySet<string>;
  readonly worktreeRoot: string | null;
  /** Where husky's own files pass on to. Null where husky is not in charge. */
  readonly huskyDirectory: string | null;
  /** lefthook's configurations here: what is this clone's alone, and what is everybody's. */
  readonly lefthook: Lefthook;
}

export interface Lefthook {
  readonly local: FoundFile | null;
  readonly shared: FoundFile | null;
  /** Where the first would be, if it is not there. */
  readonly localPath: string | null;
}

/** The hooks of one directory: the one that Git uses, unless another is named. */
export async function lookAtHooks(
  home: HooksHome,
  names: readonly InstalledHook[],
  place?: HooksPlace,
): Promise<HooksSurvey> {
  const where = place ?? (await hooksPlace(home));
  const lefthook = await lefthookFiles(home.files, home.worktreeRoot);
  const { worktreeRoot } = home;
  const none = { versioned: new Set<string>(), tracked: new Set<string>() };
  if (where.whose === "nowhere")
    return {
      place: where,
      hooks: names.map(absent),
      ...none,
      worktreeRoot,
      huskyDirectory: null,
      lefthook,
    };
  const huskyDirectory = isHuskyDirectory(where.directory) ? parentOf(where.directory) : null;
  const hooks: FoundHook[] = [];
  for (const name of names) hooks.push(await lookAt(home, where.directory, name, huskyDirectory));
  const paths = hooks.flatMap(({ path, hook }) => [
    path,
    ...(huskyDirectory === null ? [] : [joinPath(huskyDirectory, hook)]),
  ]);
  const configured = hooks.some(({ manager }) => manager === "lefthook") ? configurations(lefthook) : [];
  const git =
    where.whose === "worktree" || configured.length > 0
      ? await versionedAmong(home, [...paths, ...configured])
      : none;
  return { place: where, hooks, ...git, worktreeRoot, huskyDirectory, lefthook };
}

export async function lefthookFiles(files: Files, worktreeRoot: string | null): Promise<Lefthook> {
  if (worktreeRoot === null) return { local: null, shared: null, localPath: null };
  const first = async (names: readonly string[]) => {
    for (const name of names) {
      const one = await found(files, joinPath(worktreeRoot, name));
      if (one !== null) return one;
    }
    return null;
  };
  return {
    local: await first(named("lefthook-local")),
    shared: await first(named("lefthook")),
    localPath: joinPath(worktreeRoot, "lefthook-local.yml"),
  };
}

function configurations({ local, shared, localPath }: Lefthook): string[] {
  return [local?.path ?? localPath, shared?.path ?? null].filter((path) => path !== null);
}

/** Where Git runs none, there are none. */
function absent(hook: InstalledHook): FoundHook {
  const nothing = { file: null, legacy: null, old: null, passedTo: null, manager: null, byHand: null };
  return { hook, path: hook, ...nothing, kept: { around: null, above: null } };
}

async function lookAt(
  { files, worktreeRoot }: HooksHome,
  directory: string,
  hook: InstalledHook,
  huskyDirectory: string | null,
): Promise<FoundHook> {
  const at = (name: string) => found(files, joinPath(directory, name));
  const path = joinPath(directory, hook);
  const file = await at(hook);
  const passedTo = huskyDirectory === null ? null : await found(files, joinPath(huskyDirectory, hook));
  const manager = file === null || isOwn(file) ? null : managerOf(file.text ?? "", directory);
  return {
    hook,
    path,
    file,
    legacy: await at(`${hook}.legacy`),
    old: await at(`${hook}.old`),
    passedTo,
    kept: { around: await at(keptName(hook, "around")), above: await at(keptName(hook, "above")) },
    manager,
    byHand: await writtenByHand(files, worktreeRoot, hook, file, passedTo, manager),
  };
}

/** A file that we made is nobody else's, whatever is in it by now. */
function isOwn({ text }: FoundFile): boolean {
  const block = text === null ? null : findBlock(text);
  return block !== null && block !== "damaged" && block.style.place === "own";
}

/** Marked lines are ours; the others are somebody's own doing, which is just as good. */
async function writtenByHand(
  files: Files,
  worktreeRoot: string | null,
  hook: InstalledHook,
  file: FoundFile | null,
  passedTo: FoundFile | null,
  manager: Manager | null,
): Promise<string | null> {
  for (const one of [file, passedTo])
    if (one?.text != null && !one.text.includes("# >>> cotenant hook ") && callsUs(one.text, hook))
      return one.path;
  if (manager === null || worktreeRoot === null) return null;
  for (const name of PROJECT_FILES[manager]) {
    const one = await found(files, joinPath(worktreeRoot, name));
    if (one?.text != null && callsUs(one.text, hook) && !hooksIn(one.text).includes(hook)) return one.path;
  }
  return null;
}

async function found(files: Files, path: string): Promise<FoundFile | null> {
  const link = await files.lstat(path);
  if (link === null) return null;
  const { kind, mode, inode } = link;
  if (kind === "directory" || kind === "other") return { path, kind: "other", text: null, mode, inode };
  const stat = kind === "symlink" ? await files.stat(path) : link;
  const isReadable = stat !== null && stat.kind === "file" && stat.size <= LONGEST;
  const bytes = isReadable ? await files.readFile(path) : null;
  return { path, kind, text: bytes === null ? null : toBinary(bytes), mode, inode };
}

/** How one hook stands. */
export interface HookState {
  readonly hook: InstalledHook;
  /** `foreign`: there is a hook, and it does not call us. `outdated`: it does, but not as this version would. */
  readonly state: "installed" | "outdated" | "foreign" | "missing";
  readonly manager: Manager | null;
  /** The file that has our lines, else the one that Git runs or would run. */
  readonly path: string;
  readonly isExecutable: boolean;
  readonly isByHand: boolean;
  /** What our lines start; null where they look on the PATH, or are not there. */
  readonly program: Program;
  /** Whether a trial run reaches our lines before anything else, and who runs the file then. */
  readonly trial: "itself" | "shell" | null;
}

export function statesOf({ hooks, lefthook }: HooksSurvey): HookState[] {
  return hooks.map((found) => stateOf(found, lefthook));
}

export function stateOf(found: FoundHook, lefthook?: Lefthook): HookState {
  const { hook, file, legacy, passedTo, manager, byHand, path } = found;
  const isOn = (one: FoundFile | null) => one !== null && (one.mode & 0o111) !== 0;
  const nothing = { hook, manager, path, isByHand: false, program: null, trial: null } as const;
  const slots = [file, passedTo, manager === "pre-commit" ? legacy : null];
  for (const one of slots) {
    const block = one?.text == null ? null : findBlock(one.text);
    if (one === null || block === null) continue;
    const isExecutable = isOn(file) && (one === legacy ? isOn(legacy) : true);
    if (block === "damaged") return { ...nothing, path: one.path, isExecutable, state: "outdated" };
    const program = programOf(block);
    const isCurrent = block.hook === hook && block.text === blockText(hook, block.style, program);
    const trial = !comesFirst(block) ? null : one === passedTo ? "shell" : "itself";
    const state = isCurrent ? "installed" : "outdated";
    return { ...nothing, path: one.path, isExecutable, state, program, trial };
  }
  const entry =
    manager === "lefthook"
      ? [lefthook?.local, lefthook?.shared].find((one) => hasEntry(one?.text ?? null, hook))
      : undefined;
  if (entry != null) return { ...nothing, path: entry.path, isExecutable: isOn(file), state: "installed" };
  if (byHand !== null)
    return { ...nothing, path: byHand, isExecutable: isOn(file), isByHand: true, state: "installed" };
  return { ...nothing, isExecutable: isOn(file), state: file === null ? "missing" : "foreign" };
}

function programOf(block: Block): HookState["program"] {
  const found = programIn(block.text);
  return found === null ? null : { node: readable(found.node), program: readable(found.program) };
}
