import { CotenantError } from "../errors/cotenant-error";
import type { Later } from "./platform";

/** Where a Git runs, and what it has to know to find objects that are only being received. */
export interface GitPlace {
  readonly cwd: string;
  /** The only `GIT_*` variables Git will see: everything inherited is scrubbed. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface GitOptions extends GitPlace {
  readonly input?: Uint8Array | string;
  /** 10 s unless told. */
  readonly timeoutMs?: number;
}

export interface GitResult {
  readonly status: number;
  readonly stdout: Uint8Array;
  readonly stderr: string;
}

/**
 * A Git child process. A non-zero status is an answer, not a failure. What throws is Git that cannot be run
 * (`E_GIT_TOO_OLD`), that does not end (`E_GIT_TIMEOUT`), that is killed, or that says more than can be held (`E_GIT`).
 */
export interface Git {
  run(args: readonly string[], options: GitOptions): Later<GitResult>;
}

export interface LastingGit extends Git {
  /** One that goes on answering until it is ended. */
  start(args: readonly string[], options: GitProcessOptions): GitProcess;
}

export interface GitProcessOptions extends GitPlace {
  /** For each answer; 10 s unless told. */
  readonly timeoutMs?: number;
  /**
   * Descriptors that it keeps open for as long as it lives: a lock on one of them lives as long as anyone who can still
   * write under it (PROTOCOL 3).
   */
  readonly inherit?: readonly number[];
}

/** A Git that waits for its next command. It does not keep this process from ending, and ends with it. */
export interface GitProcess {
  /** Null where it could not be started; what is asked of it says why. */
  readonly pid: number | null;
  /** It has ended, and says nothing more. */
  readonly isOver: boolean;
  write(data: string | Uint8Array): void;
  /** Without the line's end; null when there is no more. */
  readLine(): Promise<string | null>;
  /** Exactly so many bytes; null when there are fewer. */
  read(length: number): Promise<Uint8Array | null>;
  /** Lets it come to its end, and answers what it said of itself. */
  end(): Promise<Omit<GitResult, "stdout">>;
  /** At once. */
  kill(): void;
}

/** Whether Git was ended before it could answer: what it was to do may be done or not. */
export function isCutOff(error: unknown): error is CotenantError {
  if (!(error instanceof CotenantError)) return false;
  return error.code === "E_GIT_TIMEOUT" || (error.code === "E_GIT" && "signal" in error.data);
}

export const DEFAULT_GIT_TIMEOUT_MS = 10_000;
const OLDEST = { major: 2, minor: 38 } as const;

export interface GitVersion {
  readonly major: number;
  readonly minor: number;
  readonly text: string;
}

/** Reads `git version 2.39.5 (Apple Git-154)` and its relatives. */
export function parseGitVersion(line: string): GitVersion | null {
  const found = /^git version ((\d+)\.(\d+)\S*)/.exec(line.trim());
  return found === null ? null : { text: found[1]!, major: Number(found[2]), minor: Number(found[3]) };
}

export async function requireRecentGit(git: Git, cwd: string): Promise<GitVersion> {
  const { stdout } = await git.run(["version"], { cwd });
  const line = new TextDecoder().decode(stdout).trim();
  const version = parseGitVersion(line);
  if (version === null) {
    throw new CotenantError("E_GIT_TOO_OLD", `cannot tell which Git this is: "${line.slice(0, 100)}"`, {
      data: { answer: line.slice(0, 200) },
    });
  }
  const recent =
    version.major > OLDEST.major || (version.major === OLDEST.major && version.minor >= OLDEST.minor);
  if (recent) return version;
  throw new CotenantError(
    "E_GIT_TOO_OLD",
    `Git ${version.text} is too old: cotenant needs ${OLDEST.major}.${OLDEST.minor} or newer`,
    { data: { found: version.text, needed: `${OLDEST.major}.${OLDEST.minor}` } },
  );
}
