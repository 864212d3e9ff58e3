import { join } from "node:path";

/** What children may see of the machine. No GIT_*, no COTENANT_*, no harness's marks, no home of a person's. */
const KEPT = /^(PATH|LD_LIBRARY_PATH|TMPDIR|TEMP|TMP|LANG|TZ|SystemRoot|windir|ComSpec|PATHEXT)$/i;

export function childEnvironment(folder: string): Record<string, string> {
  const home = join(folder, "home");
  const kept = Object.entries(process.env).filter(([name, value]) => KEPT.test(name) && value !== undefined);
  return {
    ...(Object.fromEntries(kept) as Record<string, string>),
    HOME: home,
    USERPROFILE: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    GIT_CONFIG_NOSYSTEM: "1",
  };
}
