import { limitError } from "../../errors/cotenant-error";
import { byteTextOf, toByteText } from "../../git/byte-text";
import type { Git } from "../../platform/git";
import type { BytePath, Trees } from "../../platform/trees";
import { ask, LONG_MS } from "./git-calls";
import { makeDirectories } from "./tree-removal";

/** More than this is a mistake in a pattern, or work for `worktree.setup`. */
const MOST_FILES = 20_000;

/**
 * Files of one worktree that Git ignores and that fit a pattern, into another one: what a fresh worktree needs and no
 * commit has, such as `.env`. Never over something that is there.
 */
export async function copyIgnored(
  { git, trees }: { readonly git: Git; readonly trees: Trees },
  from: string,
  to: string,
  patterns: readonly string[],
): Promise<string[]> {
  if (patterns.length === 0) return [];
  const specs = patterns.map((pattern) => `:(top,glob)${pattern.replace(/^\/+/, "")}`);
  const inside = patterns.map((pattern) => `:(top,glob)${pattern.replace(/^\/+|\/+$/g, "")}/**`);
  const listed = await ask(
    git,
    ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", ...specs, ...inside],
    { cwd: from, timeoutMs: LONG_MS },
    "finding what a new worktree gets",
  );
  const paths = byteTextOf(listed)
    .split("\0")
    .filter((path) => path !== "" && !isOwn(path) && !path.endsWith("/"));
  if (paths.length > MOST_FILES)
    throw limitError(
      `worktree.copy fits ${paths.length} files; the limit is ${MOST_FILES}`,
      "copy less, and let worktree.setup make the rest",
      { setting: "worktree.copy", files: paths.length },
    );
  const copied: string[] = [];
  for (const path of paths)
    if (await copyOne(trees, toByteText(from), toByteText(to), path)) copied.push(path);
  return copied;
}

async function copyOne(trees: Trees, from: BytePath, to: BytePath, path: BytePath): Promise<boolean> {
  const entry = await trees.look(`${from}/${path}`);
  const target = `${to}/${path}`;
  if (entry === null || (await trees.look(target)) !== null) return false;
  if (entry.kind !== "file" && entry.kind !== "symlink") return false;
  if (await leadsAway(trees, to, path)) return false;
  await makeDirectories(trees, target.slice(0, target.lastIndexOf("/")));
  if (entry.kind === "symlink") await trees.makeLink(await trees.readLink(`${from}/${path}`), target);
  else await trees.copy(`${from}/${path}`, target);
  return true;
}

/** Whether something on the way is no directory: through a link that the branch has, it would go to who knows where. */
async function leadsAway(trees: Trees, root: BytePath, path: BytePath): Promise<boolean> {
  for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) {
    const above = await trees.look(`${root}/${path.slice(0, end)}`);
    if (above === null) return false;
    if (above.kind !== "directory") return true;
  }
  return false;
}

/** A worktree's own identity is nobody else's. */
function isOwn(path: BytePath): boolean {
  return path.startsWith(".cotenant/");
}
