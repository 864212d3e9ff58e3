import { readable } from "../../../platform/binary-text";
import { type Block, blockText, comesFirst, findBlock, programIn } from "./block";
import { hasEntry } from "./entries";
import type { InstalledHook } from "./hooks";
import type { FoundFile, FoundHook, Lefthook, Scene } from "./look";
import type { Manager } from "./managers";

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
  readonly program: { readonly node: string; readonly program: string } | null;
  /** Whether a trial run reaches our lines before anything else, and who runs the file then. */
  readonly trial: "itself" | "shell" | null;
}

export function statesOf({ hooks, lefthook }: Scene): HookState[] {
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
