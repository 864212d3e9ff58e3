import type { CounterName, Counters } from "./counters";
import type { FaultableKind, FaultCode } from "./operation";
import type { Prng } from "./prng";

export interface FaultRule {
  readonly code: FaultCode;
  /** Default: the operations that this code is usual for. */
  readonly operations?: readonly FaultableKind[];
  readonly path?: (path: string) => boolean;
  readonly process?: (name: string) => boolean;
  /** Default 1. */
  readonly probability?: number;
  /** Matching operations to let pass first: with `times: 1`, strikes exactly the k-th. */
  readonly skip?: number;
  /** Strikes at most so often. */
  readonly times?: number;
}

export interface PlantedFault {
  readonly struck: number;
  remove(): void;
}

const WRITES: readonly FaultableKind[] = ["append", "writeAt"];
const SYNCS: readonly FaultableKind[] = ["datasync", "datasyncInBackground", "sync", "syncDirectory"];
const READS: readonly FaultableKind[] = ["read", "readFile", "readDirectory"];
const NAME_CHANGES: readonly FaultableKind[] = [
  "openForWriting",
  "rename",
  "link",
  "unlink",
  "makeDirectory",
  "removeDirectory",
];

const USUAL: Record<FaultCode, readonly FaultableKind[]> = {
  ENOSPC: [...WRITES, "openForWriting", "rename", "link", "makeDirectory"],
  EIO: [...SYNCS, ...READS],
  EROFS: [...WRITES, ...NAME_CHANGES, "truncate", "chmod"],
  EINTR: [...WRITES, "open", "openForWriting", "read", "truncate", "datasync", "sync", "lock"],
  ESTALE: [...WRITES, ...SYNCS, ...READS, ...NAME_CHANGES, "open", "fstat", "stat", "lstat", "truncate"],
  // Node opens a descriptor for each of these.
  EMFILE: ["open", "openForWriting", "readFile", "readDirectory", "syncDirectory"],
};

interface Planted {
  readonly rule: FaultRule;
  readonly operations: readonly FaultableKind[];
  toSkip: number;
  struck: number;
}

export class FaultPlan {
  readonly #prng: Prng;
  readonly #counters: Counters;
  /** Paths whose removal was struck: what stands there may be nobody's any more. */
  readonly notRemoved = new Set<string>();
  #planted: Planted[] = [];

  constructor(prng: Prng, counters: Counters) {
    this.#prng = prng;
    this.#counters = counters;
  }

  add(rule: FaultRule): PlantedFault {
    const planted: Planted = {
      rule,
      operations: rule.operations ?? USUAL[rule.code],
      toSkip: rule.skip ?? 0,
      struck: 0,
    };
    this.#planted.push(planted);
    return {
      get struck() {
        return planted.struck;
      },
      remove: () => {
        this.#planted = this.#planted.filter((other) => other !== planted);
      },
    };
  }

  clear(): void {
    this.#planted = [];
  }

  /** The fault that strikes this operation, or null. */
  strike(kind: FaultableKind, path: string, process: string): FaultCode | null {
    for (const planted of this.#planted) {
      const { rule } = planted;
      if (!planted.operations.includes(kind)) continue;
      if (rule.times !== undefined && planted.struck >= rule.times) continue;
      if (rule.path !== undefined && !rule.path(path)) continue;
      if (rule.process !== undefined && !rule.process(process)) continue;
      if (planted.toSkip > 0) {
        planted.toSkip--;
        continue;
      }
      if (!this.#prng.chance(rule.probability ?? 1)) continue;
      planted.struck++;
      this.#counters.count(counterOf(rule.code, kind));
      if (kind === "unlink") this.notRemoved.add(path);
      return rule.code;
    }
    return null;
  }
}

function counterOf(code: FaultCode, kind: FaultableKind): CounterName {
  if (code !== "EIO") return `fault.${code}`;
  if (SYNCS.includes(kind)) return "fault.EIO.sync";
  return READS.includes(kind) ? "fault.EIO.read" : "fault.EIO.other";
}
