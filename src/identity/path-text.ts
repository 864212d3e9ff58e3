/**
 * Absolute paths as text, with `/` between names: the platform speaks so on every system. Nothing here looks
 * at a disk.
 */

export function joinPath(directory: string, name: string): string {
  return directory.endsWith("/") ? directory + name : `${directory}/${name}`;
}

/** The directory above, or null at the top. */
export function parentOf(path: string): string | null {
  const slash = path.lastIndexOf("/");
  if (slash === -1 || path === "/") return null;
  return slash === 0 ? "/" : path.slice(0, slash);
}

export function nameIn(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function isAbsolute(text: string): boolean {
  return text.startsWith("/") || /^[A-Za-z]:[\\/]/.test(text);
}

/** `name` as seen from `directory`: itself when it is absolute. Not normalised. */
export function resolveFrom(directory: string, name: string): string {
  return isAbsolute(name) ? name : joinPath(directory, name);
}

/** `.` and `..` taken out, as text: the path need not exist yet. */
export function normalPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === "..") parts.pop();
    else parts.push(part);
  }
  return `/${parts.join("/")}`;
}

/** What is left of `path` below `directory`: "" for the directory itself, null when it is not inside. */
export function below(path: string, directory: string): string | null {
  if (path === directory) return "";
  const prefix = directory.endsWith("/") ? directory : `${directory}/`;
  return path.startsWith(prefix) ? path.slice(prefix.length) : null;
}

const decoder = new TextDecoder();

/** Git's own small files are read as UTF-8; bytes that are not become a path that leads nowhere. */
export function decode(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}
