import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { Overtaken } from "../../errors/overtaken";
import type { ErrorCode } from "../../errors/registry";
import { below, joinPath, nameIn, parentOf } from "../../identity/path-text";
import { printable } from "../../kernel/ids";
import { fromBinary, toBinary } from "../../platform/binary-text";
import type { Git } from "../../platform/git";
import type { Later, Platform } from "../../platform/platform";
import { replaceFile } from "../../platform/replace-file";

/** Where cotenant is installed. */
export interface Installed {
  readonly node: string;
  readonly program: string;
}

/** What our part of a file starts. Null in files that are committed: other machines have other paths. */
export type Program = Installed | null;

/** Nobody's hook, and nobody's settings, are longer: what is longer is not read. */
export const LONGEST = 1024 * 1024;

/** Why nothing is written, and what to do instead. */
export interface Objection {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
  readonly path: string | null;
}

export function isObjection(value: object | null): value is Objection {
  return value !== null && "code" in value;
}

/** The plan, or what speaks against it as the error that whoever asked for it gets. */
export function unlessObjected<T extends object>(
  plan: T | Objection,
  data: Readonly<Record<string, unknown>> = {},
): T {
  if (!isObjection(plan)) return plan;
  const { code, message, hint, path } = plan;
  const where = path === null ? {} : { path };
  throw new CotenantError(code, printable(message, 1_500), { hint, data: { ...where, ...data } });
}

/** A file that keeps what is ours, and why. */
export interface Left {
  readonly path: string;
  readonly why: string;
}

/** A sort of file that belongs to others and gets a part of ours, such as a hook. */
export interface FileKind {
  /** For whoever is told that it failed. */
  readonly doing: string;
  /** `binary`: one character for each byte, whatever they mean. */
  readonly text: "binary" | "utf-8";
}

const UNFINISHED = /^(.+)\.new-[0-9a-f]{12}$/;
/** A younger one may have its writer still. */
const UNFINISHED_MS = 60_000;

/** Writes into files of others. Each is as before or as planned at every instant, and stays so when the power fails. */
export class OthersFiles {
  readonly #platform: Platform;
  readonly #kind: FileKind;

  constructor(platform: Platform, kind: FileKind) {
    this.#platform = platform;
    this.#kind = kind;
  }

  async attempt(path: string, act: () => Later<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      throw fileFailure(error, this.#kind.doing, path);
    }
  }

  async read(path: string): Promise<string | null> {
    const bytes = await this.#platform.files.readFile(path);
    if (bytes === null) return null;
    return this.#kind.text === "binary"
      ? toBinary(bytes)
      : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }

  /** Somebody else may be writing there: theirs is never lost by ours. */
  async compare(path: string, was: string | null): Promise<void> {
    if ((await this.read(path)) !== was) throw new Overtaken(path);
  }

  replace(path: string, text: string, mode: number): Promise<void> {
    const content = this.#kind.text === "binary" ? fromBinary(text) : text;
    return replaceFile(this.#platform, path, content, mode & 0o777);
  }

  async remove(path: string): Promise<void> {
    await this.#platform.files.unlink(path);
    await this.#platform.files.syncDirectory(parentOf(path) ?? "/");
  }

  async makeDirectories(path: string, mode: number): Promise<void> {
    const { files } = this.#platform;
    if ((await files.stat(path)) !== null) return;
    const above = parentOf(path);
    if (above !== null) await this.makeDirectories(above, mode);
    await this.attempt(path, () => files.makeDirectory(path, mode));
  }

  /** What a writer that was killed has left beside this file. */
  clearBeside(path: string): Promise<void> {
    return clearUnfinished(this.#platform, parentOf(path) ?? "/", (name) => name === nameIn(path));
  }
}

/** Files of a writer that was killed, by the name that they were to get. */
export async function clearUnfinished(
  { files, clock }: Platform,
  directory: string,
  isOurs: (name: string) => boolean,
  recentMs = UNFINISHED_MS,
): Promise<void> {
  for (const entry of (await files.readDirectory(directory)) ?? []) {
    const [, name] = UNFINISHED.exec(entry) ?? [];
    if (name === undefined || !isOurs(name)) continue;
    const path = joinPath(directory, entry);
    const mtimeMs = (await files.lstat(path))?.mtimeMs ?? Number.POSITIVE_INFINITY;
    if (mtimeMs < clock.wallMs() - recentMs) await files.unlink(path);
  }
}

/**
 * A record of what was put where. What cannot be understood is as good as none: nothing is decided by it. `isOthers`: nor by
 * one that another user keeps from us.
 */
export async function readDocument(
  { files }: Platform,
  path: string,
  { doing, isOthers = false }: { readonly doing: string; readonly isOthers?: boolean },
): Promise<Readonly<Record<string, unknown>> | null> {
  try {
    const stat = await files.lstat(path);
    if (stat === null || stat.kind !== "file" || stat.size > LONGEST) return null;
    const document: unknown = JSON.parse(
      new TextDecoder().decode((await files.readFile(path)) ?? new Uint8Array()),
    );
    return typeof document === "object" ? (document as Readonly<Record<string, unknown>> | null) : null;
  } catch (error) {
    if (error instanceof SyntaxError || (isOthers && (error as { code?: unknown }).code === "EACCES"))
      return null;
    throw fileFailure(error, doing, path);
  }
}

export async function writeDocument(
  platform: Platform,
  path: string,
  document: object,
  { doing, mode }: { readonly doing: string; readonly mode: number },
): Promise<void> {
  try {
    await replaceFile(platform, path, `${JSON.stringify(document, null, 2)}\n`, mode);
  } catch (error) {
    throw fileFailure(error, doing, path);
  }
}

/** What Git makes of a file: it has it, would take it with the next `git add .`, or passes it over. */
export type Standing = "tracked" | "plain" | "ignored";

/** Of those of the files that are in this worktree. Where Git fails and need not know, they are plain. */
export async function standingsOf(
  git: Git,
  { root, gitDir }: { readonly root: string; readonly gitDir: string },
  paths: readonly string[],
  mustKnow = true,
): Promise<Map<string, Standing>> {
  const inside = paths.flatMap((path) => {
    const name = below(path, root);
    return name === null || name === "" ? [] : [{ path, name }];
  });
  if (inside.length === 0) return new Map();
  const ask = async (args: readonly string[], input: string, fine: readonly number[]) => {
    const env = { GIT_DIR: gitDir, GIT_WORK_TREE: root };
    const { status, stdout, stderr } = await git.run(args, { cwd: root, env, input });
    if (mustKnow && !fine.includes(status))
      throw new CotenantError(
        "E_GIT",
        `git ${args[0]} failed with status ${status}: ${stderr.slice(0, 200)}`,
      );
    return new Set(new TextDecoder().decode(stdout).split("\0"));
  };
  const names = inside.map(({ name }) => name);
  const tracked = await ask(["--literal-pathspecs", "ls-files", "-z", "--", ...names], "", [0]);
  const input = names.map((name) => `${name}\0`).join("");
  const ignored = await ask(["check-ignore", "-z", "--stdin"], input, [0, 1]);
  const standing = (name: string) =>
    tracked.has(name) ? "tracked" : ignored.has(name) ? "ignored" : "plain";
  return new Map(inside.map(({ path, name }) => [path, standing(name)]));
}
