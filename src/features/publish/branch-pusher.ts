import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, orThrow } from "../../errors/cotenant-error";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import type { Ulid } from "../../kernel/ids";
import { refKey } from "../../kernel/keys";
import { shellWord } from "../../kernel/printing";
import { newUlid } from "../../platform/new-ulid";
import { remoteOfBase, tipOf, trackedTip } from "./base";
import { BorrowedLeases, type KeptBranch } from "./branch-leases";
import { branchName, refuseCheckedOut } from "./branch-rules";
import { fetchedTip, isAncestor, rebuiltOn, unpushedSince } from "./catching-up";
import { pushUnderClaims, type WantedPush } from "./claim-push";
import type { ClaimsUnder } from "./claims";
import type { CommitWriter } from "./commit-writer";
import type { Plan, Planner } from "./planner";
import type { PushResult } from "./push";
import type { RefChange, RefCommitter } from "./ref-committer";
import type { PublishRequest } from "./request";

/** How often a push that the remote has moved under is tried again. */
const MOST_CATCH_UPS = 5;

interface Tools {
  readonly objects: ObjectDatabase;
  readonly pen: CommitWriter;
  readonly planner: Planner;
  readonly claims: ClaimsUnder;
  readonly branch: KeptBranch;
  readonly committer: RefCommitter;
}

/** Brings a branch to the remote, also where the remote has moved meanwhile. */
export class BranchPusher {
  readonly #workspace: Workspace;
  readonly #session: Session;
  readonly #with: Tools;

  constructor(workspace: Workspace, session: Session, tools: Tools) {
    this.#workspace = workspace;
    this.#session = session;
    this.#with = tools;
  }

  /**
   * Pushes; and where the remote has moved, puts what was published here on top of it, and pushes again. Answers where the
   * commit is in the end.
   */
  async push(request: PublishRequest, wanted: WantedPush): Promise<{ result: PushResult; commit: ObjectId }> {
    let { commit } = wanted;
    for (let tries = 0; ; tries++) {
      const now = { ...wanted, commit };
      const result = await pushUnderClaims(this.#workspace, this.#session, this.#with.claims, now);
      const isRejected =
        result.result === "failed" && result.code === "E_PUSH_REJECTED" && result.hint === undefined;
      if (!isRejected || tries === MOST_CATCH_UPS) return { result, commit };
      try {
        const place = await this.#catchUp(request, now);
        if (place === null) return { result, commit };
        commit = place;
      } catch (error) {
        if (!(error instanceof CotenantError)) throw error;
        return { result: unmerged(error, now), commit };
      }
    }
  }

  /** Where the commit is on top of what the remote has now; null where the remote has refused it for another reason. */
  async #catchUp(request: PublishRequest, { remote, ref, commit, publishId }: WantedPush) {
    const theirs = await fetchedTip(this.#workspace, remote, ref);
    if (theirs === null) return null;
    await this.#with.branch.giveBack();
    const { config } = this.#workspace;
    const borrowed = new BorrowedLeases(this.#workspace, this.#session, [orThrow(refKey(ref))]);
    const take = () => borrowed.take((message) => request.onProgress?.(`waiting: ${message}`));
    await this.#with.committer.warmUp();
    await take();
    try {
      for (let tries = 0; tries <= config.values["publish.retries"]; tries++) {
        const tip = await tipOf(this.#workspace, ref);
        if (tip === null) return null;
        // Somebody else may have done it for us.
        if (await isAncestor(this.#workspace, theirs, tip))
          return (await isAncestor(this.#workspace, commit, tip)) ? null : tip;
        const unpushed = await unpushedSince(this.#workspace, remote, theirs, tip);
        if (unpushed === null) return null;
        const rebuilt = await rebuiltOn(this.#workspace, this.#tools, theirs, unpushed);
        const attempt = await this.#move(rebuilt.tip, {
          ...{ ref, publishId, tip, borrowed },
          payload: { branch: branchName(ref), base: theirs, rebuilt: unpushed.length },
        });
        if (attempt.kind === "committed") return rebuilt.places.get(commit) ?? rebuilt.tip;
        if (attempt.kind !== "refused") await pause(this.#workspace, tries);
        else if (isAbout(attempt.error, borrowed)) await take();
        else throw attempt.error;
      }
      return null;
    } finally {
      await borrowed.giveBack();
    }
  }

  async #move(
    next: ObjectId,
    at: {
      readonly ref: string;
      readonly publishId: Ulid;
      readonly tip: ObjectId;
      readonly borrowed: BorrowedLeases;
      readonly payload: Readonly<Record<string, unknown>>;
    },
  ) {
    const shown = this.#with.objects.reveal();
    const flushed = shown.then(() => this.#with.objects.flush());
    const change: RefChange = {
      intentId: newUlid(this.#workspace.surroundings.platform),
      publishId: at.publishId,
      requestId: null,
      noun: "publish",
      ref: at.ref,
      old: at.tip,
      new: next,
      payload: at.payload,
      result: {},
      claims: [],
      leases: at.borrowed.leases,
      secret: null,
      optimistic: [],
      edits: null,
      mayMove: () => refuseCheckedOut(this.#workspace, at.ref),
      onCommitted: () => {},
    };
    return this.#with.committer.attempt(change, { shown, flushed }).finally(() => flushed.catch(() => {}));
  }

  /**
   * On what the commit is put: the branch; where the base is the remote's own copy of it, which has moved, that, with what
   * was published here and the remote lacks on top, except for what the caller now publishes anew.
   */
  async startOf({ base: typed }: PublishRequest, { ref, base, draft }: Plan, tip: ObjectId | null) {
    const remote = remoteOfBase(typed, ref);
    if (remote === null || tip === null || base.commit === null) return tip;
    if ((await trackedTip(this.#workspace, remote, ref)) !== base.commit) return tip;
    if (await isAncestor(this.#workspace, base.commit, tip)) return tip;
    const unpushed = await unpushedSince(this.#workspace, remote, base.commit, tip);
    if (unpushed === null) return tip;
    const { agentId } = this.#session.actor;
    const kept = unpushed.filter(
      (one) => one.agentId !== agentId || one.paths.some((path) => !draft.has(path)),
    );
    return (await rebuiltOn(this.#workspace, this.#tools, base.commit, kept)).tip;
  }

  get #tools() {
    const { objects, pen, planner } = this.#with;
    return { objects, pen, merging: planner.mergePlace(objects) };
  }
}

/** Longer each time, and never as long as somebody else's. */
export async function pause({ surroundings }: Workspace, tries: number): Promise<void> {
  const { timers, random } = surroundings.platform;
  const [chance = 0] = random.bytes(1);
  await timers.sleep(Math.min(20 * 2 ** tries, 1_500) * (0.5 + chance / 256)).done;
}

/** The remote has other changes in the same places. */
function unmerged(error: CotenantError, { remote, ref }: WantedPush): PushResult {
  const base = `${remote}/${branchName(ref)}`;
  const [path] = error.paths;
  const hint =
    error.code === "E_PUBLISH_CONFLICT" && path !== undefined
      ? `make the change anew on top of theirs, and publish it with --base ${shellWord(base)} --push; theirs: git show ${shellWord(`${base}:${path}`)}`
      : error.hint;
  return { result: "failed", remote, code: error.code, why: error.message, hint };
}

/** Whether a refusal speaks of a lease that a publish takes for itself. */
export function isAbout({ data }: CotenantError, { keys }: BorrowedLeases): boolean {
  const named = [data["key"], ...(data.holders ?? []).map(({ key }) => key)];
  return named.some((key) => typeof key === "string" && (keys as readonly string[]).includes(key));
}
