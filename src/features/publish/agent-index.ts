import { CotenantError } from "../../errors/cotenant-error";
import { type ByteText, bytesOf, byteTextOf, fromByteText } from "../../git/byte-text";
import { alternateObjects, ObjectDatabase, type ObjectPlace } from "../../git/database";
import type { Leaf } from "../../git/tree-editor";
import { printable } from "../../kernel/ids";
import type { GitResult, LastingGit } from "../../platform/git";
import { gitWords } from "../../platform/git-answers";
import { freshSuffix } from "../../platform/hex";
import type { Files, Platform } from "../../platform/platform";

export interface IndexPlace {
  readonly platform: Platform;
  readonly git: LastingGit;
  readonly worktreeRoot: string;
  readonly commonDir: string;
  /** Where indexes of agents live: `agent-index/` of the control plane. */
  readonly directory: string;
  readonly directoryMode: number;
  /** Begins the index's file name, so that people see whose it is. */
  readonly owner: string;
}

/** What a repository's or a person's settings must not change in an index of ours. */
const PLAIN = [
  "core.splitIndex=false",
  "core.untrackedCache=false",
  "index.sparse=false",
  "core.safecrlf=false",
];
const GIT_MS = 120_000;

/**
 * A Git index of a caller's own, with only the entries that matter, and a place of its own for new objects: what Git
 * makes of patches and of files in a working tree is looked at before any of it gets into the repository. Nobody else's
 * index is touched, and it is gone after `close`.
 */
export class AgentIndex {
  readonly #env: Record<string, string>;

  private constructor(
    private readonly place: IndexPlace,
    private readonly path: string,
  ) {
    this.#env = {
      GIT_INDEX_FILE: path,
      GIT_LITERAL_PATHSPECS: "1",
      GIT_NO_REPLACE_OBJECTS: "1",
      ...quarantine(place.commonDir, `${path}.objects`),
    };
  }

  static async open(place: IndexPlace): Promise<AgentIndex> {
    const { files, random } = place.platform;
    const path = `${place.directory}/${place.owner}-${freshSuffix(random)}.index`;
    await files.makeDirectory(place.directory, place.directoryMode);
    await files.makeDirectory(`${path}.objects`, place.directoryMode);
    return new AgentIndex(place, path);
  }

  /** For reading what Git has made. */
  get env(): Readonly<Record<string, string>> {
    return this.#env;
  }

  async seed(entries: ReadonlyMap<ByteText, Leaf>): Promise<void> {
    if (entries.size === 0) return;
    const lines = [...entries].map(([path, { mode, oid }]) => `${mode} ${oid}\t${path}\0`);
    await this.#run(["update-index", "-z", "--index-info"], bytesOf(lines.join("")));
    // Git passes over a name that it does not like, and its status says nothing of it.
    const taken = await this.list();
    for (const path of entries.keys())
      if (!taken.has(path))
        throw new CotenantError(
          "E_GIT",
          `Git does not take ${printable(fromByteText(path), 200)} into an index`,
        );
  }

  /** Names that a patch gives to something, as Git reads it. */
  async namesIn(patch: Uint8Array, name: string): Promise<ByteText[]> {
    const { status, stdout, stderr } = await this.#try(["apply", "--numstat", "-z", "-"], patch);
    if (status !== 0)
      throw new CotenantError("E_USAGE", `${printable(name, 200)} is no patch that Git can read`, {
        hint: "make it with 'git diff --binary' or 'git format-patch'",
        data: { git: gitWords(stderr, 500) },
      });
    return fields(stdout).map((record) => record.slice(record.lastIndexOf("\t") + 1));
  }

  async apply(patch: Uint8Array, name: string): Promise<void> {
    const args = ["apply", "--cached", "--whitespace=nowarn", "-"];
    const { status, stderr } = await this.#try(args, patch);
    if (status === 0) return;
    const lines = stderr.split("\n").filter((line) => line.startsWith("error: "));
    const paths = lines.flatMap(
      (line) => /^error: (?:patch failed: )?(.+?):(?:\d+$| )/.exec(line)?.[1] ?? [],
    );
    throw new CotenantError(
      "E_PUBLISH_CONFLICT",
      `${printable(name, 200)} does not apply: ${printable(lines.map((line) => line.slice(7)).join("; "), 400)}`,
      { data: { paths: [...new Set(paths)].map((path) => printable(path, 500)) } },
    );
  }

  /** Files of the working tree, as they are now: new, changed, or gone. */
  async takeFiles(paths: readonly ByteText[]): Promise<void> {
    if (paths.length > 0)
      await this.#run(["update-index", "--add", "--remove", "-z", "--stdin"], withNuls(paths));
  }

  /** Directories of the working tree with all that is in them and not ignored. */
  async takeDirectories(paths: readonly ByteText[]): Promise<void> {
    if (paths.length > 0)
      await this.#run(["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"], withNuls(paths));
  }

  /** Every entry by its path. */
  async list(): Promise<Map<ByteText, Leaf>> {
    const { stdout } = await this.#run(["ls-files", "--stage", "-z"]);
    const entries = new Map<ByteText, Leaf>();
    for (const record of fields(stdout)) {
      const found = /^(\d+) ([0-9a-f]+) \d\t([\s\S]+)$/.exec(record);
      if (found !== null) entries.set(found[3]!, { mode: found[1]!, oid: found[2]! });
    }
    return entries;
  }

  /** Writes entries out to the working tree, where nothing stands in their place; look whether they are there. */
  async writeOut(paths: readonly ByteText[]): Promise<void> {
    if (paths.length > 0) await this.#try(["checkout-index", "--quiet", "-z", "--stdin"], withNuls(paths));
  }

  async close(): Promise<void> {
    const { files } = this.place.platform;
    await removeAll(files, `${this.path}.objects`);
    await files.unlink(this.path);
    await files.unlink(`${this.path}.lock`);
  }

  async #run(args: readonly string[], input: Uint8Array | string = ""): Promise<GitResult> {
    const result = await this.#try(args, input);
    if (result.status === 0) return result;
    const said = gitWords(result.stderr, 400);
    const isBeyondLink = /beyond a symbolic link/.test(result.stderr);
    throw isBeyondLink
      ? new CotenantError("E_PATH_ESCAPE", `a path leads through a symbolic link: ${said}`)
      : new CotenantError("E_GIT", `git ${args[0]} failed: ${said}`, { data: { git: said } });
  }

  async #try(args: readonly string[], input: Uint8Array | string): Promise<GitResult> {
    return this.place.git.run([...PLAIN.flatMap((setting) => ["-c", setting]), ...args], {
      cwd: this.place.worktreeRoot,
      env: this.#env,
      input,
      timeoutMs: GIT_MS,
    });
  }
}

function withNuls(paths: readonly ByteText[]): Uint8Array {
  return bytesOf(paths.map((path) => `${path}\0`).join(""));
}

/** Objects that are gone after `act`, with the environment in which Git finds them. */
export async function withObjectsApart<T>(
  {
    platform,
    git,
    directory,
    directoryMode,
  }: Pick<IndexPlace, "platform" | "git" | "directory" | "directoryMode">,
  place: ObjectPlace,
  purpose: string,
  act: (objects: ObjectDatabase, env: Readonly<Record<string, string>>) => Promise<T>,
  envAt: (root: string) => Readonly<Record<string, string>> = (root) => quarantine(place.commonDir, root),
): Promise<T> {
  const root = `${directory}/${purpose}-${freshSuffix(platform.random)}.objects`;
  await platform.files.makeDirectory(directory, directoryMode);
  await platform.files.makeDirectory(root, directoryMode);
  const env = envAt(root);
  const objects = new ObjectDatabase(platform, git, { ...place, apart: { root, env } });
  try {
    return await act(objects, env);
  } finally {
    await objects.close();
    await removeAll(platform.files, root);
  }
}

/** New objects go to `own`, and all others are found where they are. */
export function quarantine(commonDir: string, own: string) {
  return { GIT_OBJECT_DIRECTORY: own, ...alternateObjects(`${commonDir}/objects`) };
}

/** What publishes that were killed have left; a younger one may be in use. */
export async function clearIndexes(
  platform: Platform,
  directory: string,
  olderThanMs: number,
): Promise<void> {
  const { files, clock } = platform;
  for (const name of (await files.readDirectory(directory)) ?? []) {
    const path = `${directory}/${name}`;
    const stat = await files.lstat(path);
    if (stat === null || clock.wallMs() - stat.mtimeMs < olderThanMs) continue;
    if (stat.kind === "directory") await removeAll(files, path);
    else await files.unlink(path);
  }
}

/** A directory with everything in it. Whatever cannot be removed stays for `gc`. */
async function removeAll(files: Files, path: string): Promise<void> {
  for (const name of (await files.readDirectory(path)) ?? []) {
    const below = `${path}/${name}`;
    if ((await files.lstat(below))?.kind === "directory") await removeAll(files, below);
    else await files.unlink(below);
  }
  await files.removeDirectory(path);
}

function fields(stdout: Uint8Array): string[] {
  return byteTextOf(stdout)
    .split("\0")
    .filter((field) => field !== "");
}
