/** The kernel's rule of conflicts, written a second time on purpose: the checker must not share the kernel's mistakes. */
export function keysMeet(a: string, b: string): boolean {
  if (a === b) return true;
  return isBelow(a, b) || isBelow(b, a);
}

function isBelow(key: string, directoryKey: string): boolean {
  const [, path] = /^(?:file|dir):(.*)$/.exec(key) ?? [];
  const [, directory] = /^dir:(.*)$/.exec(directoryKey) ?? [];
  if (path === undefined || directory === undefined) return false;
  return directory === "." || path.startsWith(`${directory}/`);
}
