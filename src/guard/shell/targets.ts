import type { Named } from "../target";
import type { World } from "../world";
import { expanded, MOST_MATCHES } from "./globs";
import type { ShellWrite } from "./walk";
import { hasPattern, type Value } from "./words";

/** More than a command line names by itself. */
const MOST = 2_000;

export interface NamedFiles {
  readonly named: readonly Named[];
  /** False where there are too many to name them all. */
  readonly isAll: boolean;
}

/** What a command line may write, as files. What cannot be told is left to the comparison afterwards. */
export async function namedBy(world: World, writes: readonly ShellWrite[]): Promise<NamedFiles> {
  const found: Named[] = [];
  let isAll = true;
  for (const { value, names, mode, cwd } of writes) {
    const paths = await pathsOf(world, value, cwd);
    isAll &&= paths.length < MOST_MATCHES;
    for (const path of paths) {
      // Where the last word is a directory, files appear in it under their own names.
      const inside = names === undefined || !(await isDirectory(world, path)) ? null : names;
      if (inside === null) found.push({ path, mode });
      else
        for (const name of inside)
          for (const source of await pathsOf(world, name, cwd))
            found.push({ path: `${path}/${lastOf(source)}`, mode });
      if (found.length > MOST) return { named: found.slice(0, MOST), isAll: false };
    }
  }
  return { named: found, isAll };
}

async function pathsOf({ platform }: World, value: Value, cwd: string | null): Promise<string[]> {
  const found: string[] = [];
  for (const text of value ?? []) {
    if (text === "" || text === "-") continue;
    if (text.startsWith("/") || cwd !== null) {
      const whole = text.startsWith("/") ? text : `${cwd}/${text}`;
      found.push(...(hasPattern(whole) ? await expanded(platform.files, whole) : [whole]));
    }
  }
  return found;
}

async function isDirectory({ platform }: World, path: string): Promise<boolean> {
  try {
    return path.endsWith("/") || (await platform.files.stat(path))?.kind === "directory";
  } catch {
    return false;
  }
}

function lastOf(path: string): string {
  const trimmed = path.replace(/\/$/, "");
  return trimmed.slice(trimmed.lastIndexOf("/") + 1);
}
