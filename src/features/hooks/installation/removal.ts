import { joinPath } from "../../../identity/path-text";
import type { Left } from "../../installer/files";
import {
  ALL_HOOKS,
  type Block,
  findBlock,
  hooksIn,
  type InstalledHook,
  isWhole,
  keptName,
  withoutBlock,
} from "./block";
import type { FoundFile, FoundHook, HooksSurvey, Lefthook } from "./look";
import { withoutEntries } from "./managers";

/** What happens to one file of others, or of ours. */
export type Removal = { readonly hook: InstalledHook; readonly path: string } & (
  | { readonly action: "removed" }
  | { readonly action: "restored"; readonly from: string }
  | { readonly action: "taken_out"; readonly text: string; readonly mode: number }
);

export interface UninstallPlan {
  /** Of hooks; null where a manager's configuration is meant. */
  readonly directory: string | null;
  readonly removals: readonly Removal[];
  /** What stays, and why. */
  readonly left: readonly Left[];
  /** Goes too when nothing is left in it. */
  readonly madeDirectory: boolean;
}

/** Only our lines go, whatever else has become of the file. */
export function planUninstall(
  scene: HooksSurvey,
  { shared, force }: { readonly shared: boolean; readonly force: boolean },
): UninstallPlan {
  const { place, versioned } = scene;
  const removals: Removal[] = [];
  const left: Left[] = [];
  let madeDirectory = false;
  for (const found of scene.hooks) {
    const strays = straysOf(found);
    removals.push(...strays.removals);
    left.push(...strays.left);
    for (const { file, block } of oursIn(found)) {
      const why = whyLeft(file, block, found);
      if (why !== null) left.push({ path: file.path, why });
      else if (versioned.has(file.path) && !shared) left.push({ path: file.path, why: IS_SHARED });
      else if (place.whose === "outside" && !force)
        left.push({ path: file.path, why: "other repositories use it too; add --force to take it from all" });
      else {
        removals.push(removal(place.directory, found, file, block as Block));
        madeDirectory ||= (block as Block).style.madeDirectory === true;
      }
    }
  }
  return { directory: place.directory, removals, left, madeDirectory };
}

/** The same for our entries in lefthook's configurations of one worktree. */
export function planEntryRemoval(
  { local, shared }: Lefthook,
  { shared: may }: { readonly shared: boolean },
): UninstallPlan {
  const removals: Removal[] = [];
  const left: Left[] = [];
  for (const file of [local, shared]) {
    const [hook] = file?.text == null ? [] : hooksIn(file.text);
    if (file?.text == null || hook === undefined) continue;
    const { path, mode } = file;
    const text = withoutEntries(file.text);
    if (file === shared && !may) left.push({ path, why: IS_SHARED });
    else if (file.kind === "symlink") left.push({ path, why: IS_LINK });
    else if (text === "damaged") left.push({ path, why: IS_DAMAGED });
    else
      removals.push(
        text === null ? { hook, path, action: "removed" } : { hook, path, action: "taken_out", text, mode },
      );
  }
  return { directory: null, removals, left, madeDirectory: false };
}

const IS_SHARED = "it belongs to the project; add --shared to change it for everybody";
const IS_LINK = "it is a link; take the lines out of the file that it leads to";
const IS_DAMAGED =
  "our lines in it are damaged; remove them by hand, from '# >>> cotenant hook' to '# <<< cotenant hook'";

type Ours = { readonly file: FoundFile; readonly block: Block | "damaged" };

/** Managers move files about: ours are looked for wherever they may have gone. */
function oursIn({ file, legacy, old, passedTo }: FoundHook): Ours[] {
  return [file, legacy, old, passedTo].flatMap((one) => {
    const block = one?.text == null ? null : findBlock(one.text);
    return block === null ? [] : [{ file: one!, block }];
  });
}

/** Kept hooks that nothing of ours runs: a second name from an installation that was cut short, or somebody's old hook. */
function straysOf(found: FoundHook): { removals: Removal[]; left: Left[] } {
  const { hook, file } = found;
  const removals: Removal[] = [];
  const left: Left[] = [];
  for (const place of ["around", "above"] as const) {
    const kept = found.kept[place];
    const isRun = oursIn(found).some(({ block }) => block !== "damaged" && block.style.place === place);
    if (kept === null || isRun) continue;
    if (kept.inode === file?.inode) removals.push({ hook, path: kept.path, action: "removed" });
    else
      left.push({
        path: kept.path,
        why: "a hook of others that was kept, and that something else has replaced",
      });
  }
  return { removals, left };
}

function whyLeft(file: FoundFile, block: Ours["block"], { kept }: FoundHook): string | null {
  if (file.kind === "symlink") return IS_LINK;
  if (block === "damaged" || !ALL_HOOKS.includes(block.hook)) return IS_DAMAGED;
  const { place } = block.style;
  if ((place === "around" || place === "above") && !isWhole(block) && kept[place] !== null)
    return `somebody added to it; move that into ${kept[place].path}, then run the same command again`;
  return null;
}

function removal(directory: string, { kept }: FoundHook, file: FoundFile, block: Block): Removal {
  const { hook, style } = block;
  const base = { hook, path: file.path };
  if (style.place === "around" || style.place === "above")
    if (kept[style.place] !== null)
      return { ...base, action: "restored", from: joinPath(directory, keptName(hook, style.place)) };
  if (style.place !== "guest" && isWhole(block)) return { ...base, action: "removed" };
  return { ...base, action: "taken_out", text: withoutBlock(block), mode: file.mode };
}
