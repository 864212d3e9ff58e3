import { type AnyCell, type Capture, Cell } from "./cell";
import { FileContent } from "./file-content";
import type { Prng } from "./prng";

/** The disk's bookkeeping that an inode tells about itself. */
export interface InodeOwner {
  readonly dirtyInodes: Set<Inode>;
  /** Called when the last name, the last durable name or the last open descriptor went. */
  reclaim(inode: Inode): void;
}

export interface LockWaiter {
  /** A stopped process is not given a lock: the signal interrupts its wait. */
  readonly isStopped: boolean;
}

abstract class InodeBase {
  readonly number: number;
  readonly uid: number;
  readonly mode: Cell<number>;
  readonly mtimeMicros = new Cell(0);
  /** Names in directories as processes see them, names on the platter, open descriptions. */
  links = 0;
  durableLinks = 0;
  opens = 0;
  /** How many syncs failed; each open description reports each of them once, as Linux does since 4.13. */
  syncFailures = 0;
  protected readonly owner: InodeOwner;
  readonly #dirty = new Set<AnyCell>();

  constructor(owner: InodeOwner, number: number, uid: number, mode: number) {
    this.owner = owner;
    this.number = number;
    this.uid = uid;
    this.mode = new Cell(mode);
  }

  markDirty(cell: AnyCell): void {
    this.#dirty.add(cell);
    this.owner.dirtyInodes.add(this as unknown as Inode);
  }

  /** What a sync that starts now has to make durable. */
  capture(): Capture[] {
    return [...this.#dirty].map((cell) => cell.capture());
  }

  persist(captures: readonly Capture[]): void {
    for (const capture of captures) capture.persist();
    this.#dropClean();
  }

  /** A sync that fails: some pages were written, some were not, and all of them are clean from now on. */
  failSync(prng: Prng): void {
    this.syncFailures++;
    for (const cell of this.#dirty) {
      if (prng.chance(0.5)) cell.capture().persist();
      else cell.forget();
    }
    this.#dropClean();
  }

  /** The kernel's own writing in the background. */
  writeBackSome(prng: Prng): void {
    for (const cell of this.#dirty) if (prng.chance(0.5)) cell.capture().persist();
    this.#dropClean();
  }

  forgetDirt(): void {
    this.#dirty.clear();
  }

  #dropClean(): void {
    for (const cell of this.#dirty) if (!cell.isDirty) this.#dirty.delete(cell);
    if (this.#dirty.size === 0) this.owner.dirtyInodes.delete(this as unknown as Inode);
  }
}

export class FileInode extends InodeBase {
  readonly kind = "file";
  readonly content = new FileContent((cell) => this.markDirty(cell));
  /** The write that is half done: others wait for it, readers do not. */
  writer: object | null = null;
  /** The open file description that holds the lock. */
  lockHolder: object | null = null;
  /** Everyone who waits for the lock, in the order in which they asked. */
  lockQueue: LockWaiter[] = [];
}

export class SymlinkInode extends InodeBase {
  readonly kind = "symlink";
  target = "";
}

export class DirectoryInode extends InodeBase {
  readonly kind = "directory";
  readonly entries = new Map<string, EntryCell>();

  get(name: string): Inode | null {
    return this.entries.get(name)?.current ?? null;
  }

  put(name: string, inode: Inode | null): void {
    let cell = this.entries.get(name);
    if (cell === undefined) {
      cell = new EntryCell(this.owner);
      this.entries.set(name, cell);
    }
    const before = cell.current;
    cell.set(inode);
    this.markDirty(cell);
    if (inode !== null) inode.links++;
    if (before !== null) {
      before.links--;
      this.owner.reclaim(before);
    }
  }

  names(): string[] {
    const names: string[] = [];
    for (const [name, cell] of this.entries) if (cell.current !== null) names.push(name);
    return names;
  }

  override persist(captures: readonly Capture[]): void {
    super.persist(captures);
    for (const [name, cell] of this.entries) {
      if (cell.current === null && cell.durable === null && !cell.isDirty) this.entries.delete(name);
    }
  }
}

export type Inode = FileInode | DirectoryInode | SymlinkInode;

class EntryCell extends Cell<Inode | null> {
  readonly #owner: InodeOwner;

  constructor(owner: InodeOwner) {
    super(null);
    this.#owner = owner;
  }

  protected override onDurableChange(from: Inode | null, to: Inode | null): void {
    if (to !== null) to.durableLinks++;
    if (from !== null) {
      from.durableLinks--;
      this.#owner.reclaim(from);
    }
  }
}
