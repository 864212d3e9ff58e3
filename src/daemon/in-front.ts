import type { Coordinator } from "../coordinator/contract";
import type { Workspace } from "../coordinator/workspace";
import { ledgerInFront } from "../ledger/in-front";

/**
 * What stands in front of the local engine: the ledger, where claims are shared, and the daemon, where one is running. `program`
 * starts one where the settings ask for that; this call goes without it all the same.
 */
export async function engineInFront(
  workspace: Workspace,
  program: string | null = null,
): Promise<Coordinator | null> {
  const ledger = await ledgerInFront(workspace);
  const { files } = workspace.surroundings.platform;
  const hasPlace = (await files.stat(`${workspace.repository.controlDir}/daemon`)) !== null;
  const starts = program !== null && (await isWanted(workspace));
  // Mostly there is none, and then nothing of it is loaded.
  if (!hasPlace && !starts) return ledger;
  const { daemonEngine, startIfNone } = await import("./engine");
  if (starts) await startIfNone(workspace, program);
  return hasPlace ? (daemonEngine(workspace, ledger ?? workspace.coordinator) ?? ledger) : ledger;
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
