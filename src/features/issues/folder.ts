import { CotenantError, during } from "../../errors/cotenant-error";
import { type Ulid, ulidIn } from "../../kernel/ids";
import type { Platform } from "../../platform/platform";
import { writeNew } from "../../platform/write-new";
import {
  type Addition,
  type AppendOnly,
  DEPENDENCIES,
  EVENTS,
  LABELS,
  RESULTS,
  type WrittenStamp,
} from "./stamps";

/** An issue's files as they stand, before anybody has tried to understand them. */
export interface RawIssue {
  readonly text: string;
  readonly labels: string;
  readonly dependencies: string;
  /** Its gate results, where they were read with it: of one that is newest in HEAD, for a write. */
  readonly results?: string;
  /** Its comments, likewise. */
  readonly comments?: string;
}

export const ISSUES = ".cotenant/issues";
/**
 * Each write has a name of its own for it: a write is settled after the mutex, when the next one may have staged its
 * own already, and must not take that away.
 */
const stagedName = (digest: string) => `issue.json.${digest.slice(0, 16)}.new`;
const STAGED = /^issue\.json(?:\.[0-9a-f]{16})?\.new$/;
const PLACING = "issue.json.now.new";
const utf8 = new TextEncoder();

/** The data plane of one worktree: `<root>/.cotenant/`, and the issues in it. */
export class IssueFolder {
  readonly root: string;
  readonly #platform: Platform;

  constructor(platform: Platform, root: string) {
    this.#platform = platform;
    this.root = root;
  }

  async ids(): Promise<Ulid[]> {
    const path = `${this.root}/${ISSUES}`;
    return during("reading the issues", path, async () =>
      toIds((await this.#platform.files.readDirectory(path)) ?? []),
    );
  }

  /** Null where the issue has no file. `stamp`: the last write, which may still wait here to be finished. */
  async read(id: Ulid, stamp: WrittenStamp | null = null): Promise<RawIssue | null> {
    const text = await this.#text(`${this.folder(id)}/issue.json`);
    const isThere = stamp !== null && text !== null && this.#digest(text) === stamp.digest;
    const staged = stamp !== null && !isThere ? await this.#staged(id, stamp.digest) : null;
    if (text === null && staged === null) return null;
    // A power cut may have kept the new name and lost the lines that came before it.
    const additions = isThere || staged !== null ? stamp!.additions : [];
    return {
      text: staged ?? text!,
      labels: await this.#grown(id, LABELS, additions),
      dependencies: await this.#grown(id, DEPENDENCIES, additions),
    };
  }

  async lines(id: Ulid, file: string): Promise<string> {
    return (await this.#text(this.#place(id, file).path)) ?? "";
  }

  /** Where a file that only grows is, and the directories on the way that may have to be made. */
  #place(id: Ulid, file: string): { path: string; directories: readonly string[] } {
    const data = `${this.root}/.cotenant`;
    if (file === EVENTS) return { path: `${data}/${EVENTS}`, directories: [`${data}/events`] };
    if (file === RESULTS)
      return {
        path: `${data}/${RESULTS}/${id}.jsonl`,
        directories: [`${data}/gates`, `${data}/${RESULTS}`],
      };
    return { path: `${this.folder(id)}/${file}`, directories: [this.folder(id)] };
  }

  folder(id: Ulid): string {
    return `${this.root}/${ISSUES}/${id}`;
  }

  /** The new `issue.json`, beside the old one and on the disk: from here on the write can be finished by anybody. */
  async stage(id: Ulid, text: string): Promise<void> {
    const { files } = this.#platform;
    const path = this.stagedPath(id, this.#digest(text));
    await this.#ensureDirectories(id);
    await files.unlink(path);
    await writeNew(files, path, text, 0o644, (fd) => files.sync(fd));
    // The name too: what is logged as written must be found after a power cut.
    await files.syncDirectory(this.folder(id));
  }

  stagedPath(id: Ulid, digest: string): string {
    return `${this.folder(id)}/${stagedName(digest)}`;
  }

  /** A copy of an issue that this worktree lacks: nothing is logged for it. */
  async bringIn(id: Ulid, text: string): Promise<void> {
    await this.stage(id, text);
    await this.carryOut(id, this.#digest(text), []);
    await this.#platform.files.unlink(this.stagedPath(id, this.#digest(text)));
  }

  /** What a logged write comes to, of the text with this digest. Doing it twice is as good as once. */
  async carryOut(id: Ulid, digest: string, additions: readonly Addition[]): Promise<void> {
    const { files } = this.#platform;
    const folder = this.folder(id);
    await this.carry(id, additions);
    // The staged name stays until the new one is on the disk: a power cut may keep either half of a rename.
    await files.unlink(`${folder}/${PLACING}`);
    await files.link(this.stagedPath(id, digest), `${folder}/${PLACING}`);
    await files.rename(`${folder}/${PLACING}`, `${folder}/issue.json`);
  }

  async carry(id: Ulid, additions: readonly Addition[]): Promise<void> {
    for (const file of filesOf(additions))
      await this.add(
        id,
        file,
        additions.filter((addition) => addition.file === file).map(({ line }) => line),
      );
  }

  /**
   * Before the write is acknowledged: the files that grew, and the new name of the one that was replaced; `digest` null
   * where none was. No longer under the mutex.
   */
  async settle(id: Ulid, digest: string | null, additions: readonly Addition[]): Promise<void> {
    const { files } = this.#platform;
    for (const file of filesOf(additions)) await this.#sync(this.#place(id, file).path);
    await files.syncDirectory(this.folder(id));
    if (additions.some(({ file }) => file === RESULTS)) await this.#settleResults(id);
    if (digest !== null) await files.unlink(this.stagedPath(id, digest));
    if (additions.some(({ file }) => file === EVENTS))
      await files.syncDirectory(`${this.root}/.cotenant/events`);
  }

  /** The file may be new, and so may the directories on the way to it. */
  async #settleResults(id: Ulid): Promise<void> {
    for (const directory of [...this.#place(id, RESULTS).directories, `${this.root}/.cotenant`])
      await this.#platform.files.syncDirectory(directory);
  }

  /** Whether a write was logged, and not carried out or not settled; its process may be about to. */
  async isUnfinished(id: Ulid, stamp: WrittenStamp): Promise<boolean> {
    if ((await this.#staged(id, stamp.digest)) !== null) return true;
    return (await this.#isPlaced(id, stamp)) && !(await this.#hasAll(id, stamp.additions));
  }

  async #isPlaced(id: Ulid, { digest }: WrittenStamp): Promise<boolean> {
    const text = await this.#text(`${this.folder(id)}/issue.json`);
    return text !== null && this.#digest(text) === digest;
  }

  /**
   * Finishes a write whose process died before it could. False when there is nothing of the kind. Only under the mutex:
   * else it may be in the way of its own writer, or put an old text over a newer one.
   */
  async finish(id: Ulid, stamp: WrittenStamp): Promise<boolean> {
    if (!(await this.isUnfinished(id, stamp))) return false;
    if (await this.#isPlaced(id, stamp)) await this.carry(id, stamp.additions);
    else await this.carryOut(id, stamp.digest, stamp.additions);
    await this.settle(id, stamp.digest, stamp.additions);
    return true;
  }

  async #hasAll(id: Ulid, additions: readonly Addition[]): Promise<boolean> {
    for (const { file, line } of additions) {
      const text = (await this.#text(this.#place(id, file).path)) ?? "";
      if (!text.includes(line.trimEnd())) return false;
    }
    return true;
  }

  /** Removes issues that a process died writing before they were logged. One of `recentMs` may still be at it. */
  async clearUnfinished(recentMs: number): Promise<void> {
    const { files, clock } = this.#platform;
    for (const id of await this.ids()) {
      const names = (await files.readDirectory(this.folder(id))) ?? [];
      for (const name of names.filter((one) => STAGED.test(one))) {
        const path = `${this.folder(id)}/${name}`;
        const stat = await files.lstat(path);
        if (stat?.kind !== "file" || stat.mtimeMs >= clock.wallMs() - recentMs) continue;
        await files.unlink(path);
        // Empty now, if that was all there was of it.
        await files.removeDirectory(this.folder(id));
      }
    }
  }

  /** Adds the lines that are not there yet, each whole. */
  async add(id: Ulid, file: AppendOnly, lines: readonly string[]): Promise<void> {
    const { files } = this.#platform;
    const { path, directories } = this.#place(id, file);
    for (const directory of directories) await this.#ensureDirectory(directory);
    await this.#refuseLink(path);
    const fd = await files.open(path, "append", 0o644);
    try {
      const { size } = await files.fstat(fd);
      const present = await this.#tailOf(path, size, file);
      const missing = lines.filter((line) => !present.text.includes(line.trimEnd()));
      if (missing.length > 0) {
        // Half a line that somebody left there must not swallow ours.
        const text = (present.isCut ? "\n" : "") + missing.join("");
        await this.#appendWhole(fd, utf8.encode(text), size);
      }
    } finally {
      await files.close(fd);
    }
  }

  async #sync(path: string): Promise<void> {
    const { files } = this.#platform;
    const fd = await files.open(path, "update");
    try {
      await files.sync(fd);
    } finally {
      await files.close(fd);
    }
  }

  async #appendWhole(fd: number, bytes: Uint8Array, size: number): Promise<void> {
    const { files } = this.#platform;
    try {
      for (let at = 0; at < bytes.length; ) at += await files.append(fd, bytes.subarray(at));
    } catch (error) {
      await takeBack(async () => files.truncate(fd, size));
      throw error;
    }
  }

  /** The events of all issues are in one file, which may be long: what could be there twice is near its end. */
  async #tailOf(path: string, size: number, file: string): Promise<{ text: string; isCut: boolean }> {
    const { files } = this.#platform;
    if (size === 0) return { text: "", isCut: false };
    const from = file === EVENTS ? Math.max(0, size - (64 << 10)) : 0;
    const fd = await files.open(path, "read");
    try {
      const text = new TextDecoder().decode(await files.read(fd, from, size - from));
      return { text, isCut: !text.endsWith("\n") };
    } finally {
      await files.close(fd);
    }
  }

  async #grown(id: Ulid, file: string, additions: readonly Addition[]): Promise<string> {
    const text = await this.lines(id, file);
    const added = additions
      .filter((addition) => addition.file === file && !text.includes(addition.line.trimEnd()))
      .map(({ line }) => line);
    return added.length === 0 ? text : `${text}\n${added.join("")}`;
  }

  async #staged(id: Ulid, digest: string): Promise<string | null> {
    const text = await this.#text(this.stagedPath(id, digest));
    return text !== null && this.#digest(text) === digest ? text : null;
  }

  #digest(text: string): string {
    return this.#platform.digest.sha256(text);
  }

  async #text(path: string): Promise<string | null> {
    return during("reading an issue", path, async () => {
      const { files } = this.#platform;
      const kind = (await files.stat(path))?.kind;
      // A directory in its place is nothing to read, and a pipe would keep us for ever.
      if (kind !== undefined && kind !== "file") return "";
      const bytes = kind === undefined ? null : await files.readFile(path);
      return bytes === null ? null : new TextDecoder().decode(bytes);
    });
  }

  async #ensureDirectories(id: Ulid): Promise<void> {
    const data = `${this.root}/.cotenant`;
    for (const path of [data, `${data}/issues`, this.folder(id)]) await this.#ensureDirectory(path);
  }

  /** A committed symbolic link must not decide where we write. */
  async #ensureDirectory(path: string): Promise<void> {
    const { files } = this.#platform;
    // Its name must be on the disk before anything in it is promised.
    if (await files.makeDirectory(path, 0o755))
      await files.syncDirectory(path.slice(0, path.lastIndexOf("/")) || "/");
    if ((await this.#platform.files.lstat(path))?.kind === "directory") return;
    throw new CotenantError("E_PATH_ESCAPE", `${path} is not a directory of this worktree`, {
      hint: "issues are written to real directories only; look at what stands there",
      data: { path },
    });
  }

  async #refuseLink(path: string): Promise<void> {
    const stat = await this.#platform.files.lstat(path);
    if (stat === null || stat.kind === "file") return;
    throw new CotenantError("E_PATH_ESCAPE", `${path} is not a plain file`, {
      hint: "issues are written to plain files only; look at what stands there",
      data: { path },
    });
  }
}

/** What went wrong first is what the caller hears of. */
async function takeBack(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch {
    // The next one that adds a line begins a new one.
  }
}

function filesOf(additions: readonly Addition[]): AppendOnly[] {
  return [...new Set(additions.map(({ file }) => file))];
}

export function toIds(names: readonly string[]): Ulid[] {
  const ids: Ulid[] = [];
  for (const name of names) {
    const id = ulidIn(name);
    // Only the canonical spelling is an issue's directory.
    if (id !== null && id === name) ids.push(id);
  }
  return ids;
}
