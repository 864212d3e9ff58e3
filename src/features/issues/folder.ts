import { CotenantError, during } from "../../errors/cotenant-error";
import { type Ulid, ulidIn } from "../../kernel/ids";
import type { Descriptor, Platform } from "../../platform/platform";
import { openNew } from "../../platform/write-new";
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

/** What one logged write comes to. `digest`: of its staged text; null where only files grow. */
export interface LoggedWrite {
  readonly id: Ulid;
  readonly digest: string | null;
  readonly additions: readonly Addition[];
}

/** A file that only grows, and the directories on the way to it that may have to be made. */
interface Place {
  readonly path: string;
  readonly directories: readonly string[];
}

export const ISSUES = ".cotenant/issues";
/** Files that are open at once, and as many directories: a process has few descriptors. */
const SYNCED_AT_ONCE = 100;
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

  #place(id: Ulid, file: string): Place {
    const data = `${this.root}/.cotenant`;
    if (file === EVENTS) return { path: `${data}/${EVENTS}`, directories: [`${data}/events`] };
    if (file === RESULTS)
      return {
        path: `${data}/${RESULTS}/${id}.jsonl`,
        directories: [data, `${data}/gates`, `${data}/${RESULTS}`],
      };
    return { path: `${this.folder(id)}/${file}`, directories: [this.folder(id)] };
  }

  folder(id: Ulid): string {
    return `${this.root}/${ISSUES}/${id}`;
  }

  stage(id: Ulid, text: string): Promise<void> {
    return this.stageAll([{ id, text }]);
  }

  /** Each new `issue.json`, beside the old one and on the disk: from here on the writes can be finished by anybody. */
  async stageAll(texts: readonly { readonly id: Ulid; readonly text: string }[]): Promise<void> {
    const { files } = this.#platform;
    const data = `${this.root}/.cotenant`;
    const made = new Set<string>();
    for (const path of [data, `${data}/issues`]) await this.#ensureDirectory(path, made);
    for (let at = 0; at < texts.length; at += SYNCED_AT_ONCE) {
      // The names too: what is logged as written must be found after a power cut.
      const names = new Set(made);
      const opened: Descriptor[] = [];
      try {
        for (const { id, text } of texts.slice(at, at + SYNCED_AT_ONCE)) {
          const path = this.stagedPath(id, this.#digest(text));
          const { isNew } = await this.#ensureDirectory(this.folder(id), names);
          if (!isNew) await files.unlink(path);
          opened.push(await openNew(files, path, text, 0o644));
          names.add(this.folder(id));
        }
        await files.syncAll(opened, [...names]);
      } finally {
        for (const fd of opened) await files.close(fd);
      }
    }
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

  carryOut(id: Ulid, digest: string, additions: readonly Addition[]): Promise<void> {
    return this.carryOutAll([{ id, digest, additions }]);
  }

  /** Doing it twice is as good as once. */
  async carryOutAll(writes: readonly LoggedWrite[]): Promise<void> {
    const { files } = this.#platform;
    const grown = new Map<string, { place: Place; file: AppendOnly; lines: string[] }>();
    for (const { id, additions } of writes)
      for (const { file, line } of additions) {
        const place = this.#place(id, file);
        const known = grown.get(place.path);
        if (known === undefined) grown.set(place.path, { place, file, lines: [line] });
        else known.lines.push(line);
      }
    for (const { place, file, lines } of grown.values()) await this.#grow(place, file, lines);
    for (const { id, digest } of writes) {
      if (digest === null) continue;
      const placing = `${this.folder(id)}/${PLACING}`;
      // The staged name stays until the new one is on the disk: a power cut may keep either half of a rename.
      await files.unlink(placing);
      await files.link(this.stagedPath(id, digest), placing);
      await files.rename(placing, `${this.folder(id)}/issue.json`);
    }
  }

  settle(id: Ulid, digest: string | null, additions: readonly Addition[]): Promise<void> {
    return this.settleAll([{ id, digest, additions }]);
  }

  /** Before the writes are acknowledged: the files that grew, and the names of those that are new. No longer under the mutex. */
  async settleAll(writes: readonly LoggedWrite[]): Promise<void> {
    const { files } = this.#platform;
    const grown = new Set<string>();
    const names = new Set<string>();
    for (const { id, additions } of writes) {
      names.add(this.folder(id));
      for (const { file } of additions) {
        const { path, directories } = this.#place(id, file);
        grown.add(path);
        for (const directory of directories) names.add(directory);
      }
    }
    await this.#syncAll([...grown], [...names]);
    for (const { id, digest } of writes) if (digest !== null) await files.unlink(this.stagedPath(id, digest));
  }

  async #syncAll(paths: readonly string[], directories: readonly string[]): Promise<void> {
    const { files } = this.#platform;
    for (let at = 0; at < Math.max(paths.length, directories.length); at += SYNCED_AT_ONCE) {
      const opened: Descriptor[] = [];
      try {
        for (const path of paths.slice(at, at + SYNCED_AT_ONCE))
          opened.push(await files.open(path, "update"));
        await files.syncAll(opened, directories.slice(at, at + SYNCED_AT_ONCE));
      } finally {
        for (const fd of opened) await files.close(fd);
      }
    }
  }

  /** Whether a write was logged, and not carried out or not settled; its process may be about to. */
  async isUnfinished(id: Ulid, stamp: WrittenStamp): Promise<boolean> {
    if ((await this.#staged(id, stamp.digest)) !== null) return true;
    return (await this.#isPlaced(id, stamp)) && (await this.#missing(id, stamp.additions)).length > 0;
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
    const { digest, additions } = stamp;
    const isPlaced = await this.#isPlaced(id, stamp);
    const missing = await this.#missing(id, additions);
    await this.carryOutAll([{ id, digest: isPlaced ? null : digest, additions: missing }]);
    await this.settle(id, digest, additions);
    return true;
  }

  async #missing(id: Ulid, additions: readonly Addition[]): Promise<Addition[]> {
    const texts = new Map<string, string>();
    const missing: Addition[] = [];
    for (const addition of additions) {
      const { file, line } = addition;
      const text = texts.get(file) ?? (await this.lines(id, file));
      texts.set(file, text);
      if (!text.includes(line.trimEnd())) missing.push(addition);
    }
    return missing;
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
  add(id: Ulid, file: AppendOnly, lines: readonly string[]): Promise<void> {
    return this.#grow(this.#place(id, file), file, lines);
  }

  async #grow({ path, directories }: Place, file: AppendOnly, lines: readonly string[]): Promise<void> {
    const { files } = this.#platform;
    const made = new Set<string>();
    for (const directory of directories) await this.#ensureDirectory(directory, made);
    if (made.size > 0) await files.syncAll([], [...made]);
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

  /**
   * A committed symbolic link must not decide where we write. Where the directory is new, the one above it goes to
   * `changed`: its name must be on the disk before anything in it is promised.
   */
  async #ensureDirectory(path: string, changed: Set<string>): Promise<{ readonly isNew: boolean }> {
    const { files } = this.#platform;
    const isDirectory = async () => (await files.lstat(path))?.kind === "directory";
    if (await isDirectory()) return { isNew: false };
    if (await files.makeDirectory(path, 0o755)) {
      changed.add(path.slice(0, path.lastIndexOf("/")) || "/");
      return { isNew: true };
    }
    // Somebody else may have made it meanwhile.
    if (await isDirectory()) return { isNew: false };
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

export function toIds(names: readonly string[]): Ulid[] {
  const ids: Ulid[] = [];
  for (const name of names) {
    const id = ulidIn(name);
    // Only the canonical spelling is an issue's directory.
    if (id !== null && id === name) ids.push(id);
  }
  return ids;
}
