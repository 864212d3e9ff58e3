import type { Files } from "../../platform/platform";

/** As many as an operating system follows in one path. */
const MOST_LINKS = 40;

/**
 * Where paths lead, links followed as the operating system does. What does not exist is taken as it is written, also behind
 * a link that leads nowhere: whoever writes through that one makes what it names.
 */
export class Links {
  readonly #files: Files;
  readonly #made = new Map<string, string>();

  constructor(files: Files) {
    this.#files = files;
  }

  /** A link that will be there by the time of the paths that follow. `path` is one that leads nowhere else. */
  add(path: string, target: string): void {
    this.#made.set(path, target);
  }

  /** `isEntry`: the name at its end is meant, be it a link or not. With a slash behind it, it is what the link leads to. */
  async follow(path: string, isEntry = false): Promise<string> {
    if (!path.startsWith("/")) return path;
    const ahead = path.split("/").reverse();
    let [at, followed] = ["", 0];
    while (ahead.length > 0) {
      const name = ahead.pop()!;
      if (name === "" || name === ".") continue;
      if (name === "..") {
        at = at.slice(0, Math.max(0, at.lastIndexOf("/")));
        continue;
      }
      const target = isEntry && ahead.length === 0 ? null : await this.#targetOf(`${at}/${name}`);
      if (target === null) {
        at += `/${name}`;
        continue;
      }
      if (++followed > MOST_LINKS) return path;
      if (target.startsWith("/")) at = "";
      ahead.push(...target.split("/").reverse());
    }
    return at === "" || path.endsWith("/") ? `${at}/` : at;
  }

  async #targetOf(path: string): Promise<string | null> {
    try {
      return this.#made.get(path) ?? (await this.#files.readLink(path));
    } catch {
      // Whoever cannot look there cannot write there either.
      return null;
    }
  }
}
