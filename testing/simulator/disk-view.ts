import type { Disk } from "./disk";
import type { DirectoryInode, Inode } from "./inode";

const ROOT_UID = 0;
const DEFAULT_UID = 1000;

/** The test's own access to the disk: past the scheduler and the faults. */
export class DiskView {
  readonly #disk: Disk;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /** The directory and all above it, durable. */
  makePath(path: string, permissions = 0o755, uid = DEFAULT_UID): void {
    const names = path.split("/").filter((name) => name !== "");
    for (let depth = 1; depth <= names.length; depth++) {
      const prefix = `/${names.slice(0, depth).join("/")}`;
      if (this.#disk.find(prefix, ROOT_UID) === null) this.#disk.makeDirectory(prefix, permissions, uid);
    }
    this.syncEverything();
  }

  /** A file with this content, durable. Replaces the content of one that is there. */
  install(path: string, content: Uint8Array, permissions = 0o600, uid = DEFAULT_UID): void {
    const existing = this.#disk.find(path, ROOT_UID);
    const file = this.#disk.open(path, "update-or-create", permissions, existing === null ? uid : ROOT_UID);
    this.#disk.truncate(file, 0);
    if (content.length > 0) this.#disk.write(file, content, 0);
    this.#disk.close(file);
    this.syncEverything();
  }

  symlink(target: string, path: string, uid = DEFAULT_UID): void {
    this.#disk.makeSymlink(target, path, uid);
    this.syncEverything();
  }

  /** Somebody else's hand in a file: other content, or gone when null. Makes nothing but this durable. */
  spoil(path: string, content: Uint8Array | null): void {
    if (content === null) {
      this.#disk.unlink(path, ROOT_UID);
      return;
    }
    const file = this.#disk.open(path, "update", 0, ROOT_UID);
    this.#disk.truncate(file, 0);
    if (content.length > 0) this.#disk.write(file, content, 0);
    file.inode.persist(file.inode.capture());
    this.#disk.close(file);
  }

  peek(path: string, from = 0): Uint8Array | null {
    const inode = this.#disk.find(path, ROOT_UID)?.inode;
    return inode?.kind === "file" ? inode.content.read(from, inode.content.size.current - from) : null;
  }

  /** What would be there if the power went now and took everything along that it may. No symbolic links. */
  peekDurable(path: string): Uint8Array | null {
    let inode: Inode | null = this.#disk.root;
    for (const name of path.split("/").filter((part) => part !== "")) {
      if (inode?.kind !== "directory") return null;
      inode = inode.entries.get(name)?.durable ?? null;
    }
    return inode?.kind === "file" ? inode.content.durable() : null;
  }

  /** Names in a directory that would be there then. */
  durableNames(path: string): string[] {
    const inode = this.#disk.find(path, ROOT_UID)?.inode;
    if (inode?.kind !== "directory") return [];
    return [...inode.entries].filter(([, entry]) => entry.durable !== null).map(([name]) => name);
  }

  inodeOf(path: string): number | null {
    return this.#disk.find(path, ROOT_UID)?.inode?.number ?? null;
  }

  /** All paths, sorted; directories end in "/". */
  paths(): string[] {
    const found: string[] = [];
    const visit = (directory: DirectoryInode, prefix: string) => {
      for (const name of directory.names()) {
        const inode = directory.get(name)!;
        if (inode.kind === "directory") {
          found.push(`${prefix}${name}/`);
          visit(inode, `${prefix}${name}/`);
        } else found.push(`${prefix}${name}`);
      }
    };
    visit(this.#disk.root, "/");
    return found.sort();
  }

  /** As an orderly shutdown does. */
  syncEverything(): void {
    for (const inode of [...this.#disk.dirtyInodes]) inode.persist(inode.capture());
    for (const inode of this.#reachable()) {
      inode.mode.capture().persist();
      inode.mtimeMicros.capture().persist();
    }
  }

  dropForgottenPages(): void {
    for (const inode of this.#reachable()) if (inode.kind === "file") inode.content.dropForgotten();
  }

  #reachable(): Set<Inode> {
    const found = new Set<Inode>([this.#disk.root]);
    for (const inode of found) {
      if (inode.kind === "directory") for (const name of inode.names()) found.add(inode.get(name)!);
    }
    return found;
  }
}
