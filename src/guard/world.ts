import type { Environment } from "../identity/repository";
import type { Git } from "../platform/git";
import type { Platform } from "../platform/platform";

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
  /** Has errors told of promises that nobody waits for: a check that has one has not gone well. */
  readonly onStray?: (tell: (error: unknown) => void) => void;
  /** Somebody asks by name: also a repository counts that was never prepared for agents. */
  readonly isAsked?: boolean;
}
