/** What the program may know about where its words go. */
export interface Terminal {
  readonly isTerminal: boolean;
  readonly color: boolean;
  readonly columns: number;
  out(text: string): void;
  err(text: string): void;
}

export function nodeTerminal(): Terminal {
  const { stdout, stderr, env } = process;
  const isTerminal = stdout.isTTY === true;
  return {
    isTerminal,
    color: isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb",
    columns: stdout.columns ?? 100,
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
  };
}
