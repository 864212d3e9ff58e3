import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { type Git, type GitResult, isCutOff } from "../../platform/git";
import { gitWords } from "../../platform/git-answers";
import { freshSuffix } from "../../platform/hex";
import type { Platform } from "../../platform/platform";
import { type LedgerPlace, makePlace } from "./place";
import { networkFailure, type Transport } from "./transport";

/** What is said to the remote must not depend on how the user likes to push and fetch. */
const NETWORK = [
  "-c",
  "push.gpgSign=false",
  "-c",
  "push.followTags=false",
  "-c",
  "push.recurseSubmodules=no",
  "-c",
  "push.useForceIfIncludes=false",
  "-c",
  "fetch.prune=false",
  "-c",
  "fetch.recurseSubmodules=false",
  "-c",
  "fetch.fsckObjects=true",
  "-c",
  "gc.auto=0",
  "-c",
  "maintenance.auto=false",
];

const PROBE_MS = 5_000;

export interface CopyOptions {
  readonly objectFormat: "sha1" | "sha256";
  readonly timeoutMs: number;
}

/**
 * The bare repository in which this machine keeps what it knows of the ledger. Everything in it can be fetched again:
 * a damaged one is put aside and made anew.
 */
export class LedgerCopy {
  constructor(
    readonly platform: Platform,
    private readonly git: Git,
    readonly place: LedgerPlace,
    readonly transport: Transport,
    readonly options: CopyOptions,
  ) {}

  async exists(): Promise<boolean> {
    return (await this.platform.files.stat(`${this.place.copy}/HEAD`)) !== null;
  }

  /** Makes it where there is none. True when it had to. */
  async ensure(): Promise<boolean> {
    if (await this.exists()) return false;
    await makePlace(this.platform, this.place);
    return this.underLock(async () => {
      if (await this.exists()) return false;
      await this.#putAside();
      await this.#make();
      return true;
    });
  }

  /** Puts a damaged copy aside, and makes a new one. Answers where the old one is. */
  async replace(): Promise<string | null> {
    await makePlace(this.platform, this.place);
    return this.underLock(async () => {
      const aside = await this.#putAside();
      await this.#make();
      return aside;
    });
  }

  async #putAside(): Promise<string | null> {
    const { files, clock } = this.platform;
    if ((await files.lstat(this.place.copy)) === null) return null;
    const aside = `${this.place.copy}.broken-${new Date(clock.wallMs()).toISOString().replace(/[:.]/g, "-")}`;
    await files.rename(this.place.copy, aside);
    return aside;
  }

  /** Beside its place first: nobody ever finds half of one. */
  async #make(): Promise<void> {
    const { files, random } = this.platform;
    const beside = `${this.place.copy}.new-${freshSuffix(random)}`;
    try {
      await this.#initialise(beside);
      await files.rename(beside, this.place.copy);
      await files.syncDirectory(this.place.directory);
    } catch (error) {
      await removeTree(this.platform, beside);
      throw fileFailure(error, "making the ledger's copy", this.place.copy);
    }
  }

  async #initialise(path: string): Promise<void> {
    const { objectFormat } = this.options;
    const init = ["init", "--quiet", "--bare", "--template=", `--object-format=${objectFormat}`, "--", path];
    const cwd = this.place.directory;
    orFail(await this.git.run(init, { cwd }), "making the ledger's copy");
    // Claims are commits without files.
    const empty = ["--git-dir", path, "hash-object", "-w", "-t", "tree", "--stdin"];
    orFail(await this.git.run(empty, { cwd, input: "" }), "making the ledger's copy");
  }

  /** For what must not happen twice at once on this machine. Never held over the network. */
  async underLock<T>(act: () => Promise<T>): Promise<T> {
    const { files, locks } = this.platform;
    const fd = await files.open(this.place.lock, "update-or-create", 0o600);
    try {
      await locks.lock(fd);
      try {
        return await act();
      } finally {
        await locks.unlock(fd);
      }
    } finally {
      await files.close(fd);
    }
  }

  /** A command that needs nothing but the copy. */
  async run(
    args: readonly string[],
    input: string | Uint8Array = "",
    env: Record<string, string> = {},
  ): Promise<GitResult> {
    return this.git.run(["--git-dir", this.place.copy, "-c", "gc.auto=0", ...args], {
      cwd: this.place.directory,
      input,
      env,
      timeoutMs: 60_000,
    });
  }

  /** The same, where anything but success means that the copy is damaged. */
  async text(
    args: readonly string[],
    input: string | Uint8Array = "",
    env: Record<string, string> = {},
  ): Promise<string> {
    const result = await this.run(args, input, env);
    if (result.status !== 0) throw new DamagedCopy(this.place.copy, result.stderr);
    return new TextDecoder().decode(result.stdout);
  }

  /** A command that talks to the remote, within the time that is allowed for it. */
  async talk(args: readonly string[], input = ""): Promise<GitResult> {
    const { cwd, env } = this.transport;
    const { timeoutMs } = this.options;
    try {
      const all = ["--git-dir", this.place.copy, ...NETWORK, ...args];
      return await this.git.run(all, { cwd, env, input, timeoutMs });
    } catch (error) {
      // The other end hung up while Git was speaking: that is what a remote that cannot be reached looks like, too.
      if (!isCutOff(error) || error.data["signal"] !== "SIGPIPE") throw error;
      return { status: -1, stdout: new Uint8Array(), stderr: error.message };
    }
  }

  /** Whether the remote answers, also where there is no copy yet. For people: it does not wait as long as work may. */
  async probe(ref: string): Promise<GitResult> {
    const { cwd, env, remote } = this.transport;
    const timeoutMs = Math.min(PROBE_MS, this.options.timeoutMs);
    return this.git.run(["ls-remote", "--quiet", "--end-of-options", remote, ref], { cwd, env, timeoutMs });
  }

  failure(doing: string, result: GitResult): CotenantError {
    return networkFailure(this.transport, doing, result);
  }
}

/** The copy cannot be used as it is. It is made anew, and what was asked is asked again. */
export class DamagedCopy extends CotenantError {
  constructor(path: string, said: string) {
    super("E_GIT", `the ledger's copy ${path} is damaged: ${printable(said.trim(), 300)}`, {
      hint: "run 'cotenant sync': it puts the damaged copy aside, and makes a new one",
      data: { path },
    });
  }
}

/** Git's words for a repository that is not whole. */
const DAMAGE =
  /not a git repository|bad object|corrupt|missing (?:blob|tree|commit|object)|unable to read (?:tree|sha1|[0-9a-f]{40})|does not point to a valid object|inflate|loose object|bad config|invalid (?:sha1|object|HEAD|gitfile)|unexpected line in|failed to (?:read|traverse)|error in object|packfile|expected format|broken ref|fatal: bad /i;

export function looksDamaged(stderr: string): boolean {
  return DAMAGE.test(stderr);
}

function orFail(result: GitResult, doing: string): void {
  if (result.status === 0) return;
  const said = gitWords(result.stderr);
  if (/permission denied/i.test(said))
    throw new CotenantError("E_PERMISSION", `no permission for ${doing}: ${said}`);
  if (/no space left|quota/i.test(said))
    throw new CotenantError("E_DISK", `the disk is full: ${doing} failed (${said})`);
  throw new CotenantError("E_GIT", `${doing} failed: ${said}`);
}

/** A directory of our own with everything in it. */
export async function removeTree(platform: Platform, path: string): Promise<void> {
  const { files } = platform;
  const stat = await files.lstat(path);
  if (stat === null) return;
  if (stat.kind !== "directory") {
    await files.unlink(path);
    return;
  }
  for (const name of (await files.readDirectory(path)) ?? []) await removeTree(platform, `${path}/${name}`);
  await files.removeDirectory(path);
}
