import { printable } from "./ids";

/** A number and what there are so many of. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}

/** As a shell takes it, whatever is in it. */
export function shellWord(text: string): string {
  return /^[\w./@%+=:,-]+$/.test(text) ? text : `'${printable(text, 1_000).replaceAll("'", "'\\''")}'`;
}
