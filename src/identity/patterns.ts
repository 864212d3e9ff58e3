import { printable } from "../kernel/ids";
import type { RepoPath } from "../kernel/keys";
import { shellQuoted } from "../kernel/printing";
import { isRefusal, type Refusal, refuse } from "../kernel/refusal";
import type { Git } from "../platform/git";
import { gitWords } from "../platform/git-answers";
import type { Files } from "../platform/platform";
import { gitPath } from "./paths";
import type { Repository } from "./repository-shape";

/**
 * A lease on a name that nobody has protects nothing. A file that has such a name is a file. Brackets and braces alone are
 * everyday names, also of files that are still to be made (`[id].tsx`), unless files are there that they would match.
 */
export async function refusePattern(
  files: Files,
  text: string,
  absolutePath: string,
  hint?: string,
): Promise<Refusal | null> {
  if (!/[*?[{]/.test(text) || (await files.lstat(absolutePath)) !== null) return null;
  const isStarred = /[*?]/.test(text);
  const meant = isStarred ? [] : await matchesOf(files, text, absolutePath);
  if (!isStarred && meant.length === 0) return null;
  // Git's patterns have no braces.
  const isGits = !/\{[^{}/]*,[^{}/]*\}/.test(text);
  const directory = isGits
    ? `to lease the smallest directory that covers what it matches: cotenant lock acquire --glob ${quoted(text)}; else `
    : "";
  const named = meant.length === 0 ? "name the files" : `name the files: ${meant.map(quoted).join(" ")}`;
  return refuse("E_USAGE", `"${printable(text)}" is a pattern, and there is no file of that name`, {
    hint: hint ?? `${directory}${named}, or --dir <path>`,
  });
}

const MOST_NAMED = 5;

/** Files that brackets and braces in a path match, as a shell would, seen from where the caller stands. */
async function matchesOf(files: Files, text: string, absolutePath: string): Promise<string[]> {
  const path = text.replace(/^(?:\.?\/)+/, "");
  if (!absolutePath.endsWith(`/${path}`)) return [];
  const base = absolutePath.slice(0, -path.length);
  let found = [""];
  for (const segment of path.split("/")) {
    const pattern = asExpression(segment);
    const next: string[] = [];
    for (const start of found)
      if (pattern === null) next.push(`${start}/${segment}`);
      else
        for (const name of await namesIn(files, `${base}${start.slice(1)}`))
          if (pattern.test(name)) next.push(`${start}/${name}`);
    found = next.sort().slice(0, MOST_TRIED);
  }
  const there: string[] = [];
  for (const each of found.map((one) => one.slice(1)))
    if (there.length < MOST_NAMED && (await files.lstat(base + each)) !== null) there.push(each);
  const before = text.slice(0, text.length - path.length);
  return there.map((each) => before + each);
}

const MOST_TRIED = 100;

async function namesIn(files: Files, directory: string): Promise<readonly string[]> {
  try {
    return (await files.readDirectory(directory)) ?? [];
  } catch {
    return [];
  }
}

/** Null for what is no pattern. */
function asExpression(name: string): RegExp | null {
  const parts = name.split(/(\[[!^]?[^\]]+\]|\{[^{}]*,[^{}]*\})/);
  if (parts.length === 1) return null;
  const escaped = (part: string) => part.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  const source = parts.map((part, i) => {
    if (i % 2 === 0) return escaped(part);
    if (part.startsWith("{")) return `(?:${part.slice(1, -1).split(",").map(escaped).join("|")})`;
    const isNegated = /^\[[!^]/.test(part);
    const inner = part.slice(isNegated ? 2 : 1, -1).replace(/[\\^[\]]/g, "\\$&");
    return `[${isNegated ? "^" : ""}${inner}]`;
  });
  try {
    return new RegExp(`^${source.join("")}$`, "u");
  } catch {
    // Such as a range from z to a.
    return null;
  }
}

/** What a pattern stands for: the files that match now, and what protects them, and those to come, from others. */
export interface Cover {
  readonly pattern: string;
  /** Below the worktree's root. */
  readonly files: readonly string[];
  readonly directory: RepoPath;
}

/**
 * Leases are on names and directories, so a pattern is covered by the smallest directory that has all of its matches. Git
 * matches, by its own rules, what it has and what it would take; ignored files are nobody's work.
 */
export async function coverOf(
  git: Git,
  repository: Repository,
  cwd: string,
  pattern: string,
): Promise<Cover | Refusal> {
  if (pattern === "") return refuse("E_USAGE", "an empty pattern names nothing", { hint: PATTERNS });
  const { status, stdout, stderr } = await git.run(
    ["ls-files", "-z", "--full-name", "--deduplicate", ...KINDS, "--", `:(glob)${pattern}`],
    { cwd, timeoutMs: 60_000 },
  );
  if (status !== 0 && stderr.includes("is outside repository"))
    return refuse("E_PATH_ESCAPE", `"${printable(pattern)}" leads out of the worktree`, {
      hint: PATTERNS,
      data: { path: printable(pattern, 500) },
    });
  if (status !== 0)
    return refuse("E_USAGE", `"${printable(pattern)}" is no pattern that Git takes: ${gitWords(stderr)}`, {
      hint: PATTERNS,
    });
  const files = new TextDecoder().decode(stdout).split("\0").slice(0, -1).sort();
  if (files.length === 0)
    return refuse("E_NOT_FOUND", `no file here matches "${printable(pattern)}"`, {
      hint: `${PATTERNS}; ignored files never match`,
    });
  const common = commonDirectory(files);
  if (common === "")
    return refuse(
      "E_USAGE",
      `what "${printable(pattern)}" matches has no directory in common but the whole repository`,
      {
        hint: "name a pattern for each directory; to lease everything: cotenant lock acquire --dir .",
      },
    );
  const directory = gitPath(repository, common);
  return isRefusal(directory) ? directory : { pattern, files, directory };
}

const PATTERNS = "patterns are Git's, seen from here: * within a name, ** for any directories, [abc]";
const KINDS = ["--cached", "--others", "--exclude-standard"];

function commonDirectory(files: readonly string[]): string {
  const above = (file: string) => file.split("/").slice(0, -1);
  let common = above(files[0]!);
  for (const file of files) {
    const parts = above(file);
    const differs = common.findIndex((part, i) => part !== parts[i]);
    if (differs !== -1) common = common.slice(0, differs);
  }
  return common.join("/");
}

const quoted = (text: string) => shellQuoted(printable(text, 400));
