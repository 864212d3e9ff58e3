import { pathRulesFrom } from "../../config/path-rules";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { type Leaf, lookUp } from "../../git/tree-editor";
import type { Fact, FactName } from "../../kernel/facts";
import { type PlacedRule, pathJudge, RULES_FILE } from "../../kernel/path-rules";
import { shellWord } from "../../kernel/printing";
import { escapeName, modesFor } from "../../store/layout";
import { scopeOf } from "../hooks/commit-rules";
import { globalRefusal } from "../hooks/global-operations";
import { refuseBroken, rulesHere, withMore } from "../hooks/path-rules";
import type { IndexPlace } from "./agent-index";
import { allowedBy } from "./allowances";
import { type Point, pointAt, resolveBase, tipOf } from "./base";
import { branchRef, refuseBeside, refuseCheckedOut, refuseLedger, refuseProtected } from "./branch-rules";
import type { ClaimsUnder } from "./claims";
import type { Authorship, CommitWriter } from "./commit-writer";
import { type Coverage, coverageOf } from "./coverage";
import { type Draft, sameLeaf } from "./draft";
import { type Drafted, draftOf } from "./draft-maker";
import { type MergePlace, ontoTip, treeWith } from "./merge";
import { cleanMessage, withTrailers } from "./message";
import { type PathObjection, pathObjections, refusePaths } from "./path-rules";
import type { PublishedPath, PublishRequest } from "./request";
import { findSecrets, refuseSecrets } from "./secrets";
import { type Ground, groundOf, staleNotes, takenFact, takenName } from "./taken";

/** What is to be published, looked at from every side; nothing of it is in the repository yet. */
export interface Plan {
  readonly ref: string;
  readonly base: Point;
  readonly draft: Draft;
  readonly before: ReadonlyMap<string, Leaf>;
  readonly message: string;
  readonly authorship: Authorship;
  readonly coverage: Coverage;
  /** What was taken from the working tree, and what it was made from; null where nothing was. */
  readonly source: Source | null;
}

interface Source extends Pick<Drafted, "taken" | "putBack"> {
  readonly ground: Ground;
}

interface PlannedDraft extends Drafted {
  readonly base: Point;
  readonly ref: string;
  readonly source: Source | null;
}

/** A commit on top of the branch as it was a moment ago. */
export interface Candidate {
  readonly commit: ObjectId;
  readonly parent: ObjectId | null;
  readonly draft: Draft;
  readonly paths: readonly PublishedPath[];
  readonly isMerged: boolean;
}

/** Works out what a publish comes to. Nothing is in the repository, or in the log, before a candidate is flushed. */
export class Planner {
  constructor(
    private readonly workspace: Workspace,
    private readonly session: Session,
    private readonly pen: CommitWriter,
    private readonly claims: ClaimsUnder,
  ) {}

  refuseBranch(ref: string): void {
    const { values } = this.workspace.config;
    const main = values["global_operations.main_branch"];
    refuseProtected(ref, [...values["publish.protected"], ...(main === null ? [] : [main])]);
    refuseLedger(ref, values["sync.ledger_branch"]);
  }

  /** What the inputs come to, or the first refusal. `objects` may be apart from the repository. */
  async plan(request: PublishRequest, objects: ObjectDatabase): Promise<Plan> {
    const { draft, before, base, ref, source } = await this.drafted(request, objects);
    refusePaths(await this.pathObjections(objects, base, draft, before));
    const allowed = allowedBy(this.workspace.config);
    refuseSecrets(await findSecrets(objects, draft, before, allowed), allowed);
    const message = cleanMessage(request.message);
    const coverage = await this.coverage(request, draft, before);
    await this.#refuseGlobal(coverage, draft, base, ref);
    const authorship = await this.pen.authorship(request);
    return { ref, base, draft, before, message, authorship, coverage, source };
  }

  async drafted(request: PublishRequest, objects: ObjectDatabase): Promise<PlannedDraft> {
    const ref = branchRef(request.branch);
    const { surroundings, repository, config, store } = this.workspace;
    if ((await store.platform.files.stat(store.layout.root)) === null) await store.prepare();
    await refuseCheckedOut(this.workspace, ref);
    const tip = await tipOf(this.workspace, ref);
    if (tip === null) await refuseBeside(surroundings.git, repository.worktreeRoot, ref);
    const base = await resolveBase(this.workspace, objects, request, ref, tip);
    const maxPaths = config.values["publish.max_paths"];
    const isTaking = request.inputs.some(({ op }) => op === "from-worktree");
    const { worktreeId } = this.session.actor;
    const ground = isTaking ? await groundOf(this.workspace, objects, worktreeId, ref, base) : null;
    // A base that the caller names holds for everything.
    const isNamed = ground === null || request.base !== null;
    const desk = {
      objects,
      base: base.tree,
      ground: isNamed ? base.tree : ground.tree,
      putBack: isNamed ? new Map() : ground.putBack,
      index: this.indexPlace(),
      maxPaths,
    };
    const drafted = await draftOf(desk, request.inputs);
    return { ...drafted, base, ref, source: ground === null ? null : { ground, ...drafted } };
  }

  async pathObjections(
    objects: ObjectDatabase,
    base: Point,
    draft: Draft,
    before: Parameters<typeof pathObjections>[1],
  ): Promise<PathObjection[]> {
    const { values } = this.workspace.config;
    const { agentId } = this.session.actor;
    const rules = withMore(rulesHere(this.workspace), await rulesAt(objects, base));
    return pathObjections(draft, before, {
      forbiddenPaths: values["publish.forbidden_paths"],
      allowSecretsIn: allowedBy(this.workspace.config),
      maxPaths: values["publish.max_paths"],
      maxFileBytes: values["publish.max_file_bytes"],
      ignoreCase: this.workspace.repository.config.ignoreCase,
      publisher: agentId,
      judge: pathJudge(rules, [agentId]),
    });
  }

  /** Hashes of secrets that the caller shows besides its own. */
  shown({ secret }: Pick<PublishRequest, "secret">): string[] {
    return secret === null ? [] : [this.workspace.surroundings.platform.digest.sha256(secret)];
  }

  async coverage(
    request: Pick<PublishRequest, "secret">,
    draft: Draft,
    before: Parameters<typeof pathObjections>[1],
  ): Promise<Coverage> {
    const coverage = await coverageOf({
      workspace: this.workspace,
      session: this.session,
      draft,
      before,
      claims: this.claims,
      shown: this.shown(request),
    });
    this.session.refuseWrong(request.secret, coverage.leases);
    return coverage;
  }

  /** What concerns everybody is changed on branches that may, on top of the main branch's history. */
  async #refuseGlobal({ scopes }: Coverage, draft: Draft, base: Point, ref: string): Promise<void> {
    const { config, surroundings, repository } = this.workspace;
    if (scopes.length === 0 || base.commit === null) return;
    const refusal = await globalRefusal({
      git: surroundings.git,
      cwd: repository.worktreeRoot,
      config,
      command: "cotenant publish",
      branch: ref.replace(/^refs\/heads\//, ""),
      of: base.commit,
      paths: [...draft.keys()].filter((path) => scopeOf(path) !== null),
    });
    if (refusal !== null) throw refusal;
  }

  /** On top of the tip; null where the branch has it all already. Written to `objects`, and not yet flushed. */
  async candidate(plan: Plan, objects: ObjectDatabase, tip: ObjectId | null): Promise<Candidate | null> {
    const { draft, base, coverage, message, authorship } = plan;
    const parent = tip ?? base.commit;
    const { tree: parentTree } = tip === null ? base : await pointAt(objects, tip);
    const onto = await this.#ontoTip(plan, objects, { commit: parent, tree: parentTree });
    if (onto.size === 0) return null;
    const before = await lookUp(objects, parentTree, onto.keys());
    const tree = await treeWith(objects, parentTree, onto);
    const { agentId, worktreeId } = this.session.actor;
    const pathLeases = coverage.leases.filter(({ key }) => !key.startsWith("issue:"));
    const commit = await this.pen.write(
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
    const isMerged =
      parentTree !== base.tree || [...onto].some(([path, wanted]) => !sameLeaf(wanted, draft.get(path)));
    return { commit, parent, draft: onto, paths, isMerged };
  }

  async #ontoTip(
    { draft, before, base, coverage, source }: Plan,
    objects: ObjectDatabase,
    tip: Point,
  ): Promise<Draft> {
    const optimistic = new Set(coverage.optimistic);
    const merge = { draft, before, base, tipTree: tip.tree, optimistic };
    try {
      return await ontoTip(this.mergePlace(objects), merge);
    } catch (error) {
      const isConflict = error instanceof CotenantError && error.code === "E_PUBLISH_CONFLICT";
      const [path] = isConflict ? error.paths : [];
      if (!isConflict || path === undefined || !source?.taken.has(path) || tip.commit === null) throw error;
      const commit = tip.commit.slice(0, 12);
      const isThere = (await lookUp(objects, tip.tree, [path])).has(path);
      const hint = isThere
        ? `bring what the branch has into your file, and publish it with --base ${commit}; what it has: git show ${shellWord(`${commit}:${path}`)}`
        : `the branch has no such file any more: leave yours out, or publish it all the same with --base ${commit}`;
      throw error.with({ hint });
    }
  }

  /** What to remember of the files that were taken, once the commit is on the branch. Written, and not yet flushed. */
  async remembered(
    { ref, source }: Plan,
    objects: ObjectDatabase,
    { commit, parent }: Candidate,
    isSettled: boolean,
  ): Promise<Map<FactName, Fact | null>> {
    if (source === null) return new Map();
    const { worktreeId } = this.session.actor;
    const { ground, taken, putBack } = source;
    const now = isSettled
      ? { commit, taken: new Map(), putBack: [...taken.keys(), ...putBack] }
      : { commit, taken, putBack };
    const fact = await takenFact(this.workspace, objects, ground, parent, now);
    const name = takenName(this.workspace, worktreeId, ref);
    return new Map([...(await staleNotes(this.workspace)), [name, fact]]);
  }

  indexPlace(): IndexPlace {
    const { surroundings, repository, store } = this.workspace;
    const { platform, git } = surroundings;
    return {
      platform,
      git,
      worktreeRoot: repository.worktreeRoot,
      commonDir: repository.commonDir,
      directory: store.layout.agentIndex,
      directoryMode: modesFor(repository.config.sharedRepository).directory,
      owner: escapeName(this.session.actor.agentId, (text) => platform.digest.sha256(text)),
    };
  }

  mergePlace(objects: ObjectDatabase): MergePlace {
    const { platform, git, directory, directoryMode } = this.indexPlace();
    return { platform, git, place: this.workspace.repository, objects, directory, directoryMode };
  }
}

/** Of what is published on top of: a file of the working tree that lacks a rule does not lift it. */
export async function rulesAt(
  objects: ObjectDatabase,
  { tree, commit }: Point,
): Promise<readonly PlacedRule[]> {
  const leaf = (await lookUp(objects, tree, [RULES_FILE])).get(RULES_FILE);
  if (leaf === undefined) return [];
  const file = `${(commit ?? "").slice(0, 12)}:${RULES_FILE}`;
  const found = await pathRulesFrom(file, await objects.readBlob(leaf.oid));
  refuseBroken(found);
  return found.rules;
}
