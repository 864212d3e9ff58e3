import { CotenantError } from "../errors/cotenant-error";
import { contentOf, packedRef } from "../identity/head-commit";
import { printable } from "../kernel/ids";
import type { Git, GitProcess, LastingGit } from "../platform/git";
import { gitFailed, gitWords } from "../platform/git-answers";
import type { Platform, ProcessIdentity } from "../platform/platform";
import { isObjectId, noObject, type ObjectFormat, type ObjectId } from "./object-name";

export interface RefPlace {
  readonly worktreeRoot: string;
  readonly commonDir: string;
  readonly config: { readonly objectFormat: ObjectFormat; readonly refFormat: "files" | "reftable" };
}

/** Null where there is no such ref; `target` where it only stands for another one. */
export type RefValue = { readonly oid: ObjectId } | { readonly target: string } | null;

/** What a shared ref says, by its full name. From Git's files where it keeps them as files, because Git costs a start. */
export async function readRef(platform: Platform, git: Git, place: RefPlace, ref: string): Promise<RefValue> {
  return place.config.refFormat === "files" ? readRefFile(platform, place, ref) : askGit(git, place, ref);
}

/** The same, where Git keeps refs as files. */
export async function readRefFile(
  platform: Platform,
  { commonDir, config }: Omit<RefPlace, "worktreeRoot">,
  ref: string,
): Promise<RefValue> {
  const text = await contentOf(platform, `${commonDir}/${ref}`);
  if (text === null) {
    const oid = await packedRef(platform, commonDir, ref);
    return oid === null ? null : { oid };
  }
  const target = /^ref:\s*(\S+)$/.exec(text)?.[1];
  if (target !== undefined) return { target };
  if (isObjectId(config.objectFormat, text)) return { oid: text };
  throw new CotenantError("E_GIT", `${printable(ref)} is damaged: its file names no object`, {
    hint: "'git fsck' says what is damaged; 'git reflog' may know where it was",
    data: { ref },
  });
}

async function askGit(git: Git, { worktreeRoot, config }: RefPlace, ref: string): Promise<RefValue> {
  const cwd = worktreeRoot;
  const symbolic = await git.run(["symbolic-ref", "--quiet", "--end-of-options", ref], { cwd });
  if (symbolic.status === 0) return { target: new TextDecoder().decode(symbolic.stdout).trim() };
  const { status, stdout, stderr } = await git.run(["show-ref", "--verify", "--hash", "--", ref], { cwd });
  const oid = new TextDecoder().decode(stdout).trim();
  if (status === 0 && isObjectId(config.objectFormat, oid)) return { oid };
  if (/not a valid ref/.test(stderr)) return null;
  throw gitFailed(`Git cannot read ${printable(ref)}`, stderr, { ref });
}

export interface RefUpdate {
  readonly ref: string;
  readonly next: ObjectId;
  /** Null: it must not exist. */
  readonly previous: ObjectId | null;
}

/** The ref is not where it should be, or somebody else is changing it right now. */
export class RefMoved extends Error {
  readonly isBusy: boolean;

  constructor(said: string, isBusy: boolean) {
    super(said);
    this.isBusy = isBusy;
  }
}

/** Git was ended before it could say anything: it may have left a lock behind. */
export class RefWriterLost extends Error {}

/**
 * One Git that changes refs: prepared first, which checks the old values and locks the refs, then committed or given up.
 * It is started before it is needed, because whoever prepares has to say beforehand which process may commit.
 */
export class RefWriter {
  #process: GitProcess | null = null;
  /** Who it is, as long as it has not ended: nobody else gets its number before we have heard of its end. */
  #identity: { readonly of: GitProcess; readonly identity: ProcessIdentity } | null = null;
  #isPrepared = false;
  /** Directories of refs whose own names are on the disk. */
  readonly #known = new Set<string>();
  /** What went wrong last, for people. */
  lastWords = "";

  /** `reason` is what the reflog says. */
  constructor(
    private readonly platform: Platform,
    private readonly git: LastingGit,
    private readonly place: RefPlace,
    private readonly reason: string,
  ) {}

  get isRunning(): boolean {
    return this.#process !== null;
  }

  /** `inherit`: see `GitProcessOptions`. Null where it ended again at once. */
  async start(inherit: readonly number[]): Promise<ProcessIdentity | null> {
    const args = ["-c", "core.fsync=loose-object,reference", "-c", "core.filesRefLockTimeout=1000"];
    if (this.#process?.isOver === true) await this.close();
    this.#process ??= this.git.start([...args, "update-ref", "-m", this.reason, "--stdin", "-z"], {
      cwd: this.place.worktreeRoot,
      inherit,
      timeoutMs: 30_000,
    });
    const process = this.#process;
    if (this.#identity?.of === process) return this.#identity.identity;
    const identity = process.pid === null ? null : await this.platform.processes.identify(process.pid);
    if (identity !== null) this.#identity = { of: process, identity };
    return identity;
  }

  /** Throws `RefMoved` where a ref has another value, or is being changed, and `RefWriterLost` where Git was killed. */
  async prepare(updates: readonly RefUpdate[]): Promise<void> {
    const process = this.#running();
    const none = noObject(this.place.config.objectFormat);
    let text = "start\0";
    // Never through a symbolic ref: the name that was checked is the name that changes.
    for (const { ref, next, previous } of updates)
      text += `option no-deref\0update ${ref}\0${next}\0${previous ?? none}\0`;
    process.write(`${text}prepare\0`);
    this.#isPrepared = true;
    await this.#expect("start: ok");
    await this.#expect("prepare: ok");
  }

  /** Whether Git says that it was done. Where it says nothing, only the refs themselves know. */
  async commit(): Promise<boolean> {
    this.#running().write("commit\0");
    this.#isPrepared = false;
    try {
      await this.#expect("commit: ok");
      return true;
    } catch (error) {
      this.lastWords = printable((error as Error).message, 300);
      return false;
    }
  }

  /** Lets go of what is prepared, if anything is. */
  async abort(): Promise<void> {
    if (this.#process === null || !this.#isPrepared) return;
    this.#process.write("abort\0");
    this.#isPrepared = false;
    await this.#expect("abort: ok");
  }

  /** On the disk when this returns. */
  async sync(refs: readonly string[]): Promise<void> {
    await syncRefs(this.platform, this.place, refs, this.#known);
    for (const ref of refs) this.#known.add(ref.slice(0, ref.lastIndexOf("/")));
  }

  /** Ends it; what is prepared is given up. */
  async close(): Promise<void> {
    const process = this.#process;
    this.#process = null;
    this.#isPrepared = false;
    await process?.end();
  }

  #running(): GitProcess {
    if (this.#process === null) throw new Error("no Git to change refs with was started");
    return this.#process;
  }

  async #expect(words: string): Promise<void> {
    const process = this.#running();
    let line: string | null = null;
    try {
      line = await process.readLine();
    } catch (error) {
      this.#process = null;
      this.#isPrepared = false;
      throw new RefWriterLost(String(error));
    }
    if (line === words) return;
    // It ends as soon as anything is wrong.
    this.#process = null;
    this.#isPrepared = false;
    const { stderr } = await process.end();
    throw refusal(stderr, line);
  }
}

/** On the disk when this returns: the refs' own directories, and those above, which may be new (PROTOCOL 21). */
export async function syncRefs(
  { files }: Platform,
  { commonDir, config }: RefPlace,
  refs: readonly string[],
  known: ReadonlySet<string> = new Set(),
): Promise<void> {
  if (config.refFormat !== "files") return files.syncDirectory(`${commonDir}/reftable`);
  const directories = new Set<string>();
  for (const ref of refs) {
    const own = ref.slice(0, ref.lastIndexOf("/"));
    directories.add(`${commonDir}/${own}`);
    // Once they are on the disk they stay there: what is in them is looked after by whoever puts it there.
    if (known.has(own)) continue;
    for (let end = own.lastIndexOf("/"); end !== -1; end = own.lastIndexOf("/", end - 1))
      directories.add(`${commonDir}/${own.slice(0, end)}`);
  }
  const there: string[] = [];
  for (const directory of directories) if ((await files.stat(directory)) !== null) there.push(directory);
  await files.syncAll([], there);
}

function refusal(stderr: string, line: string | null): Error {
  if (stderr.trim() === "" && line === null) return new RefWriterLost("it ended without a word");
  const said = gitWords(stderr.trim() || (line ?? ""));
  const isBusy = /Unable to create '[^']*\.lock': File exists/.test(stderr);
  const isMoved =
    /is at [0-9a-f]+ but expected|reference already exists|unable to resolve reference|reference is missing/.test(
      stderr,
    );
  if (isBusy || isMoved) return new RefMoved(said, isBusy);
  return new CotenantError("E_GIT", `Git refused to change a ref: ${said}`);
}
