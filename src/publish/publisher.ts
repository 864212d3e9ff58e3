import type { Session } from "../coordinator/session";
import type { Workspace } from "../coordinator/workspace";
import { diverged, mainHistory } from "../enforce/divergence";
import { CotenantError, orThrow } from "../errors/cotenant-error";
import { makeUlid, type Ulid } from "../kernel/ids";
import { refKey } from "../kernel/keys";
import { ObjectDatabase } from "../objects/database";
import type { ObjectId } from "../objects/object-name";
import { RefWriter } from "../objects/refs";
import { lookUp } from "../objects/tree-editing";
import { escapeName, modesFor } from "../store/layout";
import type { IndexPlace } from "./agent-index";
import { type Point, pointAt, resolveBase, tipOf } from "./base";
import { Borrowed } from "./borrowing";
import { branchName, branchRef, refuseCheckedOut, refuseProtected } from "./branch-rules";
import { type CheckOutcome, refuseFailed, runChecks } from "./checks";
import { type RefChange, RefCommitter } from "./committing";
import { type Coverage, coverageOf } from "./coverage";
import type { Draft } from "./draft";
import { draftOf } from "./drafting";
import { type MergePlace, ontoTip, treeWith } from "./merging";
import { cleanMessage, withTrailers } from "./message";
import { pathObjections, refusePaths } from "./path-rules";
import { type PushResult, push, remoteFor } from "./pushing";
import type { Published, PublishedPath, PublishRequest } from "./request";
import { findSecrets, refuseSecrets } from "./secrets";
import { type SettledIntent, settleIntents } from "./settling";
import { type Authorship, Pen } from "./signing";
import { settleWorkingFiles, type TidiedFile } from "./working-files";

/** What is to be published, looked at from every side; nothing of it is in the repository yet. */
export interface Plan {
  readonly ref: string;
  readonly base: Point;
  readonly draft: Draft;
  readonly message: string;
  readonly authorship: Authorship;
  readonly coverage: Coverage;
}

/** A commit on top of the branch as it was a moment ago. */
interface Candidate {
  readonly commit: ObjectId;
  readonly parent: ObjectId | null;
  readonly draft: Draft;
  readonly paths: readonly PublishedPath[];
  readonly isMerged: boolean;
}

interface Landed {
  readonly candidate: Candidate | null;
  readonly tip: ObjectId | null;
  readonly retries: number;
  readonly casFailures: number;
  readonly replayed: Readonly<Record<string, unknown>> | null;
}

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
  readonly #pen: Pen;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(workspace: Workspace, session: Session) {
    const { surroundings, repository } = workspace;
    const { platform, git, env } = surroundings;
    this.#workspace = workspace;
    this.#session = session;
    this.#objects = new ObjectDatabase(platform, git, repository);
    this.#refs = new RefWriter(platform, git, repository, `publish: by ${session.actor.agentId}`);
    this.#committer = new RefCommitter(workspace, session, this.#refs);
    this.#pen = new Pen(git, repository.worktreeRoot, env, platform.clock);
  }

  /** Objects of the repository, for whoever looks at what was published. */
  get objects(): ObjectDatabase {
    return this.#objects;
  }

  get pen(): Pen {
    return this.#pen;
  }

  publish(request: PublishRequest): Promise<Published> {
    // One transaction at a time: Git's answers come in the order of the questions.
    const turn = this.#turn.then(() => this.#publish(request));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async close(): Promise<void> {
    await Promise.all([this.#refs.close(), this.#objects.close()]);
  }

  async #publish(request: PublishRequest): Promise<Published> {
    const ref = branchRef(request.branch);
    this.refuseBranch(ref);
    const remote = request.push === undefined ? null : await remoteFor(this.#workspace, request.push, ref);
    const recovered = await settleIntents(this.#workspace, this.#session, this.#committer.left);
    const earlier = await this.#earlier(ref, request.requestId);
    const publishId = request.requestId ?? this.#ulid();
    if (earlier !== null)
      return this.#replay(request, { publishId, ref, remote, result: earlier, recovered });
    const plan = await this.plan(request, this.#objects);
    const checks = await this.#check(request, plan);
    const landed = await this.#land(request, plan, publishId);
    if (landed.replayed !== null)
      return this.#replay(request, { publishId, ref, remote, result: landed.replayed, recovered });
    const { candidate, tip, retries, casFailures } = landed;
    const commit = candidate?.commit ?? tip;
    const paths = candidate?.paths ?? [];
    const pushed =
      remote === null || commit === null ? null : await this.#push(remote, ref, commit, publishId);
    const tidied = request.settle && commit !== null ? await this.#tidy(commit, [...plan.draft.keys()]) : [];
    const released = request.release ? await this.#release(request, plan) : [];
    return {
      publishId,
      ref,
      commit,
      parent: candidate?.parent ?? null,
      base: plan.base.commit,
      paths,
      changed: candidate !== null,
      replayed: false,
      merged: candidate?.isMerged ?? false,
      retries,
      casFailures,
      checks,
      push: pushed,
      released,
      tidied,
      recovered,
    };
  }

  // --- before anything is written -----------------------------------------------------------------------------

  refuseBranch(ref: string): void {
    const { values } = this.#workspace.config;
    const main = values["global_operations.main_branch"];
    refuseProtected(ref, [...values["publish.protected"], ...(main === null ? [] : [main])]);
  }

  /** What the inputs come to, or the first refusal. `objects` may be apart from the repository. */
  async plan(request: PublishRequest, objects: ObjectDatabase): Promise<Plan> {
    const { draft, base, ref } = await this.drafted(request, objects);
    const before = await lookUp(objects, base.tree, draft.keys());
    refusePaths(this.pathObjections(draft, before));
    const allowed = this.#workspace.config.values["publish.allow_secrets_in"];
    refuseSecrets(await findSecrets(objects, draft, before, allowed));
    const message = cleanMessage(request.message);
    const coverage = await this.coverage(request, draft, before);
    await this.#refuseDiverged(coverage, base);
    const authorship = await this.#pen.authorship(request);
    return { ref, base, draft, message, authorship, coverage };
  }

  async drafted(
    request: PublishRequest,
    objects: ObjectDatabase,
  ): Promise<{ draft: Draft; base: Point; ref: string }> {
    const ref = branchRef(request.branch);
    const { surroundings, repository, config, store } = this.#workspace;
    if ((await store.platform.files.stat(store.layout.root)) === null) await store.prepare();
    await refuseCheckedOut(surroundings.platform, surroundings.git, repository, ref);
    const tip = await tipOf(this.#workspace, ref);
    const base = await resolveBase(this.#workspace, objects, request.base, tip);
    const maxPaths = config.values["publish.max_paths"];
    const desk = { objects, base: base.tree, index: this.#indexPlace(), maxPaths };
    return { draft: await draftOf(desk, request.inputs), base, ref };
  }

  pathObjections(draft: Draft, before: Parameters<typeof pathObjections>[1]) {
    const { values } = this.#workspace.config;
    return pathObjections(draft, before, {
      forbiddenPaths: values["publish.forbidden_paths"],
      maxPaths: values["publish.max_paths"],
      maxFileBytes: values["publish.max_file_bytes"],
      ignoreCase: this.#workspace.repository.config.ignoreCase,
    });
  }

  coverage(
    { secret }: Pick<PublishRequest, "secret">,
    draft: Draft,
    before: Parameters<typeof pathObjections>[1],
  ): Promise<Coverage> {
    const { digest } = this.#workspace.surroundings.platform;
    return coverageOf({
      workspace: this.#workspace,
      session: this.#session,
      draft,
      before,
      shown: secret === null ? [] : [digest.sha256(secret)],
    });
  }

  /** What concerns everybody is changed on top of the main branch's history. */
  async #refuseDiverged({ scopes }: Coverage, base: Point): Promise<void> {
    const { config, surroundings, repository } = this.#workspace;
    const { values } = config;
    if (scopes.length === 0 || base.commit === null || !values["global_operations.require_main_history"])
      return;
    const configured = values["global_operations.main_branch"];
    const history = await mainHistory(surroundings.git, repository.worktreeRoot, configured, base.commit);
    if (history.kind === "lacks") throw diverged(history);
  }

  /** The repository's own commands, on a commit that no branch has yet. */
  async #check(request: PublishRequest, plan: Plan): Promise<CheckOutcome[]> {
    const lines = this.#workspace.config.values["publish.checks"];
    if (lines.length === 0 || plan.draft.size === 0) return [];
    const candidate = await this.candidate(plan, this.#objects, await tipOf(this.#workspace, plan.ref));
    if (candidate === null) return [];
    await this.#objects.flush();
    const outcomes = await this.runChecks(request, plan, candidate, {});
    refuseFailed(outcomes);
    return outcomes;
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

  /** On top of the tip; null where the branch has it all already. Written to `objects`, and not yet flushed. */
  async candidate(plan: Plan, objects: ObjectDatabase, tip: ObjectId | null): Promise<Candidate | null> {
    const { draft, base, coverage, message, authorship } = plan;
    const parent = tip ?? base.commit;
    const { tree: parentTree } = tip === null ? base : await pointAt(objects, tip);
    const onto = await ontoTip(this.#mergePlace(objects), {
      draft,
      base,
      tipTree: parentTree,
      optimistic: new Set(coverage.optimistic),
    });
    if (onto.size === 0) return null;
    const before = await lookUp(objects, parentTree, onto.keys());
    const tree = await treeWith(objects, parentTree, onto);
    const { agentId, worktreeId } = this.#session.actor;
    const pathLeases = coverage.leases.filter(({ key }) => !key.startsWith("issue:"));
    const commit = await this.#pen.write(
      objects,
      {
        tree,
        parents: parent === null ? [] : [parent],
        author: authorship.author,
        committer: authorship.committer,
        message: withTrailers(message, pathLeases, { agentId, worktreeId, issues: coverage.issues }),
      },
      authorship.sign,
    );
    const paths = [...onto].map(([path, wanted]): PublishedPath => {
      const change = wanted === null ? "deleted" : before.has(path) ? "changed" : "added";
      return { path, change, mode: wanted?.mode ?? null };
    });
    return { commit, parent, draft: onto, paths, isMerged: parentTree !== base.tree };
  }

  async #land(request: PublishRequest, plan: Plan, publishId: Ulid): Promise<Landed> {
    const { values } = this.#workspace.config;
    const keys = [orThrow(refKey(plan.ref)), ...plan.coverage.scopes];
    const borrowed = new Borrowed(this.#session, keys, values["publish.wait_secs"] * 1000);
    const onWait = (message: string) => request.onProgress?.(`waiting: ${message}`);
    const most = values["publish.retries"];
    let casFailures = 0;
    await this.#committer.warmUp();
    await borrowed.take(onWait);
    try {
      for (let tries = 0; tries <= most; tries++) {
        const counts = { retries: tries, casFailures };
        // Whoever had the branch before us may have died with it, and only now it is our turn to look.
        await settleIntents(this.#workspace, this.#session, this.#committer.left);
        const tip = await this.#freeTip(plan.ref);
        const candidate = await this.candidate(plan, this.#objects, tip);
        if (candidate === null) return { candidate, tip, ...counts, replayed: null };
        await this.#objects.flush();
        const change = this.#change(request, plan, { publishId, tip, candidate, borrowed, ...counts });
        const attempt = await this.#committer.attempt(change);
        if (attempt.kind === "committed") return { candidate, tip, ...counts, replayed: null };
        if (attempt.kind === "replayed") return { candidate, tip, ...counts, replayed: fateOf(attempt) };
        if (attempt.kind === "refused") {
          if (!isAbout(attempt.error, borrowed)) throw attempt.error;
          await borrowed.take(onWait);
          continue;
        }
        casFailures++;
        await this.#pause(tries);
      }
    } finally {
      await borrowed.giveBack();
    }
    throw new CotenantError(
      "E_RETRIES_EXHAUSTED",
      `${branchName(plan.ref)} could not be changed in ${most + 1} tries`,
      {
        data: {
          ref: plan.ref,
          retries: most,
          cas_failures: casFailures,
          setting: "publish.retries",
          ...(this.#refs.lastWords === "" ? {} : { git: this.#refs.lastWords }),
        },
      },
    );
  }

  async #freeTip(ref: string): Promise<ObjectId | null> {
    const { surroundings, repository } = this.#workspace;
    await refuseCheckedOut(surroundings.platform, surroundings.git, repository, ref);
    return tipOf(this.#workspace, ref);
  }

  #change(
    { requestId, secret }: PublishRequest,
    { ref, base, coverage }: Plan,
    at: {
      readonly publishId: Ulid;
      readonly tip: ObjectId | null;
      readonly candidate: Candidate;
      readonly borrowed: Borrowed;
      readonly retries: number;
      readonly casFailures: number;
    },
  ): RefChange {
    const { commit, parent, paths, isMerged } = at.candidate;
    return {
      intentId: this.#ulid(),
      publishId: at.publishId,
      requestId,
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
      result: { ref, commit, parent, fate: "committed" },
      leases: [...coverage.leases, ...at.borrowed.leases],
      secret,
      optimistic: coverage.optimistic,
    };
  }

  /** Longer each time, and never as long as somebody else's. */
  async #pause(tries: number): Promise<void> {
    const { timers, random } = this.#workspace.surroundings.platform;
    const [chance = 0] = random.bytes(1);
    await timers.sleep(Math.min(20 * 2 ** tries, 1_500) * (0.5 + chance / 256)).done;
  }

  // --- afterwards ---------------------------------------------------------------------------------------------

  async #push(remote: string, ref: string, commit: ObjectId, publishId: Ulid): Promise<PushResult> {
    const result = await push(this.#workspace, remote, ref, commit);
    const said = "why" in result ? { why: result.why } : {};
    await this.#session.write<true>([], {
      about: `publish ${ref}`,
      facts: [],
      body: async () => ({
        type: "publish.pushed",
        payload: { publish_id: publishId, ref, new: commit, remote, push: result.result, ...said },
        facts: new Map(),
        answer: true,
      }),
    });
    return result;
  }

  #tidy(commit: ObjectId, paths: readonly string[]): Promise<TidiedFile[]> {
    return settleWorkingFiles(this.#workspace, this.#objects, this.#indexPlace(), commit, paths);
  }

  async #release({ secret }: PublishRequest, { coverage }: Plan) {
    if (coverage.leases.length === 0) return [];
    const refs = coverage.leases.map(({ key, leaseId }) => ({ key, leaseId }));
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

  async #replay(
    { requestId }: PublishRequest,
    earlier: {
      readonly publishId: Ulid;
      readonly ref: string;
      readonly remote: string | null;
      readonly result: Readonly<Record<string, unknown>>;
      readonly recovered: readonly SettledIntent[];
    },
  ): Promise<Published> {
    const { publishId, ref, remote, result, recovered } = earlier;
    const commit = String(result["commit"]);
    const parent = typeof result["parent"] === "string" ? result["parent"] : null;
    const pushed = remote === null ? null : await this.#push(remote, ref, commit, requestId ?? publishId);
    return {
      publishId,
      ref,
      commit,
      parent,
      base: null,
      paths: [],
      changed: false,
      replayed: true,
      merged: false,
      retries: 0,
      casFailures: 0,
      checks: [],
      push: pushed,
      released: [],
      tidied: [],
      recovered,
    };
  }

  // --- places -------------------------------------------------------------------------------------------------

  #indexPlace(): IndexPlace {
    const { surroundings, repository, store } = this.#workspace;
    const { platform, git } = surroundings;
    return {
      platform,
      git,
      worktreeRoot: repository.worktreeRoot,
      commonDir: repository.commonDir,
      directory: store.layout.agentIndex,
      directoryMode: modesFor(repository.config.sharedRepository).directory,
      owner: escapeName(this.#session.actor.agentId, (text) => platform.digest.sha256(text)),
    };
  }

  #mergePlace(objects: ObjectDatabase): MergePlace {
    const { platform, git, directory, directoryMode } = this.#indexPlace();
    return { platform, git, place: this.#workspace.repository, objects, directory, directoryMode };
  }

  #ulid(): Ulid {
    const { clock, random } = this.#workspace.surroundings.platform;
    return makeUlid(clock.wallMs(), random.bytes(10));
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

/** Whether a refusal speaks of a lease that a publish takes for itself. */
function isAbout({ data }: CotenantError, { keys }: Borrowed): boolean {
  const holders = Array.isArray(data["holders"]) ? (data["holders"] as { key?: unknown }[]) : [];
  const named = [data["key"], ...holders.map(({ key }) => key)];
  return named.some((key) => typeof key === "string" && (keys as readonly string[]).includes(key));
}
