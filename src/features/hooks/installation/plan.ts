import { below, joinPath, parentOf } from "../../../identity/path-text";
import { printable } from "../../../kernel/ids";
import { type Installed, isObjection, type Objection, type Program } from "../../installer/files";
import {
  type Block,
  blockText,
  findBlock,
  type InstalledHook,
  inserted,
  isShellScript,
  keptName,
  ownFile,
  type Style,
  withBlock,
} from "./block";
import type { FoundFile, FoundHook, HooksSurvey } from "./look";
import { hasEntry, type Manager, remarkOn, rerunMark, withEntries } from "./managers";

export interface Wishes {
  readonly program: Installed;
  /** Files that are committed may be changed. */
  readonly shared: boolean;
  /** So may a directory that other repositories use. */
  readonly force: boolean;
}

/** What happens to one file. `kept` is where somebody else's hook goes first. */
export interface Write {
  readonly path: string;
  readonly text: string;
  readonly mode: number;
  /** What is there now. */
  readonly was: FoundFile | null;
  readonly kept: { readonly path: string; readonly from: FoundFile } | null;
}

export interface HookPlan {
  readonly hook: InstalledHook;
  readonly action: "created" | "added" | "wrapped" | "updated" | "unchanged";
  /** The file that has our lines. */
  readonly path: string;
  readonly manager: Manager | null;
  readonly isShared: boolean;
  readonly write: Write | null;
  /** It is among the project's files, and Git is told to pass it over. */
  readonly isHidden?: boolean;
}

/** Our calls in a manager's own configuration, which outlast its writing hooks anew. */
export interface EntryPlan {
  readonly path: string;
  readonly isShared: boolean;
  readonly isHidden: boolean;
  /** Null where they are there already. */
  readonly write: Write | null;
}

export interface InstallPlan {
  readonly hooks: readonly HookPlan[];
  readonly entry: EntryPlan | null;
  /** A directory to make first. */
  readonly makes: string | null;
  /** Files of ours among the project's, as paths below the worktree, that nobody is to commit by accident. */
  readonly hides: readonly string[];
  /** What people should know. */
  readonly remarks: readonly string[];
}

/** All hooks or none: an objection against one is an objection against all. */
export function planInstall(scene: HooksSurvey, wishes: Wishes): InstallPlan | Objection {
  const against = againstPlace(scene, wishes);
  if (against !== null) return against;
  const makes = scene.place.exists ? null : scene.place.directory;
  const hooks: HookPlan[] = [];
  for (const found of scene.hooks) {
    const plan = planHook(scene, found, wishes, makes !== null);
    if (isObjection(plan)) return plan;
    hooks.push(plan);
  }
  const committed = hooks.filter(({ write, isShared }) => write !== null && isShared);
  if (committed.length > 0 && !wishes.shared) return areCommitted(committed);
  const entry = planEntry(scene, wishes);
  if (isObjection(entry)) return entry;
  const changed = hooks.filter(({ write }) => write !== null);
  const managers = new Set(changed.filter(({ isShared }) => !isShared).map(({ manager }) => manager));
  const remarks = [...managers].flatMap((manager) => (manager === null ? [] : (remarkOn(manager) ?? [])));
  if (scene.place.isOneOfMany && changed.length > 0)
    remarks.push(
      "core.hooksPath is relative, so that each worktree has hooks of its own: install in the others too",
    );
  if (entry === null && hooks.some(({ manager }) => manager === "lefthook"))
    remarks.push(
      "lefthook-local.yml cannot be added to: when lefthook writes its hooks anew, the next cotenant command or guard event puts our lines back; cotenant's docs/HOOKS.md has the entries to write yourself",
    );
  const hidden = [...hooks, ...(entry === null ? [] : [entry])].filter(({ isHidden }) => isHidden === true);
  const { worktreeRoot } = scene;
  const hides = hidden.flatMap(({ path }) =>
    worktreeRoot === null ? [] : (below(path, worktreeRoot) ?? []),
  );
  return { hooks, entry, makes: changed.length === 0 ? null : makes, hides, remarks };
}

/** For the hooks that lefthook runs; null where there are none, or the file is written in a way that we do not add to. */
function planEntry(scene: HooksSurvey, { shared, program }: Wishes): EntryPlan | Objection | null {
  const { lefthook, versioned } = scene;
  const inShared = (hook: InstalledHook) => hasEntry(lefthook.shared?.text ?? null, hook);
  // For everybody it writes all of them, once they are in its file: in this clone it may know of one only.
  const isInCharge = scene.hooks.some(({ manager }) => manager === "lefthook");
  const hooks = scene.hooks
    .filter(({ manager, byHand }) => byHand === null && (manager === "lefthook" || (shared && isInCharge)))
    .map(({ hook }) => hook);
  const was = shared ? lefthook.shared : lefthook.local;
  const path = was?.path ?? (shared ? null : lefthook.localPath);
  const wanted = shared ? hooks : hooks.filter((hook) => !inShared(hook));
  if (hooks.length === 0 || path === null) return null;
  if (wanted.length === 0) return { path, isShared: false, isHidden: false, write: null };
  // With paths of this machine in it, nobody is to commit it.
  const isForeign =
    was !== null && (was.kind !== "file" || was.text === null || (!shared && versioned.has(path)));
  const text =
    isForeign || !/\.ya?ml$/.test(path)
      ? null
      : withEntries(was?.text ?? null, wanted, shared ? null : program);
  if (text === null)
    return shared
      ? objection(`${path} is written in a way that cotenant does not add to`, BY_HAND, path)
      : null;
  const write = text === was?.text ? null : { path, text, mode: was?.mode ?? 0o644, was, kept: null };
  return { path, isShared: shared, isHidden: !shared && versioned.has(path), write };
}

const BY_HAND = "write the entries into it yourself, as cotenant's docs/HOOKS.md shows";

function againstPlace(
  { place, huskyDirectory, hooks }: HooksSurvey,
  { shared, force }: Wishes,
): Objection | null {
  const { directory, setting, whose, exists } = place;
  const value = printable(setting?.value ?? "", 200);
  if (whose === "nowhere")
    return objection(
      `Git runs no hooks here: core.hooksPath is "${value}" in its ${setting?.scope ?? "own"} configuration, which is no directory`,
      `unset it ('git config --${setting?.scope ?? "local"} --unset-all core.hooksPath'), or point it at a directory`,
      directory,
    );
  if (whose === "outside" && !force)
    return objection(
      `core.hooksPath (${setting?.scope ?? ""} configuration) is ${directory}, where other repositories may find their hooks too`,
      'for all of them: cotenant hooks install --force (its hooks pass where cotenant was never set up); or give this clone its own: git config core.hooksPath "$(git rev-parse --path-format=absolute --git-common-dir)/hooks"',
      directory,
    );
  if (huskyDirectory !== null && !exists)
    return objection(
      `husky was not set up in this worktree: there is no ${directory}`,
      "run husky's own set-up here ('npm install' or 'npx husky'), then the same command again",
      directory,
    );
  if (shared && whose === "private" && !hooks.some(({ manager }) => manager === "lefthook"))
    return {
      code: "E_USAGE",
      message: `--shared is for hooks that are committed, and ${directory} never is`,
      hint: "leave --shared out; for the framework pre-commit write the call into its own file, as cotenant's docs/HOOKS.md shows",
      path: directory,
    };
  return null;
}

function objection(message: string, hint: string, path: string | null): Objection {
  return { code: "E_HOOKS", message, hint, path };
}

const OUTLASTING: readonly InstalledHook[] = ["prepare-commit-msg", "post-commit"];

/** Where our lines are, or where they belong. */
interface Slot {
  readonly path: string;
  readonly file: FoundFile | null;
  readonly isPassedTo: boolean;
  readonly isHidden?: boolean;
}

function slotOf({ huskyDirectory, tracked }: HooksSurvey, found: FoundHook, shared: boolean): Slot {
  const { file, legacy, passedTo, hook, path, manager } = found;
  const has = (one: FoundFile | null) => one?.text != null && findBlock(one.text) !== null;
  if (has(file)) return { path, file, isPassedTo: false };
  const behind = huskyDirectory === null ? null : joinPath(huskyDirectory, hook);
  if (behind !== null && (shared || has(passedTo))) return { path: behind, file: passedTo, isPassedTo: true };
  // Husky leaves these alone, and projects hardly ever have them: what stands there outlasts husky's next install.
  if (behind !== null && OUTLASTING.includes(hook) && passedTo === null && !tracked.has(behind))
    return { path: behind, file: null, isPassedTo: true, isHidden: true };
  // It runs this one first, gives it what Git gave, counts its status, and leaves it alone when it installs itself again.
  if (manager === "pre-commit") return { path: `${path}.legacy`, file: legacy, isPassedTo: false };
  return { path, file, isPassedTo: false };
}

function planHook(
  scene: HooksSurvey,
  found: FoundHook,
  wishes: Wishes,
  madeDirectory: boolean,
): HookPlan | Objection {
  const { hook, manager, byHand } = found;
  const slot = slotOf(scene, found, wishes.shared);
  const isHidden = slot.isHidden === true && !wishes.shared;
  const isShared = !isHidden && scene.versioned.has(slot.path);
  const base = { hook, manager, path: slot.path, isShared, isHidden };
  const block = slot.file?.text == null ? null : findBlock(slot.file.text);
  if (block === null && byHand !== null) return { ...base, path: byHand, action: "unchanged", write: null };
  const program = isShared ? null : wishes.program;
  if (block === "damaged") return damaged(slot.path);
  return block !== null
    ? updated(base, slot.file!, block, program)
    : fresh(scene, found, slot, base, program, madeDirectory);
}

type Base = Pick<HookPlan, "hook" | "manager" | "path" | "isShared" | "isHidden">;

/** In what is ours already, only what has become of our lines. */
function updated(base: Base, file: FoundFile, block: Block, program: Program): HookPlan | Objection {
  const text = blockText(base.hook, block.style, program);
  const mode = file.mode | (block.style.place === "guest" ? 0 : 0o111 & (file.mode >> 2));
  const isSame = block.text === text && block.hook === base.hook && mode === file.mode;
  if (!isSame && file.kind === "symlink")
    return objection(
      `${file.path} is a link to a file with older lines of cotenant's`,
      "put a file of its own there, or remove the link, then run the same command again",
      file.path,
    );
  const write = { path: base.path, text: withBlock(block, text), mode, was: file, kept: null };
  return { ...base, action: isSame ? "unchanged" : "updated", write: isSame ? null : write };
}

function fresh(
  scene: HooksSurvey,
  found: FoundHook,
  { file, isPassedTo }: { readonly file: FoundFile | null; readonly isPassedTo: boolean },
  base: Base,
  program: Program,
  madeDirectory: boolean,
): HookPlan | Objection {
  const { hook } = base;
  if (file === null) {
    const style: Style = { place: "own", ...(madeDirectory ? { madeDirectory } : {}) };
    const text = ownFile(blockText(hook, style, program));
    return {
      ...base,
      action: "created",
      write: { path: base.path, text, mode: 0o755, was: null, kept: null },
    };
  }
  if (file.kind === "other")
    return objection(`${file.path} is neither a file nor a link`, "move it out of the way", file.path);
  // Husky hands its files to a shell, so that they need not be executable. Elsewhere one that is not is switched off, and
  // must not be switched on by us.
  const isOn = isPassedTo || (file.mode & 0o111) !== 0;
  if (file.kind === "file" && file.text !== null && isOn && isShellScript(file.text)) {
    const skipsWhenSet = rerunMark(file.text);
    const style: Style = { place: "guest", ...(skipsWhenSet === undefined ? {} : { skipsWhenSet }) };
    const text = inserted(file.text, blockText(hook, style, program))!;
    return {
      ...base,
      action: "added",
      write: { path: base.path, text, mode: file.mode, was: file, kept: null },
    };
  }
  return wrapped(scene, found, file, base, program);
}

/** Neither a shell script nor ours to change: it is kept as it is, under another name, and ours runs it. */
function wrapped(
  { place }: HooksSurvey,
  { kept, manager }: FoundHook,
  file: FoundFile,
  base: Base,
  program: Program,
): HookPlan | Objection {
  // It finds out by its name what it is to do.
  const isByName = manager === "overcommit";
  if (isByName && file.kind === "symlink")
    return objection(
      `${file.path} is a link of an older overcommit, which must keep its name`,
      `update overcommit and run 'overcommit --install', or call 'cotenant hook ${base.hook}' from .overcommit.yml`,
      file.path,
    );
  const how = isByName ? "above" : "around";
  const path = joinPath(place.directory, keptName(base.hook, how));
  const there = kept[how];
  if (there !== null && there.inode !== file.inode && (there.text === null || there.text !== file.text))
    return objection(
      `${path} is there already, from an earlier installation, and differs from ${file.path}`,
      "compare the two, keep the one that is wanted under the hook's own name, remove the other, and try again",
      path,
    );
  const text = ownFile(blockText(base.hook, { place: how }, program));
  return {
    ...base,
    action: "wrapped",
    write: { path: base.path, text, mode: 0o755, was: file, kept: { path, from: file } },
  };
}

function damaged(path: string): Objection {
  return objection(
    `the lines of cotenant's in ${path} are damaged`,
    "remove them by hand, from '# >>> cotenant hook' to '# <<< cotenant hook', then run the same command again",
    path,
  );
}

/** `plans` have at least one. */
function areCommitted(plans: readonly HookPlan[]): Objection {
  const [first, ...others] = plans.map(({ hook }) => hook);
  const there = plans.find(({ write }) => write?.was != null);
  const { path } = there ?? plans[0]!;
  const also = others.length === 0 ? "" : ` (and so for ${others.join(", ")})`;
  return objection(
    there === undefined
      ? `${parentOf(path)} is among the project's files: Git would take hooks there with the next commit`
      : `${path} belongs to the project: Git has it, or would take it with the next commit`,
    `for everybody: cotenant hooks install --shared; or write the call into each hook yourself: cotenant hook ${first} "$@" || exit 1${also}`,
    path,
  );
}

/** What a person can do about hooks that are missing or outdated here. */
export function howToInstall(scene: HooksSurvey, program: Wishes["program"]): string {
  const plan = planInstall(scene, { program, shared: false, force: false });
  return isObjection(plan) ? plan.hint : "run: cotenant hooks install";
}
