import { CotenantError, policyError } from "../../errors/cotenant-error";
import { toByteText } from "../../git/byte-text";
import type { ObjectId } from "../../git/object-name";
import { parentOf } from "../../identity/path-text";
import { listWorktrees, type WorktreeEntry } from "../../identity/worktree-list";
import { printable, type WorktreeId } from "../../kernel/ids";
import type { Commands } from "../../platform/commands";
import type { Descriptor } from "../../platform/platform";
import { modesFor } from "../../store/layout";
import { makeWorktree } from "../worktrees/construction";
import { defaultPlace } from "../worktrees/names";
import { refusePlace } from "../worktrees/new-worktree";
import { machineOf, quietly, type Yard } from "../worktrees/place";
import { worktreeRecords } from "../worktrees/records";
import { runSetup } from "../worktrees/setup";
import { writerKey } from "../worktrees/writer-lock";
import { checkOutInto, mendScratch } from "./scratch-checkout";

/** A worktree for checks, ours alone until it is given back. */
export interface Scratch {
  readonly worktreeId: WorktreeId;
  readonly root: string;
  readonly gitDir: string;
  /** Held by us and by every check that runs there: nobody else uses the place while one of them is left (PROTOCOL 34). */
  readonly lock: Descriptor;
}

const MOST_SCRATCH = 32;

/** Worktrees that stay between runs, so that what Git ignores in them, such as installed packages, is there already. */
export class ScratchRoom {
  readonly #yard: Yard;
  readonly #commands: Commands;
  readonly #onProgress: (line: string) => void;
  readonly #held = new Map<WorktreeId, Scratch>();
  readonly #free: Scratch[] = [];
  #turn: Promise<unknown> = Promise.resolve();

  constructor(yard: Yard, commands: Commands, onProgress: (line: string) => void) {
    this.#yard = yard;
    this.#commands = commands;
    this.#onProgress = onProgress;
  }

  /** One with this commit checked out, and nothing else but what Git ignores. */
  async with(commit: ObjectId): Promise<Scratch> {
    for (;;) {
      // One after the other: two must not open the same one.
      const turn = this.#turn.then(() => this.#one(commit));
      this.#turn = turn.catch(() => {});
      const scratch = await turn;
      // Where a check has had Git forget it, it is no worktree any more.
      if (!(await mendScratch(this.#yard, scratch))) continue;
      try {
        await checkOutInto(this.#yard, scratch, commit);
        return scratch;
      } catch (error) {
        this.#free.push(scratch);
        throw error;
      }
    }
  }

  /** Whatever checks have done to it, it can be found and used again. */
  async giveBack(scratch: Scratch): Promise<void> {
    try {
      if (await mendScratch(this.#yard, scratch)) this.#free.push(scratch);
    } catch {
      // The verdict of the checks stands; another worktree is made for the next ones.
    }
  }

  async close(): Promise<void> {
    const { files, locks } = machineOf(this.#yard).platform;
    for (const { worktreeId, lock } of this.#held.values()) {
      const key = writerKey(worktreeId);
      await this.#sessionIn(worktreeId)
        .release([{ key, leaseId: null }])
        .catch(() => {});
      await quietly(() => locks.unlock(lock));
      await quietly(() => files.close(lock));
    }
    this.#held.clear();
  }

  async #one(commit: ObjectId): Promise<Scratch> {
    const scratch = this.#free.pop() ?? (await this.#found()) ?? (await this.#made(commit));
    this.#held.set(scratch.worktreeId, scratch);
    return scratch;
  }

  #sessionIn(worktreeId: WorktreeId) {
    return this.#yard.session.elsewhere({ worktreeId, branch: null });
  }

  /** One of an earlier run that nobody uses. */
  async #found(): Promise<Scratch | null> {
    const { platform, git } = machineOf(this.#yard);
    const records = await worktreeRecords(this.#yard.session.coordinator);
    for (const entry of await listWorktrees(platform, git, this.#yard.workspace.repository)) {
      const { worktreeId, exists, branch } = entry;
      if (worktreeId === null || !exists || branch !== null || this.#held.has(worktreeId)) continue;
      if (records.get(worktreeId)?.purpose !== "landing") continue;
      const scratch = await this.#opened(entry, worktreeId);
      if (scratch === null) continue;
      await this.#setUp(scratch, records.get(worktreeId)?.setup ?? null);
      return scratch;
    }
    return null;
  }

  async #made(commit: ObjectId): Promise<Scratch> {
    const { workspace, session } = this.#yard;
    const { config, repository } = workspace;
    if (config.values["worktree.mode"] === "off")
      throw policyError(
        "land.checks need a scratch worktree, and no worktrees are made here",
        "have whoever set worktree.mode = off change it, or set land.checks to nothing",
        { setting: "worktree.mode" },
      );
    const place = await this.#freePlace(
      repository.mainWorktreeRoot ?? parentOf(repository.commonDir) ?? repository.commonDir,
      config.values["worktree.directory"],
    );
    this.#onProgress(`making ${printable(place, 300)} for checks`);
    const { worktreeId } = await makeWorktree(this.#yard, {
      ...{ place, commit, branch: null, isNewBranch: false },
      record: { agentId: session.actor.agentId, issueId: null, snapshotId: null, purpose: "landing" },
      fill: (_, run) =>
        run(["-c", "submodule.recurse=false", "reset", "--hard", "--quiet"], "filling a worktree for checks"),
    });
    const { platform, git } = machineOf(this.#yard);
    const all = await listWorktrees(platform, git, repository);
    const entry = all.find((one) => one.worktreeId === worktreeId);
    const scratch = entry === undefined ? null : await this.#opened(entry, worktreeId);
    if (scratch === null)
      throw new CotenantError(
        "E_STORE_BUSY",
        `${printable(place, 300)} was taken by another process at once`,
        { hint: "run it again" },
      );
    await this.#setUp(scratch, null);
    return scratch;
  }

  async #freePlace(mainRoot: string, configured: string | null): Promise<string> {
    for (let number = 1; number <= MOST_SCRATCH; number++) {
      const place = defaultPlace(mainRoot, configured, `cotenant-land-${number}`);
      if ((await this.#yard.trees.look(toByteText(place))) !== null) continue;
      await refusePlace(this.#yard, place);
      return place;
    }
    throw new CotenantError("E_LIMIT", `${MOST_SCRATCH} worktrees for checks are there, and all are in use`, {
      hint: "see who runs them, and remove those that nobody needs: cotenant worktree list",
    });
  }

  /** Null where another process, or a check that one has left behind, is in it. */
  async #opened({ root, gitDir }: WorktreeEntry, worktreeId: WorktreeId): Promise<Scratch | null> {
    const { workspace } = this.#yard;
    const { files, locks } = machineOf(this.#yard).platform;
    const path = `${workspace.store.layout.locks}/land-${worktreeId.slice(3)}.lock`;
    const { file } = modesFor(workspace.repository.config.sharedRepository);
    const lock = await files.open(path, "update-or-create", file);
    try {
      if (await locks.tryLock(lock)) {
        const key = writerKey(worktreeId);
        const bound = { ttlSecs: 0, bind: "process", reason: "checks of the merge queue" } as const;
        await this.#sessionIn(worktreeId).acquire([{ key, reach: "repository" }], bound);
        return { worktreeId, root, gitDir, lock };
      }
    } catch (error) {
      // Somebody works in it.
      if (!(error instanceof CotenantError) || error.code !== "E_LOCK_CONFLICT") throw error;
    }
    await files.close(lock);
    return null;
  }

  async #setUp({ worktreeId, root }: Scratch, before: string | null): Promise<void> {
    const line = this.#yard.workspace.config.values["worktree.setup"];
    if (line === null || before === "done") return;
    this.#onProgress(`running ${printable(line, 200)} in ${printable(root, 300)}`);
    const end = await runSetup(this.#yard, this.#commands, { worktreeId, root, branch: "" }, line);
    if (end.exitStatus === 0 && !end.timedOut) return;
    throw new CotenantError(
      "E_CHECK_FAILED",
      `worktree.setup failed in ${printable(root, 300)}, so nothing can be checked there: ${printable(end.output.trim().split("\n").at(-1) ?? "", 300)}`,
      { hint: "mend it, and run the queue again", data: { root, exit_status: end.exitStatus } },
    );
  }
}
