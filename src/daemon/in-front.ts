import type { Coordinator } from "../coordinator/contract";
import type { FolderWatcher } from "../coordinator/watched";
import type { MissedDaemon, Workspace, WorkspaceFlags } from "../coordinator/workspace";
import { ledgerInFront } from "../features/ledger/in-front";

/**
 * What stands in front of the local engine: the ledger, where claims are shared, and the daemon, where one is running. `program`
 * starts one where the settings ask for that; this call goes without it all the same.
 */
export async function engineInFront(
  workspace: Workspace,
  program: string | null = null,
): Promise<Coordinator | null> {
  const ledger = await ledgerInFront(workspace);
  if (isUnwanted(workspace)) return ledger;
  const hasPlace = await hasDaemonPlace(workspace);
  const starts = program !== null && (await isWanted(workspace));
  // Mostly there is none, and then nothing of it is loaded.
  if (!hasPlace && !starts) return ledger;
  const { daemonEngine, startIfNone } = await import("./engine");
  if (starts) await startIfNone(workspace, program);
  return hasPlace ? (daemonEngine(workspace, ledger ?? workspace.coordinator) ?? ledger) : ledger;
}

/** Files that are looked at in less time than a connection takes. */
const WORTH_ASKING_FROM = 500;

/** Who knows which issues have changed; null where no daemon has ever run. */
export async function watcherInFront(workspace: Workspace): Promise<FolderWatcher | null> {
  if (isUnwanted(workspace) || !(await hasDaemonPlace(workspace))) return null;
  let opened: Promise<Pick<FolderWatcher, "ask" | "tell">> | null = null;
  const watcher = () => {
    opened ??= import("./folder-watcher").then(({ daemonFolderWatcher }) => daemonFolderWatcher(workspace));
    return opened;
  };
  return {
    worthFrom: WORTH_ASKING_FROM,
    ask: async (question) => (await watcher()).ask(question),
    tell: async (question, watched, cache) => (await watcher()).tell(question, watched, cache),
  };
}

/** What somebody counts on a daemon for, while none is running. Loaded only where one has ever run, or is wanted. */
export async function missedDaemonIn(workspace: Workspace): Promise<MissedDaemon | null> {
  if (!(await hasDaemonPlace(workspace)) && !workspace.config.values["coordination.auto_renew_leases"])
    return null;
  return (await import("./missed")).missedDaemon(workspace);
}

/** The log from the line after `after` on: told by the daemon where one runs, else read here. */
export const followLogInFront: NonNullable<WorkspaceFlags["followLog"]> = async (...request) =>
  (await import("./log-follower")).followLog(...request);

function isUnwanted({ surroundings }: Workspace): boolean {
  return (surroundings.env["COTENANT_NO_DAEMON"] ?? "") !== "";
}

async function hasDaemonPlace({ surroundings, repository }: Workspace): Promise<boolean> {
  return (await surroundings.platform.files.stat(`${repository.controlDir}/daemon`)) !== null;
}

/** Which setting has commands start one; null where none does, or this very call says no. */
export async function startedBy(workspace: Workspace): Promise<string | null> {
  if (isUnwanted(workspace) || !(await isWanted(workspace))) return null;
  return workspace.config.values["daemon.autostart"] ? "daemon.autostart" : "behavior.auto_heartbeat";
}

/** `daemon.autostart`, or `behavior.auto_heartbeat` of the user's own agent.toml, unless this very call says no. */
async function isWanted({ config, surroundings }: Workspace): Promise<boolean> {
  if (config.values["daemon.autostart"]) return true;
  if (config.origin("daemon.autostart").source === "environment") return false;
  const { readAgentFile } = await import("../config/agent-file");
  try {
    return (await readAgentFile(surroundings))?.autoHeartbeat === true;
  } catch {
    // Whoever needs to know who is asking says what is wrong with it.
    return false;
  }
}
