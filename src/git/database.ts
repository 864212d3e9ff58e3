import { CotenantError, during } from "../errors/cotenant-error";
import type { LastingGit } from "../platform/git";
import type { GitDigest, Platform } from "../platform/platform";
import { type Commit, encodeCommit, type ParsedCommit, parseCommit } from "./commit";
import { type GitObject, LooseObjects } from "./loose-objects";
import type { ObjectFormat, ObjectId, ObjectType } from "./object-name";
import { ObjectReader } from "./object-reader";
import { encodeTree, parseTree, type TreeEntry } from "./tree";

/** For a Git that is to look for objects in this directory, too: a list with colons, whose items may stand in quotes. */
export function alternateObjects(directory: string) {
  return {
    GIT_ALTERNATE_OBJECT_DIRECTORIES: `"${directory.replace(/[\\"]/g, (char) => `\\${char}`)}"`,
  };
}

/** Which repository's objects. */
export interface ObjectPlace {
  readonly worktreeRoot: string;
  readonly commonDir: string;
  readonly config: { readonly objectFormat: ObjectFormat };
  /** Where new objects go, and what a Git needs to know to find them there. Unset: into the repository. */
  readonly apart?: { readonly root: string; readonly env: Readonly<Record<string, string>> };
}

/** Trees near the root come again with every commit. */
const KEPT_TREES = 2_048;
/** The branch's tip comes again with every look at it. */
const KEPT_COMMITS = 64;

/**
 * A repository's objects, read and written in this process. What was written is on the disk after `flush`, and not
 * before: call it before anything refers to it.
 */
export class ObjectDatabase {
  readonly format: ObjectFormat;
  readonly #digest: GitDigest;
  readonly #loose: LooseObjects;
  readonly #reader: ObjectReader;
  readonly #root: string;
  readonly #trees = new Map<ObjectId, readonly TreeEntry[]>();
  readonly #commits = new Map<ObjectId, ParsedCommit>();

  constructor(platform: Platform, git: LastingGit, place: ObjectPlace) {
    this.format = place.config.objectFormat;
    this.#digest = platform.digest;
    this.#root = place.apart?.root ?? `${place.commonDir}/objects`;
    this.#loose = new LooseObjects(platform, this.#root, this.format);
    this.#reader = new ObjectReader(git, place.worktreeRoot, place.apart?.env);
  }

  /** Null where there is none. */
  async read(oid: ObjectId): Promise<GitObject | null> {
    return (await this.#loose.read(oid)) ?? this.#reader.read(oid);
  }

  async readBlob(oid: ObjectId): Promise<Uint8Array> {
    return this.#demand(oid, "blob");
  }

  async readTree(oid: ObjectId): Promise<readonly TreeEntry[]> {
    const kept = this.#trees.get(oid);
    if (kept !== undefined) return kept;
    const entries = parseTree(this.format, await this.#demand(oid, "tree"));
    if (entries === null) throw damaged(oid, "tree");
    keep(this.#trees, KEPT_TREES, oid, entries);
    return entries;
  }

  async readCommit(oid: ObjectId): Promise<ParsedCommit> {
    const kept = this.#commits.get(oid);
    if (kept !== undefined) return kept;
    const commit = parseCommit(await this.#demand(oid, "commit"));
    if (commit === null) throw damaged(oid, "commit");
    keep(this.#commits, KEPT_COMMITS, oid, commit);
    return commit;
  }

  /** What an object is and how large, without reading it; null where there is none. */
  look(oid: ObjectId): Promise<{ type: ObjectType; size: number } | null> {
    return this.#reader.look(oid);
  }

  /** What an object is, and whether its content is what its name says; read whole, held never. Null: there is none. */
  async check(oid: ObjectId): Promise<{ type: ObjectType; isSound: boolean } | null> {
    const weighed = await this.#reader.weigh(oid, () => this.#digest.begin(this.format));
    return weighed === null ? null : { type: weighed.type, isSound: weighed.name === oid };
  }

  /** The name that it would have. */
  nameOf(type: ObjectType, content: Uint8Array): ObjectId {
    return this.#loose.nameOf(type, content);
  }

  writeBlob(content: Uint8Array): Promise<ObjectId> {
    return this.#write("blob", content);
  }

  async writeTree(entries: Iterable<TreeEntry>): Promise<ObjectId> {
    const all = [...entries];
    const oid = await this.#write("tree", encodeTree(all));
    keep(this.#trees, KEPT_TREES, oid, all);
    return oid;
  }

  async writeCommit(commit: Commit): Promise<ObjectId> {
    const oid = await this.#write("commit", encodeCommit(commit));
    keep(this.#commits, KEPT_COMMITS, oid, { tree: commit.tree, parents: commit.parents });
    return oid;
  }

  /** Content that its caller has put in the right form. */
  writeObject(type: ObjectType, content: Uint8Array): Promise<ObjectId> {
    return this.#write(type, content);
  }

  /** An object that Git was asked to write: on the disk after the next `flush`, if Git has synced its content. */
  adopt(oid: ObjectId): void {
    this.#loose.adopt(oid);
  }

  /** Everything written so far is on the disk when this returns. */
  flush(): Promise<void> {
    return this.#syncing(() => this.#loose.flush());
  }

  /** Every Git finds what was written so far when this returns; a power cut may still take it away again. */
  reveal(): Promise<void> {
    return this.#syncing(() => this.#loose.reveal());
  }

  /** Ends the Git that reads for it, if there is one, and forgets what was not flushed. It may be used again. */
  async close(): Promise<void> {
    await this.#loose.discard();
    await this.#reader.close();
  }

  async #demand(oid: ObjectId, type: ObjectType): Promise<Uint8Array> {
    const found = await this.read(oid);
    if (found?.type === type) return found.content;
    throw found === null ? missing(oid, type) : damaged(oid, type);
  }

  async #syncing(act: () => Promise<void>): Promise<void> {
    await during("syncing Git's objects", this.#root, act);
  }

  async #write(type: ObjectType, content: Uint8Array): Promise<ObjectId> {
    return during("writing one of Git's objects", this.#root, () => this.#loose.write(type, content));
  }
}

/** An object is what its name says for ever; only of how many it is worth while to know that. */
function keep<T>(kept: Map<ObjectId, T>, most: number, oid: ObjectId, value: T): void {
  if (kept.size >= most) kept.delete(kept.keys().next().value!);
  kept.set(oid, value);
}

function missing(oid: ObjectId, type: ObjectType): CotenantError {
  return new CotenantError("E_GIT", `${type} ${oid} is not in this repository`, {
    hint: "in a shallow or partial clone fetch it first: git fetch; else 'git fsck' says what is missing",
    data: { object: oid, type },
  });
}

function damaged(oid: ObjectId, type: ObjectType): CotenantError {
  return new CotenantError("E_GIT", `object ${oid} is no ${type} that can be read`, {
    hint: "'git fsck' says what is damaged",
    data: { object: oid, type },
  });
}
