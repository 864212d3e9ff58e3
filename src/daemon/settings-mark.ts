import * as fs from "node:fs";
import * as path from "node:path";
import type { Workspace } from "../coordinator/workspace";
import type { DirectoryWatch } from "../platform/platform";

type Place = Pick<Workspace, "repository" | "surroundings">;

/** The files that say how this repository is worked in, and where its remotes are. */
function settingFiles({ repository, surroundings: { env, home } }: Place): string[] {
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
export function settingsMark(place: Place): string {
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
  readonly #watches: readonly DirectoryWatch[];

  constructor(place: Place, notify: () => void) {
    const folders = new Set(settingFiles(place).map((file) => path.dirname(file)));
    // In Git's own directory something happens with every command: what is there is looked at when it is needed.
    folders.delete(place.repository.commonDir);
    folders.delete(place.repository.gitDir);
    folders.delete(place.repository.controlDir);
    folders.delete(place.surroundings.home ?? "");
    this.#watches = [...new Set([...folders].map(nearest))]
      .filter((folder) => folder !== "/" && folder !== place.surroundings.home)
      .map((folder) => place.surroundings.platform.timers.watchDirectory(folder, notify));
  }

  close(): void {
    for (const watch of this.#watches) watch.close();
  }
}
