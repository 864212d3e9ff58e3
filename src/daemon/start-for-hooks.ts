import * as fs from "node:fs";
import type { World } from "../features/guard/world";
import { findRepository } from "../identity/repository";
import { hookPlace } from "./hook-place";
import { launch } from "./life";
import { daemonPlace, processOf, readRecord } from "./place";

/** One that cannot start is not tried by every hook. */
const TRY_EVERY_MS = 60_000;

/**
 * For a hook that was to ask the daemon and found none: whoever comes next has it. `base` is the name of the daemon's files, as the
 * hook's line has it. Never the reason why something fails, and only in the repository that the line is of.
 */
export async function startForHooks(
  base: string,
  program: string,
  { platform, git, env, home, cwd }: Pick<World, "platform" | "git" | "env" | "home" | "cwd">,
): Promise<void> {
  try {
    if (/^(?:0|false|no|off)$/i.test(env["COTENANT_DAEMON_AUTOSTART"] ?? "")) return;
    if ((env["COTENANT_NO_DAEMON"] ?? "") !== "") return;
    const { controlDir } = await findRepository(platform, cwd, {}, git);
    const hooks = hookPlace(controlDir, { env, home });
    if (hooks?.base !== base) return;
    const { processes } = platform;
    const record = readRecord(daemonPlace(controlDir));
    if (record !== null && (await processes.liveness(processOf(record, processes.self()))) === "alive")
      return;
    if (!wasTried(hooks.folder, hooks.tried)) launch(program, { cwd, env });
  } catch {
    // Everything works without it.
  }
}

function wasTried(folder: string, mark: string): boolean {
  const stat = fs.statSync(mark, { throwIfNoEntry: false });
  if (stat !== undefined && Math.abs(Date.now() - stat.mtimeMs) < TRY_EVERY_MS) return true;
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  fs.writeFileSync(mark, "", { mode: 0o600 });
  return false;
}
