import type { Asker } from "../../coordinator/local";
import type { Environment, Repository } from "../../identity/repository";
import type { Holder } from "../../kernel/lease";
import type { Git } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import type { Store, StoreOptions } from "../../store/store";
import type { Alarm } from "./alarm";
import type { Mark } from "./pass";
import type { Findings } from "./worktree";

/** Git hooks are another's subject; every event is an occasion to look after them. */
export interface HooksKeeper {
  /** Puts back what is gone; what there is to say about it. */
  lookAfter(repository: Repository): Promise<string | null>;
  /** What their files look like while they are in place; null where they are wanted and were not found so. */
  marks(repository: Repository): Promise<readonly Mark[] | null>;
}

/** A hook that begins to wait for a file. */
export interface BegunWait {
  /** Who holds what, for people. */
  readonly message: string;
  /** When it ends at the latest. */
  readonly until: string;
  readonly waitMs: number;
}

/** Everything of the outside that a check may look at. */
export interface World {
  readonly platform: Platform;
  readonly git: Git;
  readonly env: Environment;
  readonly home: string | null;
  readonly cwd: string;
  /** Who started us; the harness is that process or one above it. */
  readonly parentPid: number;
  /** Given on the command line: the harness itself. */
  readonly harnessPid: number | null;
  /** The harness itself, where it is known otherwise than by who started us. */
  readonly harness?: Holder;
  /** Who waits for the answer, where that is not this process. */
  readonly asker?: Asker;
  /** Stores that outlive one check. */
  readonly openStore?: (options: StoreOptions) => Store;
  /** Gets the alarm of the check, for what happens beside it. */
  readonly onAlarm?: (alarm: Pick<Alarm, "ring">) => void;
  /** Shows people that the hook waits, where whoever called can show it. */
  readonly onWait?: (wait: BegunWait) => void;
  /** Looks after Git hooks that are wanted in a repository. */
  readonly hooks?: HooksKeeper;
  /** Somebody asks by name: also a repository counts that was never prepared for agents. */
  readonly isAsked?: boolean;
  /** What was found out for the event at hand. */
  readonly found?: Findings;
}
