import { resolveFrom } from "../../../identity/path-text";
import { Links } from "../links";
import type { World } from "../world";
import type { Named } from "../write-target";
import { patchedFiles } from "./ask-git";
import { expanded, MOST_MATCHES } from "./globs";
import type { ShellWrite } from "./walk";
import { hasPattern, singleOf, type Value } from "./words";

/** More than a command line names by itself. */
const MOST = 2_000;

export interface NamedFiles {
  readonly named: readonly Named[];
  /** False where there are too many to name them all, or others may come along. */
  readonly isAll: boolean;
}

/** What a command line may write, as files. What cannot be told is left to the comparison afterwards. */
export async function namedBy(world: World, writes: readonly ShellWrite[]): Promise<NamedFiles> {
  const links = new Links(world.platform.files);
  const found: Named[] = [];
  let isAll = true;
  for (const write of writes) {
    const paths = await pathsOf(world, links, write.value, write.cwd);
    isAll &&= paths.length < MOST_MATCHES;
    for (const path of paths) {
      const { mode, isEntry = false } = write;
      for (const place of await placesOf(world, links, write, path))
        found.push({ path: await links.follow(place, isEntry), mode, isEntry });
      isAll &&= write.brings !== "unless-file" || (await isPlainFile(world, path));
      if (found.length > MOST) return { named: found.slice(0, MOST), isAll: false };
    }
  }
  return { named: found, isAll };
}

/** What appears at a path, or in it: where the last word is a directory, files get their own names there. */
async function placesOf(world: World, links: Links, write: ShellWrite, path: string): Promise<string[]> {
  const { names, replaces, link, cwd, patch } = write;
  if (patch !== undefined) return patchedFiles(world, path, cwd ?? "/", patch);
  if (names === undefined) return [path];
  const [itself, real] = [await links.follow(path, true), await links.follow(path)];
  const isReplaced = replaces === "any" || (replaces === "link" && itself !== real);
  const isInside = !isReplaced && (await isDirectory(world, real));
  const places: string[] = [];
  for (const name of names)
    for (const source of await pathsOf(world, links, name, cwd)) {
      const place = isInside ? await links.follow(`${real}/${lastOf(source)}`, true) : itself;
      places.push(place);
      const target = singleOf(name);
      if (target !== null && link !== undefined && link !== "second")
        links.add(place, link === "from-shell" ? resolveFrom(cwd ?? "/", target) : target);
    }
  return isInside ? places : [path];
}

/** Patterns are looked for where links lead by now. */
async function pathsOf(
  { platform }: World,
  links: Links,
  value: Value,
  cwd: string | null,
): Promise<string[]> {
  const found: string[] = [];
  for (const text of value ?? []) {
    if (text === "" || text === "-") continue;
    if (text.startsWith("/") || cwd !== null) {
      const whole = resolveFrom(cwd ?? "/", text);
      if (hasPattern(whole)) found.push(...(await expanded(platform.files, await links.follow(whole, true))));
      else found.push(whole);
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

async function isPlainFile({ platform }: World, path: string): Promise<boolean> {
  try {
    return ((await platform.files.lstat(path))?.kind ?? "file") === "file";
  } catch {
    return false;
  }
}

function lastOf(path: string): string {
  const trimmed = path.replace(/\/$/, "");
  return trimmed.slice(trimmed.lastIndexOf("/") + 1);
}
