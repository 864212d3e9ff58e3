/** What a failed system call throws: the same shape as Node's errors, as far as `Files` promises it. */
export class PosixError extends Error {
  readonly code: string;
  readonly path: string;

  constructor(code: string, path: string, why = "") {
    super(`${code}: ${path}${why === "" ? "" : ` (${why})`}`);
    this.name = "PosixError";
    this.code = code;
    this.path = path;
  }
}

export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}
