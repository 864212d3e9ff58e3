import { CotenantError } from "../errors/cotenant-error";
import type { Environment, Repository } from "../identity/repository";
import type { Platform } from "../platform/platform";
import { layoutOf } from "../store/layout";

/** Locks cannot be trusted there: refused, unless somebody has said that it is meant. */
export async function refuseNetworkFileSystem(
  { platform, env }: { readonly platform: Platform; readonly env: Environment },
  { commonDir, controlDir }: Repository,
): Promise<void> {
  const { files } = platform;
  const name = await files.networkFileSystem(commonDir);
  if (name === null || /^(1|true|yes|on)$/i.test(env["COTENANT_ALLOW_NETWORK_FS"] ?? "")) return;
  if ((await files.stat(layoutOf(controlDir).allowNetwork)) !== null) return;
  throw new CotenantError(
    "E_NETWORK_FS",
    `${commonDir} is on a network or pass-through file system (${name})`,
    { data: { path: commonDir, file_system: name } },
  );
}
