/**
 * Patterns of paths as people know them from `.gitignore`: `*` and `?` within a name, `**` across directories. Without a
 * slash a pattern fits names at any depth; with one it begins at the root. What fits a directory fits everything in it.
 */
export function fitsPattern(pattern: string, path: string): boolean {
  const isDirectory = pattern.endsWith("/");
  const bare = pattern.replace(/^\//, "").replace(/\/$/, "");
  if (bare === "") return false;
  const parts = path.split("/");
  // A pattern for directories does not fit the file at the end.
  const directories = parts.slice(0, -1);
  const isRooted = pattern.replace(/\/$/, "").includes("/");
  if (!isRooted) return (isDirectory ? directories : parts).some((name) => fitsName(bare, name));
  return fitsPrefix(bare.split("/"), isDirectory ? directories : parts);
}

/** Whether the pattern's segments fit the first so many names, however many follow. */
function fitsPrefix(pattern: readonly string[], names: readonly string[]): boolean {
  // Which numbers of names the segments so far can have used up.
  let reached = new Set([0]);
  for (const segment of pattern) {
    const next = new Set<number>();
    for (const at of reached) {
      if (segment === "**") for (let to = at; to <= names.length; to++) next.add(to);
      else if (at < names.length && fitsName(segment, names[at]!)) next.add(at + 1);
    }
    reached = next;
  }
  return [...reached].some((at) => at > 0);
}

/** By hand: a regular expression made of a pattern can take for ever. */
function fitsName(pattern: string, name: string): boolean {
  let [at, star, resume] = [0, -1, 0];
  for (let i = 0; i < name.length; ) {
    if (pattern[at] === "?" || (pattern[at] === name[i] && pattern[at] !== "*")) {
      at++;
      i++;
    } else if (pattern[at] === "*") {
      star = at++;
      resume = i;
    } else if (star !== -1) {
      at = star + 1;
      i = ++resume;
    } else return false;
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}
