import { type FactName, factId, factKind } from "../kernel/facts";
import type { LeaseId, WorktreeId } from "../kernel/ids";
import { kindOf, type LeaseKey, nameOf, pathOf, type RepoPath, utf8Length } from "../kernel/keys";
import type { Lease } from "../kernel/lease";
import type { Digest } from "../platform/platform";
import type { CensusName } from "./census";
import { escapeName, escapeSegment, type Layout } from "./layout";

const PLAIN_META = "meta.json";
/** Every name of ours in the tree; the escaping keeps repository names out of it. */
const OURS = /^meta[.@]/;
const WORKTREE_META = /^meta@(wt-[0-9a-f]{8})\.json$/;
const UNFINISHED = ".new";

/**
 * Longer than this, a path stands by its hash, beside the tree. Counted without the control plane's own
 * place, which may change when a repository is moved; what is left must do for that (macOS allows 1024).
 */
const LONGEST_BYTES = 700;
const DEEP = "%deep";
const CENSUS = "census-";

/** Where in the index each thing has its file. */
export class TreeNames {
  constructor(
    private readonly layout: Layout,
    private readonly digest: Digest,
  ) {}

  meta(key: LeaseKey, worktreeId: WorktreeId | null): string {
    return `${this.directory(key)}/${worktreeId === null ? PLAIN_META : `meta@${dashed(worktreeId)}.json`}`;
  }

  metaOf(lease: Lease): string {
    return this.meta(lease.key, lease.reach === "worktree" ? lease.worktreeId : null);
  }

  directory(key: LeaseKey): string {
    const kind = kindOf(key);
    if (kind === "file" || kind === "dir") return this.path(kind, pathOf(key));
    // Case tells resources and refs apart; the other kinds have one spelling only.
    const escaped = kind === "ref" || kind === "resource" ? escapeName : escapeSegment;
    const segments = kind === "ref" ? nameOf(key).split("/") : [nameOf(key)];
    return this.#below(
      kind,
      segments.map((segment) => escaped(segment, this.#hash)),
    );
  }

  /** Where leases on a repository path, and on what is inside it, are kept. */
  path(tree: "file" | "dir", path: RepoPath): string {
    if (path === ".") return this.tree(tree);
    return this.#below(
      tree,
      path.split("/").map((segment) => escapeSegment(segment, this.#hash)),
    );
  }

  tree(kind: string): string {
    return `${this.layout.index}/${kind}`;
  }

  /** Where the leases on paths that are too long are kept, wherever in the repository they are. */
  deep(kind: string): string {
    return `${this.tree(kind)}/${DEEP}`;
  }

  ending(leaseId: LeaseId): string {
    return `${this.tree("ended")}/${leaseId}.json`;
  }

  facts(kind: string): string {
    return `${this.tree("facts")}/${kind}`;
  }

  fact(name: FactName): string {
    return `${this.facts(factKind(name))}/${escapeName(factId(name), this.#hash)}.json`;
  }

  /** Says that this lease has no expiry. */
  marker(leaseId: LeaseId): string {
    return `${this.tree("indefinite")}/${leaseId}`;
  }

  census({ build, capacity }: CensusName): string {
    return `${this.layout.index}/${CENSUS}${build}-${capacity}`;
  }

  isCensus(name: string): boolean {
    return name.startsWith(CENSUS);
  }

  #below(kind: string, segments: readonly string[]): string {
    const name = segments.join("/");
    const isLong = name.length * 3 > LONGEST_BYTES && utf8Length(name) > LONGEST_BYTES;
    return isLong ? `${this.deep(kind)}/${this.#hash(name)}` : `${this.tree(kind)}/${name}`;
  }

  readonly #hash = (text: string): string => this.digest.sha256(text).slice(0, 40);
}

export function isMeta(name: string): boolean {
  return name === PLAIN_META || WORKTREE_META.test(name);
}

/** A finished file or a leftover of one; anything else in the tree is a directory. */
export function isOurs(name: string): boolean {
  return OURS.test(name);
}

export function isUnfinished(name: string): boolean {
  return name.endsWith(UNFINISHED);
}

export function unfinished(path: string): string {
  return path + UNFINISHED;
}

/** `wt:1a2b3c4d` as part of a file name. */
function dashed(worktreeId: WorktreeId): string {
  return worktreeId.replace(":", "-");
}
