import type { Platform, ProcessIdentity } from "../../src/platform/platform";
import { DescriptorTable } from "./open-file";

export interface Namespaces {
  readonly pid: string;
  readonly time: string;
  /** A time namespace shifts the monotonic clock. */
  readonly monotonicOffsetMs: number;
}

export type ProcessState = "running" | "finished" | "failed" | "killed";

export interface ProcessTraits {
  readonly name: string;
  readonly uid: number;
  readonly namespaces: Namespaces;
  readonly identity: ProcessIdentity;
  readonly maxDescriptors: number;
}

/** A simulated process. Its program runs in this very JavaScript thread and meets others only through its platform. */
export class SimProcess<T = unknown> {
  readonly name: string;
  readonly uid: number;
  readonly namespaces: Namespaces;
  readonly identity: ProcessIdentity;
  readonly descriptors: DescriptorTable;
  readonly platform: Platform;
  /** Waits for locks, which lose their place in the queue when the process is stopped. */
  readonly lockWaits = new Set<{ joinQueueAgain(): void }>();
  state: ProcessState = "running";
  isPaused = false;
  /** Dead, but nobody has asked for its exit status: its pid is still taken. */
  isZombie = false;
  /** What the program returned. */
  result: T | undefined;
  /** What the program threw. */
  error: unknown;

  constructor(traits: ProcessTraits, platformFor: (process: SimProcess) => Platform) {
    this.name = traits.name;
    this.uid = traits.uid;
    this.namespaces = traits.namespaces;
    this.identity = traits.identity;
    this.descriptors = new DescriptorTable(traits.maxDescriptors);
    this.platform = platformFor(this);
  }

  get pid(): number {
    return this.identity.pid;
  }

  get isAlive(): boolean {
    return this.state === "running";
  }
}
