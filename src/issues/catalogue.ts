import { CotenantError, fileFailure } from "../errors/cotenant-error";
import { parseUlid, type Ulid } from "../kernel/ids";
import { isRefusal } from "../kernel/refusal";
import type { Git } from "../platform/git";
import type { Platform } from "../platform/platform";
import { decodeIssue, encodeIssue, type Issue, type IssueReading } from "./model";

/** Where issues may stand. Outside Git there is only the plain directory. */
export interface IssuePlaces {
  /** The directory that holds `.cotenant/`. */
  readonly here: string;
  readonly mainWorktree: string | null;
  /** Null outside Git. */
  readonly git: Git | null;
}

export type Layer = "worktree" | "main" | "HEAD";

export interface FoundIssue {
  readonly id: Ulid;
  readonly layer: Layer;
  readonly reading: IssueReading;
}

const FOLDER = ".cotenant/issues";

/** Issues in this worktree, the main worktree and the committed HEAD. */
export class IssueCatalogue {
  readonly #platform: Platform;
  readonly #places: IssuePlaces;

  constructor(platform: Platform, places: IssuePlaces) {
    this.#platform = platform;
    this.#places = places;
  }

  /** All ids in any layer. */
  async ids(): Promise<Ulid[]> {
    const { here, mainWorktree } = this.#places;
    const found = new Set<Ulid>(await this.#idsBelow(here));
    if (mainWorktree !== null && mainWorktree !== here)
      for (const id of await this.#idsBelow(mainWorktree)) found.add(id);
    for (const id of await this.#idsInHead()) found.add(id);
    return [...found].sort();
  }

  /** The newest copy: the highest stamp wins; of equals, the nearest. */
  async read(id: Ulid): Promise<FoundIssue | null> {
    const copies: FoundIssue[] = [];
    const { here, mainWorktree } = this.#places;
    const add = (layer: Layer, text: string | null) => {
      if (text !== null) copies.push({ id, layer, reading: decodeIssue(text) });
    };
    add("worktree", await this.#readFile(`${here}/${FOLDER}/${id}/issue.json`));
    if (mainWorktree !== null && mainWorktree !== here)
      add("main", await this.#readFile(`${mainWorktree}/${FOLDER}/${id}/issue.json`));
    add("HEAD", await this.#readHead(id));
    const version = ({ reading }: FoundIssue) => ("issue" in reading ? reading.issue.stamp.version : -1);
    return copies.reduce<FoundIssue | null>(
      (best, copy) => (best === null || version(copy) > version(best) ? copy : best),
      null,
    );
  }

  /** A new issue's file, whole or not at all, and on the disk when this returns. */
  async create(issue: Issue): Promise<string> {
    const { files } = this.#platform;
    const data = `${this.#places.here}/.cotenant`;
    const folder = `${data}/issues/${issue.id}`;
    const path = `${folder}/issue.json`;
    try {
      for (const directory of [data, `${data}/issues`, folder]) await this.#ensureDirectory(directory);
      const bytes = new TextEncoder().encode(encodeIssue(issue));
      const fd = await files.open(`${path}.new`, "create", 0o644);
      try {
        let at = 0;
        while (at < bytes.length) at += await files.writeAt(fd, bytes.subarray(at), at);
        await files.sync(fd);
      } finally {
        await files.close(fd);
      }
      await files.rename(`${path}.new`, path);
      for (const directory of [folder, `${data}/issues`, data]) await files.syncDirectory(directory);
    } catch (error) {
      await this.#discard(folder, `${path}.new`);
      throw fileFailure(error, "writing the issue", path);
    }
    return path;
  }

  /** Removes issues that a process died writing before they had a name. One of `recentMs` may still be at it. */
  async clearUnfinished(recentMs: number): Promise<void> {
    const { files, clock } = this.#platform;
    const { here } = this.#places;
    for (const id of await this.#idsBelow(here)) {
      const folder = `${here}/${FOLDER}/${id}`;
      const names = (await files.readDirectory(folder)) ?? [];
      if (names.length !== 1 || names[0] !== "issue.json.new") continue;
      const stat = await files.lstat(`${folder}/issue.json.new`);
      if (stat?.kind === "file" && stat.mtimeMs < clock.wallMs() - recentMs)
        await this.#discard(folder, `${folder}/issue.json.new`);
    }
  }

  /** A committed symbolic link must not decide where we write. */
  async #ensureDirectory(path: string): Promise<void> {
    await this.#platform.files.makeDirectory(path, 0o755);
    if ((await this.#platform.files.lstat(path))?.kind === "directory") return;
    throw new CotenantError("E_PATH_ESCAPE", `${path} is not a directory of this worktree`, {
      hint: "issues are written to real directories only; look at what stands there",
      data: { path },
    });
  }

  async #discard(folder: string, leftover: string): Promise<void> {
    try {
      await this.#platform.files.unlink(leftover);
      await this.#platform.files.removeDirectory(folder);
    } catch {
      // The directory may not even be writable; the failure itself is what the caller hears of.
    }
  }

  async #idsBelow(root: string): Promise<Ulid[]> {
    try {
      return toIds((await this.#platform.files.readDirectory(`${root}/${FOLDER}`)) ?? []);
    } catch (error) {
      throw fileFailure(error, "reading the issues", `${root}/${FOLDER}`);
    }
  }

  async #idsInHead(): Promise<Ulid[]> {
    const { git, here } = this.#places;
    if (git === null) return [];
    // An unborn HEAD, or one without issues, is not an error.
    const { status, stdout } = await git.run(
      ["ls-tree", "-z", "--name-only", "--end-of-options", `HEAD:${FOLDER}/`],
      { cwd: here },
    );
    return status === 0 ? toIds(new TextDecoder().decode(stdout).split("\0")) : [];
  }

  async #readHead(id: Ulid): Promise<string | null> {
    const { git, here } = this.#places;
    if (git === null) return null;
    const { status, stdout } = await git.run(["cat-file", "blob", `HEAD:${FOLDER}/${id}/issue.json`], {
      cwd: here,
    });
    return status === 0 ? new TextDecoder().decode(stdout) : null;
  }

  async #readFile(path: string): Promise<string | null> {
    try {
      const bytes = await this.#platform.files.readFile(path);
      return bytes === null ? null : new TextDecoder().decode(bytes);
    } catch (error) {
      throw fileFailure(error, "reading an issue", path);
    }
  }
}

function toIds(names: readonly string[]): Ulid[] {
  const ids: Ulid[] = [];
  for (const name of names) {
    const id = parseUlid(name);
    // Only the canonical spelling is an issue's directory.
    if (!isRefusal(id) && id === name) ids.push(id);
  }
  return ids;
}

/** The issue, or the error a person can act on. */
export function wholeIssue(found: FoundIssue): Issue {
  if ("issue" in found.reading) return found.reading.issue;
  const data = { id: found.id, layer: found.layer, why: found.reading.broken };
  if (found.reading.isNewer === true) {
    throw new CotenantError("E_SCHEMA_NEWER", `issue ${found.id} cannot be read: ${found.reading.broken}`, {
      data,
    });
  }
  throw new CotenantError("E_NOT_FOUND", `issue ${found.id} cannot be read: ${found.reading.broken}`, {
    hint: `mend ${FOLDER}/${found.id}/issue.json`,
    data,
  });
}
