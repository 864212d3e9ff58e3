import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { ObjectId } from "../../git/object-name";
import { printable } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";
import { newUlid } from "../../platform/new-ulid";
import { tipOf } from "../publish/base";
import { isAncestor } from "../publish/catching-up";
import { pushUnderClaims } from "../publish/claim-push";
import type { PushResult } from "../publish/push";
import { hasLeft } from "./branch-mover";
import type { LandEntry, Underway } from "./entry";
import { noteLanded, noteUnderway } from "./entry-records";
import { type LandRun, queuedIn } from "./land-run";
import { queuePausedError, queuePauseOf } from "./queue-pause";
import { type Base, baseOf, remoteTip } from "./remote-tip";
import { shownBranch } from "./target";

export interface LandedNow {
  /** Null where the target had all of it already. */
  readonly commit: ObjectId | null;
  readonly isRemoteOnly: boolean;
}

/** "again": the target is elsewhere by now. "left": the entry is not in the queue any more. */
export type Landing = LandedNow | "again" | "left";

/** Brings one entry after the other onto the target: the remote's first, where it is pushed, then the one here. */
export class TargetLander {
  #base: Base | null = null;

  constructor(private readonly landRun: LandRun) {}

  /** Where the target is; and what a lander that died had pushed already has landed. */
  async start(onLanded: (entry: LandEntry, commit: ObjectId, isRemoteOnly: boolean) => void): Promise<Base> {
    const { remote, target, parts } = this.landRun;
    for (const entry of await queuedIn(this.landRun)) {
      const { underway } = entry;
      if (underway === null || underway.ref !== target) continue;
      if (underway.remote !== remote) throw await notAsked(parts.workspace, entry, underway);
      const theirs = await remoteTip(parts.workspace, remote, target);
      if (theirs === null || !(await isAncestor(parts.workspace, underway.commit, theirs))) continue;
      await this.base();
      const landed = await this.#follow(entry, underway.commit);
      onLanded(entry, underway.commit, landed.isRemoteOnly);
    }
    return this.base();
  }

  async base(): Promise<Base> {
    const { parts, target, remote } = this.landRun;
    this.#base = await baseOf(parts.workspace, target, remote);
    return this.#base;
  }

  /** Whether there is anything here that the remote lacks. */
  get isAhead(): boolean {
    const { tip, theirs } = this.#base ?? {};
    return theirs != null && tip !== theirs;
  }

  async refusePaused(): Promise<void> {
    const { parts, target } = this.landRun;
    const pause = await queuePauseOf(parts.workspace, target);
    if (pause !== null) throw queuePausedError(pause);
  }

  /** An entry that the target has already. */
  async contained(entry: LandEntry): Promise<LandedNow | "left"> {
    const { mover, yard, target, remote } = this.landRun;
    const facts = await mover.landedFacts(entry, {
      ...{ commit: null, ref: target, isRemoteOnly: false },
      remote: this.isAhead ? null : remote,
    });
    const isNoted = await noteLanded(yard.session, entry, { ref: target, new: null, contained: true }, facts);
    return isNoted ? { commit: null, isRemoteOnly: false } : "left";
  }

  async land(entry: LandEntry, commit: ObjectId, tip: ObjectId): Promise<Landing> {
    const { remote } = this.landRun;
    return remote === null ? this.#here(entry, commit, tip) : this.#there(entry, commit, remote);
  }

  async #here(entry: LandEntry, commit: ObjectId, tip: ObjectId): Promise<Landing> {
    const { mover, target } = this.landRun;
    const landed = { commit, ref: target, remote: null, isRemoteOnly: false };
    const attempt = await mover.move(entry, { ref: target, old: tip, next: commit }, landed);
    if (attempt.kind === "committed") return { commit, isRemoteOnly: false };
    if (attempt.kind !== "refused") return "again";
    if (hasLeft(attempt.error, entry)) return "again";
    throw attempt.error;
  }

  /** The remote decides. The push is on record before it is made; what became of it can be asked (PROTOCOL 35). */
  async #there(entry: LandEntry, commit: ObjectId, remote: string): Promise<Landing> {
    const { parts, yard, claims, target, tools } = this.landRun;
    await this.refusePaused();
    if (!(await noteUnderway(yard.session, entry, { remote, ref: target, commit }))) return "again";
    await tools.objects.flush();
    const result = await pushUnderClaims(parts.workspace, yard.session, claims, {
      ...{
        remote,
        ref: target,
        commit,
        publishId: newUlid(parts.workspace.surroundings.platform),
        noun: "land",
      },
      expected: this.#base?.theirs ?? null,
    });
    if (result.result === "pushed" || result.result === "verified") {
      const landed = await this.#follow({ ...entry, underway: { remote, ref: target, commit } }, commit);
      this.#base = { ...this.#base!, tip: commit, theirs: commit };
      return landed;
    }
    // A clear answer: nobody has to ask again.
    if (result.result === "failed") await noteUnderway(yard.session, entry, null);
    if (result.result === "failed" && result.code === "E_PUSH_REJECTED" && result.hint === undefined) {
      const theirs = await remoteTip(parts.workspace, remote, target);
      if (theirs !== (this.#base?.theirs ?? null)) return "again";
    }
    throw notPushed(target, remote, result);
  }

  /** The remote has it: the target here goes along if it can. */
  async #follow(entry: LandEntry, commit: ObjectId): Promise<LandedNow> {
    const { mover, target, remote, yard, parts } = this.landRun;
    const { local } = await this.#localNow(commit);
    if (local !== "apart") {
      try {
        const landed = { commit, ref: target, remote, isRemoteOnly: false };
        const attempt = await mover.move(entry, { ref: target, old: local, next: commit }, landed);
        if (attempt.kind === "committed") return { commit, isRemoteOnly: false };
        if (attempt.kind === "refused") parts.workspace.warnings.push(attempt.error.message);
      } catch (error) {
        if (!(error instanceof CotenantError)) throw error;
        parts.workspace.warnings.push(`${error.message}; landed on ${printable(remote ?? "", 100)} only`);
      }
    }
    const facts = await mover.landedFacts(entry, { commit, ref: target, remote, isRemoteOnly: true });
    const payload = { ref: target, new: commit, remote, remote_only: true };
    // Also where somebody has taken it out meanwhile: a push is not called back.
    await noteLanded(yard.session, entry, payload, facts);
    return { commit, isRemoteOnly: true };
  }

  async #localNow(commit: ObjectId): Promise<{ readonly local: ObjectId | null | "apart" }> {
    const { parts, target } = this.landRun;
    const local = await tipOf(parts.workspace, target);
    if (local === null || (await isAncestor(parts.workspace, local, commit))) return { local };
    return { local: "apart" };
  }
}

/** To land it here as well could make two of it. */
async function notAsked(
  { surroundings, repository }: Workspace,
  { entryId, branch, target }: LandEntry,
  { remote, commit }: Underway,
): Promise<CotenantError> {
  const name = printable(remote, 100);
  const args = ["config", "--get", `remote.${remote}.url`];
  const isThere = (await surroundings.git.run(args, { cwd: repository.worktreeRoot })).status === 0;
  const gone = `there is no remote ${name} here any more. Look whether ${commit.slice(0, 12)} arrived where it was; then take the entry out (cotenant land remove ${entryId}), and if it did not, add the branch again`;
  return new CotenantError(
    "E_DIVERGED",
    `${shownBranch(branch)} was being pushed to ${shownBranch(target)} of ${name}, and nobody has asked yet what became of it`,
    {
      hint: isThere ? `ask, and go on: cotenant land run --push --remote ${shellWord(remote)}` : gone,
      data: { branch, target, remote },
    },
  );
}

export function notPushed(target: string, remote: string, result: PushResult): CotenantError {
  const why = "why" in result ? result.why : "";
  const code = result.result === "failed" ? result.code : "E_REMOTE_UNREACHABLE";
  const what = result.result === "failed" ? "did not take it" : "may or may not have it";
  const hint =
    result.result === "failed" && result.hint !== undefined
      ? result.hint
      : `see what it says, then run the queue again, which finds out what became of it: cotenant land run --push --remote ${shellWord(remote)}`;
  return new CotenantError(
    code,
    `nothing landed on ${shownBranch(target)}: ${printable(remote, 100)} ${what}: ${why}`,
    {
      hint,
      data: { target, remote, push: result.result, why },
    },
  );
}
