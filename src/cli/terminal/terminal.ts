import * as fs from "node:fs";

/** What the program may know about where its words go. */
export interface Terminal {
  readonly isTerminal: boolean;
  readonly color: boolean;
  readonly columns: number;
  /** False when nobody reads it any more. */
  out(text: string): boolean;
  err(text: string): void;
}

/** Straight to the descriptor: `process.stdout` loads streams and sockets, several milliseconds of a command. */
export function nodeTerminal(): Terminal {
  const { env } = process;
  const isTerminal = isTty(1);
  return {
    isTerminal,
    color: isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb",
    columns: isTerminal ? process.stdout.columns || 80 : 100,
    out: (text) => writeWhole(1, text),
    err: (text) => writeWhole(2, text),
  };
}

const DEV_NULL = 0x103;

export function isTty(fd: number): boolean {
  try {
    const stat = fs.fstatSync(fd);
    // Asking properly loads sockets; the usual non-terminals need no asking.
    if (!stat.isCharacterDevice() || (process.platform === "linux" && stat.rdev === DEV_NULL)) return false;
    return (require("node:tty") as typeof import("node:tty")).isatty(fd);
  } catch {
    // Closed by whoever started us.
    return false;
  }
}

function writeWhole(fd: number, text: string): boolean {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += fs.writeSync(fd, bytes, at);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      // A full pipe that does not block: wait for its reader.
      if (code === "EAGAIN") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
      // The reader has gone (`| head`), or there never was one: nobody to tell.
      else if (code === "EPIPE" || code === "EBADF") return false;
      else throw error;
    }
  }
  return true;
}
