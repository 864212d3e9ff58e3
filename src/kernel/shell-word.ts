import { printable } from "./ids";

/** As a shell takes it, whatever is in it. */
export function shellWord(text: string): string {
  return /^[\w./@%+=:,-]+$/.test(text) ? text : `'${printable(text, 1_000).replaceAll("'", "'\\''")}'`;
}
