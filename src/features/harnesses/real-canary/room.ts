import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Workers outlive their launcher, and background commands their shell. Their home tells whose they are. */
export function killAllWithHome(home: string): void {
  if (process.platform !== "linux") return;
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
    try {
      const isOurs = readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(`HOME=${home}`);
      if (isOurs) process.kill(Number(name), "SIGKILL");
    } catch {
      // It has ended, or is somebody else's.
    }
  }
}

/** Everything that a program sees and leaves behind, in one folder. */
export interface Room {
  readonly folder: string;
  readonly home: string;
  readonly repo: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * What a program needs of a person's environment to be found and loaded. No account, no key, no proxy, no settings; nothing by which
 * a harness or cotenant would take itself for part of a session.
 */
const KEPT =
  /^(?:PATH|LD_LIBRARY_PATH|TZ|VOLTA_HOME|ASDF_DIR|ASDF_DATA_DIR|MISE_DATA_DIR|NVM_DIR|FNM_DIR|BUN_INSTALL|PNPM_HOME)$/;

/** Short: a socket's path has room for a hundred bytes, and programs whose own would be longer put it elsewhere. */
const TEMPORARY = "t";

export function makeRoom(personal: Readonly<Record<string, string | undefined>>): Room {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "cotenant-real-")));
  const [home, repo, temporary] = ["home", "repo", TEMPORARY].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const made of [home, repo, temporary]) mkdirSync(made);
  const kept = Object.entries(personal).filter(([name, value]) => KEPT.test(name) && value !== undefined);
  const env = {
    ...(Object.fromEntries(kept) as Record<string, string>),
    HOME: home,
    TMPDIR: temporary,
    TERM: "dumb",
    LANG: "C.UTF-8",
    GIT_CONFIG_NOSYSTEM: "1",
  };
  return { folder, home, repo, env };
}

export function clearRoom({ folder, home }: Room): void {
  killAllWithHome(home);
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
