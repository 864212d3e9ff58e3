/**
 * Patterns of paths as people know them from `.gitignore`: `*` and `?` within a name, `**` across directories. Without a
 * slash a pattern fits names at any depth; with one it begins at the root. What fits a directory fits everything in it.
 */
export function fitsPattern(pattern: string, path: string): boolean {
  const { isDirectory, isRooted, bare } = partsOf(pattern);
  if (bare === "") return false;
  const names = path.split("/");
  // A pattern for directories does not fit the file at the end.
  const fitting = isDirectory ? names.slice(0, -1) : names;
  return isRooted ? walk(bare, fitting).fits : fitting.some((name) => fitsName(bare, name));
}

/** Whether the pattern may fit something in the directory, be it there or not. */
export function mayFitIn(pattern: string, directory: string): boolean {
  const { isRooted, bare } = partsOf(pattern);
  if (bare === "") return false;
  if (!isRooted || directory === ".") return true;
  const { fits, mayGoOn } = walk(bare, directory.split("/"));
  return fits || mayGoOn;
}

/** Longer than any name can be, and fitted only by what fits all names. */
const ANY_NAME = "\ufffd".repeat(300);

/** Whether the pattern fits everything in the directory. */
export function fitsAllIn(pattern: string, directory: string): boolean {
  return fitsPattern(pattern, directory === "." ? ANY_NAME : `${directory}/${ANY_NAME}`);
}

function partsOf(pattern: string) {
  const isDirectory = pattern.endsWith("/");
  const bare = pattern.replace(/^\//, "").replace(/\/$/, "");
  return { isDirectory, isRooted: pattern.replace(/\/$/, "").includes("/"), bare };
}

/** `fits`: the segments fit the first so many names, however many follow. `mayGoOn`: more names could make them fit. */
function walk(bare: string, names: readonly string[]): { fits: boolean; mayGoOn: boolean } {
  const segments = bare.split("/");
  // How many segments can be used up by the names so far: a set, so that many `**` cost no more than one.
  let used = new Set<number>();
  const reach = (into: Set<number>, from: number) => {
    into.add(from);
    for (let at = from; segments[at] === "**"; at++) into.add(at + 1);
  };
  reach(used, 0);
  for (const name of names) {
    const next = new Set<number>();
    for (const at of used) {
      if (segments[at] === "**") reach(next, at);
      else if (at < segments.length && fitsName(segments[at]!, name)) reach(next, at + 1);
    }
    if (next.has(segments.length)) return { fits: true, mayGoOn: true };
    if (next.size === 0) return { fits: false, mayGoOn: false };
    used = next;
  }
  return { fits: false, mayGoOn: true };
}

/** By hand: a regular expression made of a pattern can take for ever. */
function fitsName(pattern: string, name: string): boolean {
  let [at, star, resume] = [0, -1, 0];
  for (let i = 0; i < name.length; ) {
    if (pattern[at] === "?") {
      at++;
      i += unitsAt(name, i);
    } else if (pattern[at] === name[i] && pattern[at] !== "*") {
      at++;
      i++;
    } else if (pattern[at] === "*") {
      star = at++;
      resume = i;
    } else if (star !== -1) {
      at = star + 1;
      resume += unitsAt(name, resume);
      i = resume;
    } else return false;
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}

/** Of the character there: beyond the first 65,536 they take two units. */
function unitsAt(text: string, at: number): number {
  return text.codePointAt(at)! > 0xffff ? 2 : 1;
}
