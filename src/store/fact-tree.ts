import { type FactName, type FactRecord, factKind } from "../kernel/facts";
import { factFromWire, factToWire } from "./facts";
import { DamagedIndex, damagedAsNull, type TreeFiles, understood } from "./tree-files";
import { isUnfinished, type TreeNames } from "./tree-names";

/** Whoever says how many there must be. */
export interface Counter {
  count(what: string): Promise<number>;
  add(what: string, step: number): Promise<void>;
  flush(): Promise<unknown>;
  /** Up to which line of the log. */
  asOf(): number;
}

/** What is counted: a fact by its name, and all of a kind. */
const FACT = "fact ";
const FACTS_OF = "facts of ";

/** Facts in the index: one small file each, in a directory for their kind. */
export class FactTree {
  constructor(
    private readonly tree: TreeFiles,
    private readonly names: TreeNames,
    private readonly counter: Counter,
  ) {}

  async named(name: FactName): Promise<FactRecord | null> {
    if ((await this.counter.count(FACT + name)) === 0) return null;
    const path = this.names.fact(name);
    const found = await this.#read(path);
    if (found === null) throw new DamagedIndex(path);
    return found[1];
  }

  async ofKind(kind: string): Promise<Map<FactName, FactRecord>> {
    const expected = await this.counter.count(FACTS_OF + kind);
    const found = new Map<FactName, FactRecord>();
    if (expected === 0) return found;
    for await (const [name, fact] of this.#in(this.names.facts(kind), false)) found.set(name, fact);
    const asOf = this.counter.asOf();
    // What was said since may come at any moment, for a reader, and must not be counted for something that is missing.
    const counted = [...found.values()].filter(({ sequence }) => sequence <= asOf).length;
    if (counted < expected) throw new DamagedIndex(this.names.facts(kind));
    return found;
  }

  /** Whatever is still whole. */
  async *salvage(): AsyncGenerator<[FactName, FactRecord]> {
    for (const kind of await this.tree.list(this.names.tree("facts")))
      yield* this.#in(this.names.facts(kind), true);
  }

  /** Under the mutex. A count never lags behind its files: up before, down after. */
  async apply(facts: ReadonlyMap<FactName, FactRecord | null>): Promise<void> {
    const fresh: [FactName, FactRecord][] = [];
    const gone: FactName[] = [];
    for (const [name, fact] of facts) {
      const path = this.names.fact(name);
      if (fact === null) {
        if (await this.tree.remove(path)) gone.push(name);
      } else if (!(await this.tree.overwrite(path, factToWire(name, fact)))) fresh.push([name, fact]);
    }
    await this.#recount(
      fresh.map(([name]) => name),
      1,
    );
    for (const [name, fact] of fresh)
      await this.tree.createIn(
        this.names.facts(factKind(name)),
        this.names.fact(name),
        factToWire(name, fact),
      );
    await this.#recount(gone, -1);
  }

  async #recount(names: readonly FactName[], step: number): Promise<void> {
    if (names.length === 0) return;
    for (const name of names) {
      await this.counter.add(FACT + name, step);
      await this.counter.add(FACTS_OF + factKind(name), step);
    }
    await this.counter.flush();
  }

  async *#in(directory: string, lenient: boolean): AsyncGenerator<[FactName, FactRecord]> {
    for (const file of await this.tree.list(directory)) {
      if (isUnfinished(file)) continue;
      const reading = this.#read(`${directory}/${file}`);
      const found = lenient ? await reading.catch(damagedAsNull) : await reading;
      if (found !== null) yield found;
    }
  }

  async #read(path: string): Promise<[FactName, FactRecord] | null> {
    const value = await this.tree.read(path);
    if (value === null) return null;
    const [name, fact] = understood(path, () => factFromWire(value));
    // Whole, but in another's place.
    if (this.names.fact(name) !== path) throw new DamagedIndex(path);
    return [name, fact];
  }
}
