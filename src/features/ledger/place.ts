import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { isAbsolute, joinPath, nameIn, parentOf } from "../../identity/path-text";
import type { Environment } from "../../identity/repository";
import type { Files, Platform } from "../../platform/platform";
import { withoutPassword } from "./transport";

/** Where this machine keeps its copy of one remote's ledger, for all clones of it. */
export interface LedgerPlace {
  readonly directory: string;
  /** The bare repository. */
  readonly copy: string;
  readonly state: string;
  readonly lock: string;
  readonly backups: string;
  /** What people should know of it. */
  readonly warnings: readonly string[];
}

export interface PlaceQuestion {
  readonly platform: Platform;
  readonly env: Environment;
  readonly home: string | null;
  /** `sync.global_path_override`. */
  readonly override: string | null;
  readonly url: string;
  readonly root: string;
}

const DIRECTORY_MODE = 0o700;

export async function ledgerPlace(question: PlaceQuestion): Promise<LedgerPlace> {
  const { platform, root, url } = question;
  const address = await wholeAddress(platform, root, url);
  const { name, isChanged } = repositoryName(address);
  const hash = platform.digest.sha256(withoutPassword(address)).slice(0, 8);
  const directory = joinPath(dataDirectory(question), `${name}-${hash}`);
  const warnings = isChanged
    ? [`the remote's name has characters that not every file system takes: its copy is in ${directory}`]
    : [];
  return {
    directory,
    copy: `${directory}/ledger.git`,
    state: `${directory}/state.json`,
    lock: `${directory}/lock`,
    backups: `${directory}/backups`,
    warnings,
  };
}

function dataDirectory({ env, home, override }: PlaceQuestion): string {
  if (override !== null) {
    if (!isAbsolute(override))
      throw new CotenantError("E_CONFIG", `sync.global_path_override must be an absolute path: ${override}`, {
        data: { setting: "sync.global_path_override" },
      });
    return override;
  }
  const xdg = env["XDG_DATA_HOME"] ?? "";
  // The standard says that a relative one does not count.
  if (isAbsolute(xdg)) return joinPath(xdg, "cotenant");
  if (home === null || home === "")
    throw new CotenantError("E_PERMISSION", "there is no home directory for the ledger's copy", {
      hint: "set XDG_DATA_HOME, or sync.global_path_override, to a directory that can be written",
    });
  return joinPath(home, ".local/share/cotenant");
}

/** The last part of the address, fit for any file system. */
export function repositoryName(url: string): { name: string; isChanged: boolean } {
  const last =
    withoutPassword(url)
      .replace(/[/\\]+$/, "")
      .split(/[/\\:]/)
      .at(-1) ?? "";
  const plain = last.replace(/\.git$/i, "");
  const name = plain
    .normalize("NFC")
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\s*?"<>|%]/gu, "_")
    .replace(/^[.-]+|[. ]+$/g, "_")
    .slice(0, 60);
  return { name: name === "" ? "repository" : name, isChanged: name !== plain && plain !== "" };
}

/** Two clones of one directory may name it differently. */
async function wholeAddress(platform: Platform, root: string, url: string): Promise<string> {
  const isPath = !/^[a-z][a-z0-9+.-]*:\/\//i.test(url) && !/^[^/\\]*:/.test(url);
  const path = isPath ? url : url.startsWith("file://") ? decodeURI(url.slice("file://".length)) : null;
  if (path === null) return url;
  const whole = isAbsolute(path) ? path : joinPath(root, path);
  return oneSpelling(platform.files, await realPathTo(platform, whole.replace(/(?<=.)\/+$/, "")));
}

/** What Git tries for a path, in its order. */
const TRIED = ["/.git", "", ".git/.git", ".git"];

/**
 * Git takes `x`, `x.git` and `x/.git` for one repository where only one of them is: it is called `x` then, and also while
 * nothing is there. Two that stand beside each other keep their names.
 */
async function oneSpelling(files: Files, path: string): Promise<string> {
  const meant = (await takenBy(files, path)) ?? path;
  const plain = meant.replace(/\/\.git$/, "").replace(/(?<=[^/])\.git$/, "");
  const other = await takenBy(files, plain);
  return other === null || other === meant ? plain : meant;
}

async function takenBy(files: Files, path: string): Promise<string | null> {
  for (const end of TRIED)
    if (await isGitDirectory(files, `${path}${end}`)) return files.realPath(`${path}${end}`);
  return null;
}

async function isGitDirectory(files: Files, path: string): Promise<boolean> {
  try {
    return (await files.lstat(`${path}/HEAD`)) !== null && (await files.stat(`${path}/objects`)) !== null;
  } catch {
    // Closed to us: as good as away.
    return false;
  }
}

/** Also of what is not there now, as a disk that is not mounted: its directories are, or those above them. */
async function realPathTo(platform: Platform, path: string): Promise<string> {
  const missing: string[] = [];
  for (let above: string | null = path; above !== null; above = parentOf(above)) {
    const real = await platform.files.realPath(above);
    if (real !== null) return missing.length === 0 ? real : joinPath(real, missing.join("/"));
    missing.unshift(nameIn(above));
  }
  return path;
}

/** Makes the directories on the way; those that it made are gone again when it cannot finish. */
export async function makePlace(platform: Platform, place: LedgerPlace): Promise<void> {
  const made: string[] = [];
  try {
    for (const path of pathsTo(place.directory)) {
      if ((await platform.files.stat(path)) !== null) continue;
      if (await platform.files.makeDirectory(path, DIRECTORY_MODE)) made.push(path);
    }
  } catch (error) {
    for (const path of made.reverse()) await platform.files.removeDirectory(path);
    throw fileFailure(error, "making the ledger's directory", place.directory).with({
      hint: "mend the directory's owner and mode, or choose another with XDG_DATA_HOME or sync.global_path_override",
    });
  }
}

function pathsTo(directory: string): string[] {
  const names = directory.split("/").filter((name) => name !== "");
  return names.map((_, i) => `/${names.slice(0, i + 1).join("/")}`);
}

/** Locks cannot be trusted there, and an offline claim counts on one. */
export async function networkWarning(platform: Platform, place: LedgerPlace): Promise<string | null> {
  const name = await platform.files.networkFileSystem(place.directory);
  return name === null
    ? null
    : `${place.directory} is on a network file system (${name}): choose a local one with XDG_DATA_HOME or sync.global_path_override`;
}
