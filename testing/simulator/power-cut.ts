import type { Cell } from "./cell";
import type { CounterName, Counters } from "./counters";
import { SECTOR_BYTES, ZERO_SECTOR, zeroedFrom } from "./file-content";
import type { DirectoryInode, FileInode, Inode } from "./inode";
import type { Prng } from "./prng";

/** All lost and all kept are the likeliest bugs, and would be the rarest outcomes of even odds. */
const SURVIVAL_ODDS = [0, 0.1, 0.5, 0.9, 1];

/**
 * Turns cache and platter into one state that the disk could legally be found in after the power came back,
 * and answers which inode numbers are in use then.
 */
export function settleAfterPowerCut(root: DirectoryInode, prng: Prng, counters: Counters): Set<number> {
  const outcome = new Outcome(prng, counters);
  outcome.settle(root);
  for (const inode of outcome.found) {
    inode.links = 0;
    inode.durableLinks = 0;
    inode.opens = 0;
  }
  root.links = 1;
  root.durableLinks = 1;
  for (const inode of outcome.found) {
    if (inode.kind !== "directory") continue;
    for (const entry of inode.entries.values()) {
      entry.current!.links++;
      entry.current!.durableLinks++;
    }
  }
  return new Set([...outcome.found].map((inode) => inode.number));
}

class Outcome {
  readonly found = new Set<Inode>();
  readonly #prng: Prng;
  readonly #counters: Counters;
  readonly #survival: number;

  constructor(prng: Prng, counters: Counters) {
    this.#prng = prng;
    this.#counters = counters;
    this.#survival = prng.pick(SURVIVAL_ODDS);
  }

  settle(inode: Inode): void {
    this.found.add(inode);
    inode.forgetDirt();
    inode.syncFailures = 0;
    inode.mode.settle(this.#choose(inode.mode));
    inode.mtimeMicros.settle(this.#choose(inode.mtimeMicros));
    if (inode.kind === "directory") this.#settleDirectory(inode);
    if (inode.kind === "file") this.#settleFile(inode);
  }

  #settleDirectory(directory: DirectoryInode): void {
    for (const [name, entry] of directory.entries) {
      const inode = this.#choose(entry, "crash.power.entry-new", "crash.power.entry-old");
      // A renamed directory may have kept both names; file systems repair that by dropping one.
      const isSecondParent = inode?.kind === "directory" && this.found.has(inode);
      if (inode === null || isSecondParent) {
        entry.settle(null);
        directory.entries.delete(name);
        continue;
      }
      entry.settle(inode);
      if (!this.found.has(inode)) this.settle(inode);
    }
  }

  #settleFile(file: FileInode): void {
    file.writer = null;
    file.lockHolder = null;
    file.lockQueue = [];
    const { sectors } = file.content;
    const size = this.#chooseSize(file.content.size);
    file.content.size.settle(size);
    sectors.forEach((cell, index) => {
      const end = size - index * SECTOR_BYTES;
      const lost: CounterName =
        cell.durable === ZERO_SECTOR ? "crash.power.sector-zeroed" : "crash.power.sector-old";
      const chosen = this.#choose(
        cell,
        end > 0 ? "crash.power.sector-new" : undefined,
        end > 0 ? lost : undefined,
      );
      if (end <= 0) cell.settle(ZERO_SECTOR);
      else cell.settle(end < SECTOR_BYTES ? zeroedFrom(chosen, end) : chosen);
    });
  }

  #chooseSize(cell: Cell<number>): number {
    const low = Math.min(cell.current, cell.durable);
    const sectors = Math.floor(Math.abs(cell.current - cell.durable) / SECTOR_BYTES);
    if (cell.isDirty && sectors > 0 && this.#prng.chance(0.25)) {
      this.#counters.count("crash.power.size-between");
      return (Math.floor(low / SECTOR_BYTES) + this.#prng.between(1, sectors)) * SECTOR_BYTES;
    }
    return this.#choose(cell, "crash.power.size-new", "crash.power.size-old");
  }

  #choose<T>(cell: Cell<T>, ifNew?: CounterName, ifOld?: CounterName): T {
    if (cell.isForgotten) {
      this.#counters.count("crash.power.lost-after-failed-sync");
      return cell.durable;
    }
    if (!cell.isDirty) return cell.current;
    const survives = this.#prng.chance(this.#survival);
    const counter = survives ? ifNew : ifOld;
    if (counter !== undefined) this.#counters.count(counter);
    return survives ? cell.current : cell.durable;
  }
}
