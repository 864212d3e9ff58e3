import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, orThrow, retriesError } from "../../errors/cotenant-error";
import { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { RefWriter } from "../../git/refs";
import { lookUp } from "../../git/tree-editor";
import type { Fact, FactName } from "../../kernel/facts";
import type { Ulid } from "../../kernel/ids";
import { refKey } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import { newUlid } from "../../platform/new-ulid";
import { tipOf } from "./base";
import { BorrowedLeases, KeptBranch } from "./branch-leases";
import { BranchPusher, isAbout, pause } from "./branch-pusher";
import { branchName, branchRef, refuseCheckedOut } from "./branch-rules";
import { changesOf, leasesNamedIn, placeOn } from "./catching-up";
import { type CheckOutcome, refuseFailed, runChecks } from "./checks";
import { ClaimsUnder, type OpenFence } from "./claims";
import { CommitWriter } from "./commit-writer";
import type { Draft } from "./draft";
import { type Candidate, type Plan, Planner } from "./planner";
import { remoteFor } from "./push";
import { type RefChange, RefCommitter } from "./ref-committer";
import type { Published, PublishRequest } from "./request";
import { settleIntents } from "./settlement";
import { settleWorkingFiles, type TidiedFile } from "./working-files";

/** Where a publish is to go, and what was found unfinished on the way. */
interface Aim extends Pick<Published, "publishId" | "ref" | "recovered"> {
  readonly remote: string | null;
}

interface Landed {
  readonly candidate: Candidate | null;
  readonly tip: ObjectId | null;
  readonly retries: number;
  readonly casFailures: number;
  readonly replayed: Readonly<Record<string, unknown>> | null;
}

/** What the repository's own commands were run on, and what came of them. */
interface Checked {
  readonly outcomes: readonly CheckOutcome[];
  readonly made: { readonly candidate: Candidate; readonly tip: ObjectId | null } | null;
}

/** What came of a publish that changed nothing. */
const NOTHING_DONE = {
  ...{ paths: [], changed: false, replayed: false, merged: false, retries: 0, casFailures: 0 },
  ...{ checks: [], push: null, released: [], tidied: [] },
} satisfies Partial<Published>;

const UNCHECKED: Checked = { outcomes: [], made: null };
const MOST_LOGGED = 100;

/**
 * Publishes for one session, one after the other. It keeps a Git for reading and one for refs, and what it has read, so
 * that a program that publishes often pays for them once; `close` ends them.
 */
export class Publisher {
  readonly #workspace: Workspace;
  readonly #session: Session;
  readonly #objects: ObjectDatabase;
  readonly #refs: RefWriter;
  readonly #committer: RefCommitter;
  readonly #pen: CommitWriter;
  readonly #planner: Planner;
  readonly #branch: KeptBranch;
  readonly #claims: ClaimsUnder;
  readonly #pusher: BranchPusher;
  #turn: Promise<unknown> = Promise.resolve();

  /** `openFence`: what stands between a push and the claims that it is made under, where they are shared. */
  constructor(workspace: Workspace, session: Session, openFence: OpenFence = async () => null) {
    const { surroundings, repository } = workspace;
    const { platform, git, env } = surroundings;
    this.#workspace = workspace;
    this.#session = session;
    this.#objects = new ObjectDatabase(platform, git, repository);
    this.#refs = new RefWriter(platform, git, repository, `publish: by ${session.actor.agentId}`);
    this.#committer = new RefCommitter(workspace, session, this.#refs);
    this.#pen = new CommitWriter(git, repository.worktreeRoot, env, platform.clock);
    this.#claims = new ClaimsUnder(workspace, session, openFence);
    this.#planner = new Planner(workspace, session, this.#pen, this.#claims);
    this.#branch = new KeptBranch(session, platform);
    this.#pusher = new BranchPusher(workspace, session, {
      objects: this.#objects,
      pen: this.#pen,
      planner: this.#planner,
      claims: this.#claims,
      branch: this.#branch,
      committer: this.#committer,
    });
  }

  /** Objects of the repository, for whoever looks at what was published. */
  get objects(): ObjectDatabase {
    return this.#objects;
  }

  get pen(): CommitWriter {
    return this.#pen;
  }

  get planner(): Planner {
    return this.#planner;
  }

  publish(request: PublishRequest): Promise<Published> {
    // One transaction at a time: Git's answers come in the order of the questions.
    const turn = this.#turn.then(() => this.#publish(request));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async close(): Promise<void> {
    await this.#turn;
    await this.#branch.giveBack();
    await Promise.all([this.#refs.close(), this.#objects.close()]);
  }

  async #publish(request: PublishRequest): Promise<Published> {
    const ref = branchRef(request.branch);
    this.#planner.refuseBranch(ref);
    const remote = request.push === undefined ? null : await remoteFor(this.#workspace, request.push, ref);
    const recovered = await settleIntents(this.#workspace, this.#session, this.#committer.left);
    const earlier = await this.#earlier(ref, request.requestId);
    const publishId = request.requestId ?? newUlid(this.#workspace.surroundings.platform);
    const aim: Aim = { publishId, ref, remote, recovered };
    if (earlier !== null) return this.#replay(request, aim, earlier);
    if (request.inputs.length === 0) return this.#pushAlone(request, aim);
    const plan = await this.#planner.plan(request, this.#objects);
    const { claims } = plan.coverage;
    if (remote !== null) await this.#claims.refuseUnfenced(claims, remote);
    const checked = await this.#check(request, plan);
    const landed = await this.#land(request, plan, publishId, checked);
    if (landed.replayed !== null) return this.#replay(request, aim, landed.replayed);
    const { candidate, tip, retries, casFailures } = landed;
    const made = candidate?.commit ?? tip;
    const paths = candidate?.paths ?? [];
    const pushing =
      remote === null || made === null
        ? null
        : await this.#pusher.push(request, { remote, ref, commit: made, publishId });
    const commit = pushing?.commit ?? made;
    const isElsewhere = commit !== made && commit !== null;
    const tidied =
      request.settle && commit !== null
        ? await this.#tidy(commit, plan.draft.keys(), plan.source?.taken)
        : [];
    const released = request.release ? await this.#release(request, plan.coverage.leases) : [];
    return {
      ...NOTHING_DONE,
      ...{ publishId, ref, commit, paths, retries, casFailures, released, tidied, recovered },
      parent: isElsewhere ? await this.#parentOf(commit) : (candidate?.parent ?? null),
      base: plan.base.commit,
      changed: candidate !== null,
      merged: isElsewhere || (candidate?.isMerged ?? false),
      checks: checked.outcomes,
      push: pushing?.result ?? null,
    };
  }

  // --- checks ----------------------------------------------------------------------------------------------------

  /** The repository's own commands, on a commit that no branch has yet. */
  async #check(request: PublishRequest, plan: Plan): Promise<Checked> {
    const lines = this.#workspace.config.values["publish.checks"];
    if (lines.length === 0 || plan.draft.size === 0) return UNCHECKED;
    const tip = await tipOf(this.#workspace, plan.ref);
    const candidate = await this.#planner.candidate(plan, this.#objects, tip);
    if (candidate === null) return UNCHECKED;
    await this.#objects.flush();
    const outcomes = await this.runChecks(request, plan, candidate, {});
    refuseFailed(outcomes);
    return { outcomes, made: { candidate, tip } };
  }

  runChecks(
    { commands, onProgress }: PublishRequest,
    { ref, base }: Plan,
    { commit, parent }: Pick<Candidate, "commit" | "parent">,
    env: Readonly<Record<string, string>>,
  ): Promise<CheckOutcome[]> {
    const { values } = this.#workspace.config;
    return runChecks(commands, {
      lines: values["publish.checks"],
      cwd: this.#workspace.repository.worktreeRoot,
      timeoutMs: values["publish.check_timeout_secs"] * 1000,
      env: {
        ...env,
        COTENANT_PUBLISH_BRANCH: branchName(ref),
        COTENANT_PUBLISH_BASE: base.commit ?? "",
        COTENANT_PUBLISH_PARENT: parent ?? "",
        COTENANT_PUBLISH_COMMIT: commit,
      },
      onStart: (line) => onProgress?.(`checking: ${line}`),
    });
  }

  // --- the commit ---------------------------------------------------------------------------------------------

  async #land(request: PublishRequest, plan: Plan, publishId: Ulid, { made }: Checked): Promise<Landed> {
    const { values } = this.#workspace.config;
    const keys = [orThrow(refKey(plan.ref)), ...plan.coverage.scopes];
    const kept = await this.#branch.again(keys);
    const borrowed = kept ?? new BorrowedLeases(this.#workspace, this.#session, keys);
    const onWait = (message: string) => request.onProgress?.(`waiting: ${message}`);
    const most = values["publish.retries"];
    let [casFailures, isInTheWay] = [0, false];
    // The next one's commit stands on ours, and its sync covers ours: it need not wait for our answer.
    let over: Promise<void> | null = null;
    const onCommitted = () => {
      over = this.#branch.keep(borrowed);
    };
    await this.#committer.warmUp();
    let mustLook = kept === null && (await borrowed.take(onWait));
    try {
      for (let tries = 0; tries <= most; tries++) {
        const counts = { retries: tries, casFailures };
        // Whoever had the branch before us may have died with it since we looked. Where nobody had, there is nothing new;
        // and should there be something all the same, the commit does not go past it.
        if (mustLook) await settleIntents(this.#workspace, this.#session, this.#committer.left, isInTheWay);
        mustLook = true;
        // Whether it is checked out is looked at under the mutex, when nobody can check it out any more.
        const tip = await tipOf(this.#workspace, plan.ref);
        const start = await this.#pusher.startOf(request, plan, tip);
        const isChecked = made !== null && made.tip === start;
        const candidate = isChecked
          ? made.candidate
          : await this.#planner.candidate(plan, this.#objects, start);
        if (candidate === null) return { candidate, tip, ...counts, replayed: null };
        const change = this.#change(request, plan, {
          publishId,
          tip,
          candidate,
          borrowed,
          onCommitted,
          facts: await this.#planner.remembered(plan, this.#objects, candidate, request.settle),
          ...counts,
        });
        const shown = this.#objects.reveal();
        const flushed = shown.then(() => this.#objects.flush());
        const attempt = await this.#committer
          .attempt(change, { shown, flushed })
          .finally(() => flushed.catch(() => {}));
        if (attempt.kind === "committed") return { candidate, tip, ...counts, replayed: null };
        if (attempt.kind === "replayed") return { candidate, tip, ...counts, replayed: fateOf(attempt) };
        if (attempt.kind === "refused") {
          if (!isAbout(attempt.error, borrowed)) throw attempt.error;
          await borrowed.take(onWait);
          continue;
        }
        casFailures++;
        isInTheWay = attempt.isBusy;
        await pause(this.#workspace, tries);
      }
    } finally {
      await (over ?? this.#branch.keep(borrowed));
      this.#branch.ended();
    }
    throw retriesError(
      `${branchName(plan.ref)} could not be changed in ${most + 1} tries`,
      "run it again in a moment; publish.retries says how often it is tried",
      {
        ref: plan.ref,
        retries: most,
        cas_failures: casFailures,
        setting: "publish.retries",
        ...(this.#refs.lastWords === "" ? {} : { git: this.#refs.lastWords }),
      },
    );
  }

  #change(
    { requestId, secret }: PublishRequest,
    { ref, base, coverage }: Plan,
    at: {
      readonly publishId: Ulid;
      readonly tip: ObjectId | null;
      readonly candidate: Candidate;
      readonly borrowed: BorrowedLeases;
      readonly onCommitted: () => void;
      readonly facts: ReadonlyMap<FactName, Fact | null>;
      readonly retries: number;
      readonly casFailures: number;
    },
  ): RefChange {
    const { commit, parent, paths, isMerged } = at.candidate;
    const claims = coverage.claims.map(({ leaseId }) => leaseId);
    return {
      intentId: newUlid(this.#workspace.surroundings.platform),
      publishId: at.publishId,
      requestId,
      noun: "publish",
      ref,
      old: at.tip,
      new: commit,
      payload: {
        branch: branchName(ref),
        base: base.commit,
        parent,
        paths: paths.slice(0, MOST_LOGGED).map(({ path, change }) => ({ path, change })),
        path_count: paths.length,
        merged: isMerged,
        retries: at.retries,
        cas_failures: at.casFailures,
      },
      result: {
        ...{ ref, commit, parent, fate: "committed" },
        ...{ base: base.commit, merged: isMerged },
        ...(claims.length === 0 ? {} : { claims }),
      },
      claims,
      leases: [...coverage.leases, ...at.borrowed.leases],
      secret,
      optimistic: coverage.optimistic,
      edits: coverage.edits,
      facts: at.facts,
      mayMove: () => refuseCheckedOut(this.#workspace, ref),
      onCommitted: at.onCommitted,
    };
  }

  // --- afterwards ---------------------------------------------------------------------------------------------

  async #parentOf(commit: ObjectId): Promise<ObjectId | null> {
    return (await this.#objects.readCommit(commit)).parents[0] ?? null;
  }

  /** Nothing is published: what is on the branch is pushed. */
  async #pushAlone(request: PublishRequest, { publishId, ref, remote, recovered }: Aim): Promise<Published> {
    const tip = await tipOf(this.#workspace, ref);
    if (tip === null)
      throw new CotenantError("E_NOT_FOUND", `there is no branch ${branchName(ref)} to push`, {
        hint: "'git branch' shows those that there are",
        data: { ref },
      });
    const pushing =
      remote === null ? null : await this.#pusher.push(request, { remote, ref, commit: tip, publishId });
    const commit = pushing?.commit ?? tip;
    return {
      ...NOTHING_DONE,
      ...{ publishId, ref, commit, recovered, parent: await this.#parentOf(commit), base: tip },
      ...{ merged: commit !== tip, push: pushing?.result ?? null },
    };
  }

  /** `taken`: what is on the branch may be that, merged with the work of others. */
  async #tidy(commit: ObjectId, names: Iterable<string>, taken: Draft = new Map()): Promise<TidiedFile[]> {
    const paths = [...names];
    const { tree } = await this.#objects.readCommit(commit);
    const on = await lookUp(this.#objects, tree, paths);
    const published = new Map(paths.map((path) => [path, (taken.has(path) ? taken : on).get(path) ?? null]));
    return settleWorkingFiles(this.#workspace, this.#objects, this.#planner.indexPlace(), published);
  }

  async #release({ secret }: PublishRequest, covering: readonly Lease[]) {
    if (covering.length === 0) return [];
    const refs = covering.map(({ key, leaseId }) => ({ key, leaseId }));
    const { leases } = await this.#session.release(refs, { besides: secret, reason: "published" });
    return leases;
  }

  /** What an earlier call with the same request id came to; null where there was none. */
  async #earlier(ref: string, requestId: Ulid | null): Promise<Readonly<Record<string, unknown>> | null> {
    if (requestId === null) return null;
    const written = await this.#session.write<true>([], {
      about: `publish ${ref}`,
      facts: [],
      requestId,
      body: async () => null,
    });
    return written.replayed ? fateOf({ result: written.record.result ?? {} }) : null;
  }

  /** It is done; whoever did it may have died before the rest, which has no effect where it is done as well. */
  async #replay(
    request: PublishRequest,
    { publishId, ref, remote, recovered }: Aim,
    result: Readonly<Record<string, unknown>>,
  ): Promise<Published> {
    const tip = await tipOf(this.#workspace, ref);
    const was = String(result["commit"]);
    const there = (tip === null ? null : await placeOn(this.#workspace, was, tip)) ?? was;
    const wanted = { remote: remote!, ref, commit: there, publishId: request.requestId ?? publishId };
    const pushing = remote === null ? null : await this.#pusher.push(request, wanted);
    const commit = pushing?.commit ?? there;
    const parent = await this.#parentOf(commit);
    const changes = await changesOf(this.#workspace, commit);
    const paths = changes.map(({ path, change, mode }) => ({ path, change, mode }));
    const changed = paths.map(({ path }) => path);
    const tidied = request.settle ? await this.#tidy(commit, changed) : [];
    const shown = this.#planner.shown(request);
    const covering = request.release
      ? await leasesNamedIn(this.#workspace, this.#session, this.#objects, commit, shown)
      : [];
    const released = await this.#release(request, covering);
    const base = typeof result["base"] === "string" ? result["base"] : parent;
    return {
      ...NOTHING_DONE,
      ...{ publishId, ref, commit, parent, base, paths, released, tidied, recovered },
      ...{ replayed: true, merged: result["merged"] === true, push: pushing?.result ?? null },
    };
  }
}

/** Only what is certain is an answer. */
function fateOf({ result }: { readonly result: Readonly<Record<string, unknown>> }) {
  if (result["fate"] === "committed") return result;
  throw new CotenantError(
    "E_PUBLISH_CONFLICT",
    "that publish was cut off, and the branch has moved since: whether it was ever there cannot be told",
    {
      hint: "look at the branch ('git log'), and publish what is missing with a new request id",
      data: { ...result },
    },
  );
}
