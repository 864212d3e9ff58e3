import { CotenantError } from "../../errors/cotenant-error";
import type { ErrorCode } from "../../errors/registry";
import { MODES } from "../../git/tree";
import type { Leaf } from "../../git/tree-editor";
import { printable } from "../../kernel/ids";
import { isGitDirectoryName, MAX_SEGMENT_BYTES, utf8Length } from "../../kernel/keys";
import { fitsPattern } from "../../kernel/path-patterns";
import { type PathJudge, ruledOut, whatInstead } from "../../kernel/path-rules";
import { respelt } from "../hooks/spelling";
import { type Allowed, howToAllow, isAllowed } from "./allowances";
import { type Draft, FILE_MODES, type Wanted } from "./draft";
import { MOST_NAMED, others } from "./hint-words";

export interface PathRules {
  readonly forbiddenPaths: readonly string[];
  /** Where what looks like a secret is let through. */
  readonly allowSecretsIn: Allowed;
  readonly maxPaths: number;
  readonly maxFileBytes: number;
  readonly ignoreCase: boolean;
  readonly publisher: string;
  /** What policy.paths says to the publisher; null where no rule binds them. */
  readonly judge: PathJudge | null;
  /** What was committed with Git, in a checkout, may change them. */
  readonly allowsSubmodules?: boolean;
}

export interface PathObjection {
  readonly code: ErrorCode;
  readonly path: string;
  readonly why: string;
  /** Of all paths that are objected to for the same reason. */
  readonly hint?: (paths: readonly string[]) => string;
}

/** Everything that speaks against these paths, whoever holds them. `before`: what stands there in the base. */
export function pathObjections(
  draft: Draft,
  before: ReadonlyMap<string, Leaf>,
  rules: PathRules,
): PathObjection[] {
  const found: PathObjection[] = [];
  if (draft.size > rules.maxPaths)
    found.push({
      code: "E_LIMIT",
      path: "",
      why: `${draft.size} paths are to change; publish.max_paths allows ${rules.maxPaths}`,
    });
  for (const [path, wanted] of draft) {
    const objection = objectionTo(path, wanted, before.get(path) ?? null, rules);
    if (objection !== null) found.push({ path, ...objection });
  }
  return found;
}

type Why = Omit<PathObjection, "path"> | null;

function objectionTo(path: string, wanted: Wanted | null, before: Leaf | null, rules: PathRules): Why {
  return (
    nameObjection(path, wanted, rules) ??
    (rules.allowsSubmodules === true ? null : submoduleObjection(path, wanted, before)) ??
    (wanted === null || wanted.mode === MODES.submodule ? null : contentObjection(path, wanted, rules))
  );
}

function nameObjection(path: string, wanted: Wanted | null, rules: PathRules): Why {
  const rule = rules.judge?.writing(path) ?? null;
  if (rule !== null)
    return {
      code: "E_PATH_RULE",
      why: ruledOut(rule, path, [rules.publisher]),
      hint: () => whatInstead(rule),
    };
  const folded = rules.ignoreCase ? path.toLowerCase() : path;
  const pattern = rules.forbiddenPaths.find((one) =>
    fitsPattern(rules.ignoreCase ? one.toLowerCase() : one, folded),
  );
  if (pattern !== undefined)
    return {
      code: "E_POLICY",
      why: `publish.forbidden_paths has ${printable(pattern, 100)}`,
      hint: () => "leave it out, or have whoever set publish.forbidden_paths take it off",
    };
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  // Taking one out of the repository is what anybody would want.
  const mayHoldSecrets = isAllowed(rules.allowSecretsIn.patterns, path);
  if (wanted !== null && name.startsWith(".env") && !mayHoldSecrets)
    return {
      code: "E_SECRET_FOUND",
      why: "files named .env* are taken for secrets",
      hint: (paths) => `if it holds none, ${howToAllow(rules.allowSecretsIn, paths)}`,
    };
  // Whoever has the branch could check nothing out any more, were it only for this one name.
  if (wanted !== null && (path.length > LONGEST_PATH || path.split("/").some(isUncheckable)))
    return {
      code: "E_POLICY",
      why: "Git can check out nothing of that name",
      hint: () => "take it out of the commits in question",
    };
  const real = wanted === null ? null : respelt(path);
  if (real !== null)
    return {
      code: "E_POLICY",
      why: `it is ${printable(real, 200)} on disks where upper and lower case are one`,
    };
  if (path === ".cotenant/worktree.json")
    return { code: "E_POLICY", why: "it is the identity of one worktree, and belongs in no commit" };
  return null;
}

/** Of what systems take. */
const LONGEST_PATH = 4_095;

function isUncheckable(name: string): boolean {
  // What is no Unicode has been decoded: then each such byte is one character.
  const bytes = name.includes("\ufffd") ? name.length : utf8Length(name);
  return ["", ".", ".."].includes(name) || isGitDirectoryName(name) || bytes > MAX_SEGMENT_BYTES;
}

function submoduleObjection(path: string, wanted: Wanted | null, before: Leaf | null): Why {
  const isSubmodule = before?.mode === MODES.submodule || wanted?.mode === MODES.submodule;
  const hint = () =>
    "leave it out; in a worktree with the branch checked out, 'git add' and 'git commit' take it";
  if (isSubmodule)
    return { code: "E_POLICY", why: "it is a submodule: change it with Git, in a checkout", hint };
  if (path.toLowerCase() === ".gitmodules")
    return {
      code: "E_POLICY",
      why: "it says where submodules come from: change it with Git, in a checkout",
      hint,
    };
  return null;
}

function contentObjection(path: string, { mode, content }: Wanted, rules: PathRules): Why {
  if (!FILE_MODES.includes(mode))
    return { code: "E_POLICY", why: `its mode would be ${printable(mode, 20)}, which is no file's` };
  if (content !== null && content.length > rules.maxFileBytes)
    return {
      code: "E_LIMIT",
      why: `it has ${content.length} bytes; publish.max_file_bytes allows ${rules.maxFileBytes}`,
    };
  return mode === MODES.symlink && content !== null ? linkObjection(path, content) : null;
}

const DOT_FILES = new Set([".gitmodules", ".gitattributes", ".gitignore", ".mailmap"]);

/** A link is followed by whoever checks the tree out. */
function linkObjection(path: string, content: Uint8Array): Why {
  const target = new TextDecoder().decode(content);
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  if (DOT_FILES.has(name)) return { code: "E_POLICY", why: `${name} may not be a symbolic link` };
  if (target === "" || target.includes("\0") || content.length > 4_096)
    return { code: "E_POLICY", why: "it is a symbolic link to nowhere" };
  const parts = path.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") {
      if (parts.length === 0) return { code: "E_PATH_ESCAPE", why: "it is a symbolic link out of the tree" };
      parts.pop();
    } else if (part !== "" && part !== ".") parts.push(part);
  }
  if (target.startsWith("/")) return { code: "E_PATH_ESCAPE", why: "it is a symbolic link out of the tree" };
  return parts.some(isGitDirectoryName)
    ? { code: "E_PATH_ESCAPE", why: "it is a symbolic link into Git's own directory" }
    : null;
}

/** The first kind of objection, with every path that it is raised against. */
export function refusePaths(objections: readonly PathObjection[]): void {
  const [first] = objections;
  if (first === undefined) return;
  const same = objections.filter(({ code }) => code === first.code);
  const more = others(same.slice(1).map(({ path }) => path));
  const where = first.path === "" ? "" : `${printable(first.path, 200)}: `;
  throw new CotenantError(first.code, `${where}${first.why}${more}`, {
    hint: first.hint?.(same.map(({ path }) => path)),
    data: {
      paths: same.slice(0, MOST_NAMED).map(({ path, why }) => ({ path: printable(path, 500), why })),
      count: same.length,
    },
  });
}
