import type { Surroundings, Workspace } from "../../coordinator/workspace";
import { dataFolder } from "../../identity/data-folder";
import type { HarnessName } from "../../identity/harness";
import type { Desk } from "./apply";
import { lookAt, type Standing, standingsOf } from "./look";
import type { Found } from "./plan";
import { readRecord, type Shelf } from "./record";
import { type Grounds, type Level, sitesOf } from "./sites";

/** One level of settings, with all that is needed to change them. */
export interface AgentsDesk extends Desk {
  readonly level: Level;
  readonly surroundings: Surroundings;
  readonly grounds: Grounds;
  readonly workspace: Workspace | null;
}

const PRIVATE = { file: 0o600, directory: 0o700 };

/** The settings of this worktree. */
export function projectDesk(workspace: Workspace): AgentsDesk {
  const { surroundings, repository, store } = workspace;
  const { platform, home, env } = surroundings;
  const { worktreeRoot: root, commonDir, controlDir } = repository;
  return {
    level: "project",
    surroundings,
    platform,
    workspace,
    grounds: { root, home, env },
    shelf: { directory: `${controlDir}/agents`, modes: store.options.modes },
    clone: { root, commonDir },
  };
}

/** The user's own. Works outside of any repository. */
export function userDesk(surroundings: Surroundings): AgentsDesk | null {
  const { platform, home, env } = surroundings;
  const data = dataFolder(env, home);
  if (data === null) return null;
  const shelf: Shelf = { directory: `${data}/cotenant/agents`, modes: PRIVATE };
  const grounds = { root: null, home, env };
  return { level: "user", surroundings, platform, workspace: null, grounds, shelf, clone: null };
}

/** Everything that harnesses may have at that level. */
export async function findIn(desk: AgentsDesk, ...harnesses: readonly HarnessName[]): Promise<Found[]> {
  const { platform, grounds, shelf, workspace, surroundings } = desk;
  const looked: Omit<Found, "standing">[] = [];
  for (const site of harnesses.flatMap((harness) => sitesOf(harness, desk.level, grounds)))
    looked.push({
      site,
      file: await lookAt(platform.files, site, grounds.root),
      record: await readRecord(platform, shelf, site.path),
    });
  const known = looked.filter(({ file }) => file.why === null).map(({ file }) => file.path);
  // Git is asked once, for all of them.
  const standings =
    workspace === null
      ? new Map<string, Standing>()
      : await standingsOf(surroundings.git, placeOf(workspace), known);
  return looked.map((one) => ({ ...one, standing: standings.get(one.file.path) ?? null }));
}

function placeOf({ repository }: Workspace): { root: string; gitDir: string } {
  return { root: repository.worktreeRoot, gitDir: repository.gitDir };
}
