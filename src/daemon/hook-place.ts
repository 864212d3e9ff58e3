import { createHash } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { dataFolder } from "../identity/data-folder";
import type { Environment } from "../identity/repository";
import { readPlainFile } from "../platform/node/plain-file";
import { isPrivateFolder, randomHex, SHORT_ENOUGH } from "./place";

/**
 * Where a daemon leaves what hooks run to ask it: in its user's home, and not in the repository. What an agent runs in a sandbox may
 * often write into the Git directory, hooks run outside of the sandbox, and so must what they run.
 */
export interface HookPlace {
  readonly controlDir: string;
  readonly folder: string;
  /** All of its files have this name, and an ending; hooks name it. */
  readonly base: string;
  readonly script: string;
  readonly curl: string;
  /** For plugins: the same as the two in words of theirs. */
  readonly record: string;
  /** The port and token for harnesses that ask over HTTP. Stays: their settings name both. */
  readonly door: string;
  /** When a hook last started a daemon. */
  readonly tried: string;
}

/** Null where there is no home. */
export function hookPlace(
  controlDir: string,
  { env, home }: { readonly env: Environment; readonly home: string | null },
): HookPlace | null {
  const data = dataFolder(env, home);
  if (data === null) return null;
  const folder = path.join(data, "cotenant/daemon");
  // By its place alone: settings may name it before anybody has used the repository.
  const mark = createHash("sha256").update(controlDir).digest("hex").slice(0, 16);
  const base = path.join(folder, mark);
  const at = (ending: string) => `${base}.${ending}`;
  return {
    controlDir,
    folder,
    base,
    script: at("sh"),
    curl: at("curl"),
    record: at("json"),
    door: at("http"),
    tried: at("tried"),
  };
}

/** False where nobody but its user must be able to write, and somebody could: also by moving what it is in. */
export function isSafeForHooks({ folder }: HookPlace): boolean {
  if (!isPrivateFolder(folder)) return false;
  for (let at = fs.realpathSync(folder); at !== path.dirname(at); ) {
    at = path.dirname(at);
    const { uid, mode } = fs.statSync(at);
    const isOthers = uid !== 0 && uid !== process.getuid?.();
    if (isOthers || (mode & 0o1002) === 0o002) return false;
  }
  return true;
}

/** Where the socket of hooks may be: where sandboxes do not reach, and paths are short. Null: nowhere. */
export function guardSocketFolder({ folder }: HookPlace, env: Environment): string | null {
  const runtime = env["XDG_RUNTIME_DIR"];
  const places = [
    ...(runtime !== undefined && path.isAbsolute(runtime) ? [path.join(runtime, "cotenant")] : []),
    folder,
  ];
  const isShort = (place: string) => Buffer.byteLength(place) + SOCKET_NAME <= SHORT_ENOUGH;
  return places.find((place) => isShort(place) && isPrivateFolder(place)) ?? null;
}

/** A name for the socket of hooks; what earlier daemons have left there goes. */
export function guardSocketPath({ base }: HookPlace, folder: string): string {
  const prefix = `${path.basename(base).slice(0, 8)}-`;
  for (const name of fs.readdirSync(folder))
    if (name.startsWith(prefix) && name.endsWith(".g")) fs.rmSync(path.join(folder, name), { force: true });
  return path.join(folder, `${prefix}${randomHex(2)}.g`);
}

/** With the slash before it. */
const SOCKET_NAME = 16;

/**
 * What a daemon left behind that was killed, and whose repository is gone. Never where to ask over HTTP: settings name it, and
 * a repository may come back with the disk that it is on.
 */
export function sweepHookPlace({ folder }: HookPlace): void {
  for (const name of fs.readdirSync(folder)) {
    const mark = /^([0-9a-f]{16})\.json$/.exec(name)?.[1];
    if (mark === undefined || isStillThere(path.join(folder, name))) continue;
    for (const ending of ["sh", "curl", "json", "tried"])
      fs.rmSync(path.join(folder, `${mark}.${ending}`), { force: true });
  }
}

function isStillThere(file: string): boolean {
  try {
    const { control } = JSON.parse(readPlainFile(file)) as { control?: unknown };
    return typeof control !== "string" || fs.existsSync(control);
  } catch {
    return true;
  }
}
