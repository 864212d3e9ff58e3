/** The first that looks like a version in what a program prints when it is asked for it. */
export function versionIn(printed: string): string | null {
  return /(?<![\d.])\d+\.\d+(?:\.\d+)*(?:[-+][\w.+-]*\w)?/.exec(printed)?.[0] ?? null;
}
