/** What a failed system call throws: the same shape as Node's errors, as far as `Files` promises it. */
export class PosixError extends Error {
  readonly code: string;
  readonly path: string;
  /** Which one it was nobody asks; that there is one tells an error of the system's. */
  readonly syscall = "simulated";

  constructor(code: string, path: string, why = "") {
    // Like Node's own without a stack, which would be the simulator's, and costs more than the call that failed.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(`${code}: ${path}${why === "" ? "" : ` (${why})`}`);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = "PosixError";
    this.code = code;
    this.path = path;
  }
}

export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}
