import type { Environment } from "./repository";

/** Where programs keep what is the user's own; null where there is no home. */
export function dataFolder(env: Environment, home: string | null): string | null {
  const xdg = env["XDG_DATA_HOME"];
  if (xdg?.startsWith("/")) return xdg;
  return home === null || home === "" ? null : `${home}/.local/share`;
}
