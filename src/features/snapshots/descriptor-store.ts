import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { decode } from "../../identity/path-text";
import { foldCrockford, parseUlid, printable, type Ulid } from "../../kernel/ids";
import { isRefusal } from "../../kernel/refusal";
import type { Platform } from "../../platform/platform";
import { replaceFile } from "../../platform/replace-file";
import { layoutOf, type Modes, modesFor } from "../../store/layout";
import { shortId } from "../issues/short-id";
import { type Descriptor, decodeDescriptor, encodeDescriptor } from "./descriptor";

const DESCRIPTOR = "descriptor.json";
/** Only a snapshot with this file is one. */
const READY = ".READY";
/** What that becomes when a snapshot is taken away, so that nobody takes it for one that has lost its mark. */
const REMOVED = ".REMOVED";
/** At the end of a directory's name: nobody's snapshot any more, and nobody's to delete. */
const ASIDE = ".aside";

/** A directory of the store, whatever state it is in. */
export interface StoredDescriptor {
  readonly id: string;
  readonly isReady: boolean;
  /** Whether everybody could see it once and nobody took it away: only its mark is lost. */
  readonly isLost: boolean;
  /** Null where it is missing or damaged. */
  readonly descriptor: Descriptor | null;
  /** Whether the descriptor is the one that was made ready. */
  readonly isSealed: boolean;
}

/** Where descriptors are kept: one directory for each snapshot, and in it the mark that makes it visible. */
export class DescriptorStore {
  readonly #platform: Platform;
  readonly #modes: Modes;
  readonly #control: string;

  constructor(platform: Platform, controlDir: string, modes: Modes) {
    this.#platform = platform;
    this.#modes = modes;
    this.#control = controlDir;
  }

  get root(): string {
    return `${layoutOf(this.#control).root}/snapshots`;
  }

  /** What everybody may see, oldest first. */
  async all(): Promise<Descriptor[]> {
    const found: Descriptor[] = [];
    for (const { isReady, descriptor } of await this.everything())
      if (isReady && descriptor !== null) found.push(descriptor);
    return found;
  }

  async everything(): Promise<StoredDescriptor[]> {
    const names = (await this.#platform.files.readDirectory(this.root)) ?? [];
    const found: StoredDescriptor[] = [];
    for (const id of names.filter((name) => /^[0-9A-Z]{26}$/.test(name)).sort())
      found.push(await this.look(id));
    return found;
  }

  async look(id: string): Promise<StoredDescriptor> {
    const { files, digest } = this.#platform;
    const ready = await files.readFile(`${this.root}/${id}/${READY}`);
    const path = `${this.root}/${id}/${DESCRIPTOR}`;
    const bytes = await files.readFile(path);
    const descriptor = bytes === null ? null : decodeDescriptor(decode(bytes), path);
    const isSealed = ready !== null && bytes !== null && decode(ready).trim() === digest.sha256(bytes);
    const isRemoved = (await files.lstat(`${this.root}/${id}/${REMOVED}`)) !== null;
    return {
      id,
      isReady: ready !== null,
      isLost: ready === null && bytes !== null && !isRemoved,
      isSealed,
      descriptor: descriptor?.snapshot_id === id ? descriptor : null,
    };
  }

  /** A name for a file that is under way, in a place that is cleared away with the snapshot. */
  async aside(id: string): Promise<string> {
    try {
      return `${await this.#directory(id)}/ref`;
    } catch (error) {
      throw fileFailure(error, "making room for a snapshot", this.root);
    }
  }

  async #directory(id: string): Promise<string> {
    const { files } = this.#platform;
    await files.makeDirectory(this.root, this.#modes.directory);
    await files.makeDirectory(`${this.root}/${id}`, this.#modes.directory);
    return `${this.root}/${id}`;
  }

  /** Written and synced; nobody sees it yet, so it may lie there by halves under its own name until then. */
  async put(descriptor: Descriptor): Promise<void> {
    const { files } = this.#platform;
    const directory = `${this.root}/${descriptor.snapshot_id}`;
    const bytes = new TextEncoder().encode(encodeDescriptor(descriptor));
    try {
      // Names and content together: a disk takes them as one.
      const changed = [directory, this.root, this.#control];
      await this.#directory(descriptor.snapshot_id);
      const fd = await files.open(`${directory}/${DESCRIPTOR}`, "create", this.#modes.file);
      try {
        for (let at = 0; at < bytes.length; ) at += await files.writeAt(fd, bytes.subarray(at), at);
        await files.syncAll([fd], changed);
      } finally {
        await files.close(fd);
      }
    } catch (error) {
      throw fileFailure(error, "writing a snapshot's descriptor", directory);
    }
  }

  /** The instant at which it becomes visible; on the disk when this returns. Under the mutex, after the token check. */
  async makeReady(descriptor: Descriptor): Promise<void> {
    const { files, digest } = this.#platform;
    const path = `${this.root}/${descriptor.snapshot_id}/${READY}`;
    const bytes =
      (await files.readFile(`${this.root}/${descriptor.snapshot_id}/${DESCRIPTOR}`)) ?? new Uint8Array();
    await replaceFile(this.#platform, path, `${digest.sha256(bytes)}\n`, this.#modes.file);
  }

  /** From now on nobody sees it. */
  async takeDown(id: string): Promise<void> {
    const { files } = this.#platform;
    const directory = `${this.root}/${id}`;
    if ((await files.lstat(`${directory}/${READY}`)) === null) return;
    await files.rename(`${directory}/${READY}`, `${directory}/${REMOVED}`);
    await files.syncDirectory(directory);
  }

  /** Out of everybody's way, with all that is left of it. */
  async setAside(id: string): Promise<void> {
    const { files } = this.#platform;
    await files.rename(`${this.root}/${id}`, `${this.root}/${id}${ASIDE}`);
    await files.syncDirectory(this.root);
  }

  /** The ids of those that were set aside. */
  async asides(): Promise<string[]> {
    const names = (await this.#platform.files.readDirectory(this.root)) ?? [];
    return names
      .filter((name) => name.endsWith(ASIDE))
      .map((name) => name.slice(0, -ASIDE.length))
      .sort();
  }

  /** What is left of one that nobody sees. */
  async clear(id: string): Promise<void> {
    const { files } = this.#platform;
    const directory = `${this.root}/${id}`;
    const names = ((await files.readDirectory(directory)) ?? []).filter((name) => name !== READY);
    // The mark of its removal last: killed before, the rest is still known for what it is.
    for (const name of [...names.filter((one) => one !== REMOVED), ...names.filter((one) => one === REMOVED)])
      await files.unlink(`${directory}/${name}`);
    await files.removeDirectory(directory);
  }
}

export function descriptorsOf({ surroundings, repository }: Workspace): DescriptorStore {
  const { controlDir, config } = repository;
  return new DescriptorStore(surroundings.platform, controlDir, modesFor(config.sharedRepository));
}

export function refOf(id: string): string {
  return `refs/cotenant/snapshots/${id}`;
}

/** The one that somebody means: by its id or the beginning of its short id, by a tag, or as the latest. */
export function meantSnapshot(
  typed: string,
  all: readonly Descriptor[],
  worktreeId: string | null,
): Descriptor {
  const ids = all.map(({ snapshot_id: id }) => id);
  const whole = parseUlid(typed);
  const start = /^[0-9A-Za-z]{4,16}$/.test(typed) ? foldCrockford(typed) : null;
  const found =
    typed === "latest"
      ? all.filter(({ worktree_id: id }) => worktreeId === null || id === worktreeId).slice(-1)
      : all.filter(
          ({ snapshot_id: id, tags }) =>
            tags.includes(typed) ||
            (!isRefusal(whole) && id === whole) ||
            (start !== null && id.startsWith(start, 10)),
        );
  if (found.length === 1) return found[0]!;
  if (found.length === 0)
    throw new CotenantError("E_NOT_FOUND", `there is no snapshot "${printable(typed)}"`, {
      hint: "'cotenant history --all' shows what there is",
      data: { id: printable(typed) },
    });
  const isTag = found.some(({ tags }) => tags.includes(typed));
  const choice = found
    .slice(-5)
    .reverse()
    .map(({ snapshot_id: id, created_at: at }) => `${shortId(id, ids)} (of ${at})`);
  const shown = `"${printable(typed)}"`;
  const what = isTag
    ? `${found.length} snapshots are tagged ${shown}`
    : `${shown} could be ${found.length} snapshots`;
  throw new CotenantError("E_AMBIGUOUS_ID", what, {
    hint: `name the one that you mean by its own id, newest first: ${choice.join(", ")}`,
    data: { candidates: found.slice(-20).map(({ snapshot_id: id }) => id) },
  });
}

/** A snapshot, and all that there are: among them its short id is one. */
export interface KnownSnapshot {
  readonly descriptor: Descriptor;
  readonly all: readonly Descriptor[];
}

/** The snapshot that a word means, seen from this worktree. */
export async function snapshotMeant(workspace: Workspace, word: string): Promise<KnownSnapshot> {
  const all = await descriptorsOf(workspace).all();
  const { worktreeId } = (await workspace.worktree("read")).identity;
  return { descriptor: meantSnapshot(word, all, worktreeId), all };
}

export function shortSnapshotId(id: Ulid, all: readonly Descriptor[]): string {
  return shortId(
    id,
    all.map(({ snapshot_id: one }) => one),
  );
}
