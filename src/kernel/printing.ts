import { printable } from "./ids";

/** A number and what there are so many of. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}

/** The first few of a list, and how many more. */
export function some(all: readonly string[], most = 3): string {
  return all.slice(0, most).join(", ") + andMore(all.length - most);
}

export function andMore(rest: number): string {
  return rest > 0 ? ` and ${rest} more` : "";
}

export function duration(ms: number): string {
  const secs = Math.max(0, Math.round(ms / 1000));
  if (secs < 60) return `${secs}s`;
  if (secs < 3600) return `${Math.floor(secs / 60)}m${String(secs % 60).padStart(2, "0")}s`;
  if (secs < 86_400)
    return `${Math.floor(secs / 3600)}h${String(Math.floor((secs % 3600) / 60)).padStart(2, "0")}m`;
  return `${Math.floor(secs / 86_400)}d${Math.floor((secs % 86_400) / 3600)}h`;
}

/** One word for a shell, whatever is in it. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A regular expression for what {@link shellQuoted} makes. */
export const SHELL_QUOTED = "'(?:[^']|'\\\\'')*'";

export function shellUnquoted(word: string): string {
  return word.slice(1, -1).replaceAll("'\\''", "'");
}

/** A word of a command that somebody is told to type. */
export function shellWord(text: string): string {
  return /^[\w./@%+=:,-]+$/.test(text) ? text : shellQuoted(printable(text, 1_000));
}
