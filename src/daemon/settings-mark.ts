import * as fs from "node:fs";
import * as path from "node:path";
import type { Workspace } from "../coordinator/workspace";
import type { DirectoryWatch } from "../platform/platform";

type MarkedPlace = Pick<Workspace, "repository" | "surroundings">;

/** The files that say how this repository is worked in, and where its remotes are. */
function settingFiles({ repository, surroundings: { env, home } }: MarkedPlace): string[] {
  const config = env["XDG_CONFIG_HOME"] || (home === null ? null : path.join(home, ".config"));
  return [
    path.join(repository.commonDir, "config"),
    path.join(repository.gitDir, "config.worktree"),
    path.join(repository.worktreeRoot, ".cotenant/config.toml"),
    path.join(repository.controlDir, "trust.json"),
    ...(home === null ? [] : [path.join(home, ".gitconfig")]),
    ...(config === null
      ? []
      : ["git/config", "cotenant/config.toml", "cotenant/agent.toml"].map((name) => path.join(config, name))),
    "/etc/cotenant/config.toml",
  ];
}

/** Changes whenever one of them does. */
export function settingsMark(place: MarkedPlace): string {
  return settingFiles(place)
    .map((file) => {
      const stat = fs.statSync(file, { bigint: true, throwIfNoEntry: false });
      return stat === undefined ? "" : `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeNs}`;
    })
    .join("\n");
}

/** A folder that is to come is seen from the one above. */
function nearest(folder: string): string {
  return fs.existsSync(folder) ? folder : nearest(path.dirname(folder));
}

/** Tells of changes by hand, by Git and by other commands. Where nothing can be watched, callers look now and then. */
export class SettingsWatch {
  readonly #place: MarkedPlace;
  readonly #notify: () => void;
  #watches = new Map<string, DirectoryWatch>();
  #isClosed = false;

  constructor(place: MarkedPlace, notify: () => void) {
    this.#place = place;
    this.#notify = notify;
    this.#arm();
  }

  close(): void {
    this.#isClosed = true;
    for (const watch of this.#watches.values()) watch.close();
  }

  /** A folder that has come meanwhile is watched itself: what happens in it is not seen from above. */
  #heard(): void {
    if (this.#isClosed) return;
    this.#notify();
    // What came before it was watched, is looked at now.
    if (this.#arm()) this.#notify();
  }

  /** Whether there is something to watch that was not watched before. */
  #arm(): boolean {
    const { timers } = this.#place.surroundings.platform;
    const wanted = this.#folders();
    for (const [folder, watch] of this.#watches) {
      if (wanted.has(folder)) continue;
      watch.close();
      this.#watches.delete(folder);
    }
    const missing = [...wanted].filter((folder) => !this.#watches.has(folder));
    for (const folder of missing)
      this.#watches.set(
        folder,
        timers.watchDirectory(folder, () => this.#heard()),
      );
    return missing.length > 0;
  }

  #folders(): Set<string> {
    const { repository, surroundings } = this.#place;
    const folders = new Set(settingFiles(this.#place).map((file) => path.dirname(file)));
    // In Git's own directory something happens with every command: what is there is looked at when it is needed.
    folders.delete(repository.commonDir);
    folders.delete(repository.gitDir);
    folders.delete(repository.controlDir);
    folders.delete(surroundings.home ?? "");
    const there = [...folders].map(nearest);
    return new Set(there.filter((folder) => folder !== "/" && folder !== surroundings.home));
  }
}
