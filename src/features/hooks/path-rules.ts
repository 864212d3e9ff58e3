import { type CommittedRules, pathRulesFrom, pathRulesIn, placedRules } from "../../config/path-rules";
import { configError } from "../../config/problem";
import type { Workspace } from "../../coordinator/workspace";
import type { OwnChange, PathChange } from "../../git/commit-text";
import type { ChangingCommit } from "../../git/commits";
import type { ObjectId } from "../../git/object-name";
import { printable } from "../../kernel/ids";
import {
  bindsEverybody,
  type PathJudge,
  type PathRuleSet,
  type PlacedRule,
  pathJudge,
  RULES_FILE,
  ruledOut,
  whatInstead,
} from "../../kernel/path-rules";
import type { Git, GitPlace } from "../../platform/git";
import { gitFailed } from "../../platform/git-answers";
import { blobs } from "./changes";
import type { Objection } from "./commit-rules";
import type { MainRef } from "./divergence";
import { type BranchRules, mainMove } from "./push-branches";
import {
  aboutCommit,
  committingAnew,
  makersOf,
  type PushedCommit,
  type PushObjection,
  type PushQuestion,
  shortOf,
} from "./push-rules";
import type { PathKeeper, TipMove } from "./push-tips";
import { parseTrailers } from "./trailers";

/** The rules that hold in this clone. */
export function rulesHere({ config, repository }: Pick<Workspace, "config" | "repository">): PathRuleSet {
  return { rules: pathRulesIn(config.layers), ignoreCase: repository.config.ignoreCase };
}

/** Whether any rule may bind a commit: one of this clone, or of the file that it replaces. Null: its paths are not known. */
export function mayBeRuled(
  workspace: Pick<Workspace, "config" | "repository">,
  paths: readonly string[] | null,
): boolean {
  return paths === null || paths.includes(RULES_FILE) || rulesHere(workspace).rules.length > 0;
}

/** What speaks against a commit that is about to be made. */
export function ruleObjections(
  rules: PathRuleSet,
  committer: { readonly agentId: string } | null,
  changes: readonly { readonly path: string }[],
): Objection[] {
  const agents = committer === null ? [] : [committer.agentId];
  const judge = rules.rules.length === 0 ? null : pathJudge(rules, agents);
  return changes.flatMap(({ path }): Objection[] => {
    const rule = judge?.writing(path) ?? null;
    if (rule === null) return [];
    const message = `${printable(path, 200)}: ${ruledOut(rule, path, agents)}`;
    return [{ code: "E_PATH_RULE", path, message, hint: whatInstead(rule), owner: null, leaseId: null }];
  });
}

/** What `worktree.enforce_leases` makes of objections: it is about leases, and rules of paths hold whatever it says. */
export function enforced<O extends Objection>(
  mode: "off" | "warn" | "strict",
  objections: readonly O[],
): { readonly refused: readonly O[]; readonly warned: readonly O[] } {
  if (mode === "strict") return { refused: objections, warned: [] };
  const isRule = ({ code }: O) => code === "E_PATH_RULE" || code === "E_CONFIG";
  return {
    refused: objections.filter(isRule),
    warned: mode === "off" ? [] : objections.filter((objection) => !isRule(objection)),
  };
}

type RulesAbout = Pick<PushQuestion, "pusher" | "hasHooks">;

/** Judges commits that exist by whom they name, each of whom must be allowed; else by who pushes. */
export class RuleJudge implements PathKeeper {
  readonly isAnyHeld: boolean;
  readonly #rules: PathRuleSet;
  readonly #about: RulesAbout;
  readonly #replaced: ReadonlyMap<ObjectId, readonly PlacedRule[]>;
  readonly #known = new Map<string, PathJudge | null>();
  readonly #anybody: PathJudge | null;

  /** `replaced`: the rules in the files that a commit replaces, by the commit's name. They bind it as well. */
  constructor(
    rules: PathRuleSet,
    about: RulesAbout,
    replaced: ReadonlyMap<ObjectId, readonly PlacedRule[]> = new Map(),
  ) {
    this.isAnyHeld = rules.rules.length > 0;
    this.#rules = rules;
    this.#about = about;
    this.#replaced = replaced;
    this.#anybody = pathJudge({ ...rules, rules: rules.rules.map((rule) => ({ ...rule, who: "*" })) }, [
      "agent:anybody",
    ]);
  }

  /** Null where there is no rule, here or in what the commits replace. */
  static async of(
    rules: PathRuleSet,
    about: RulesAbout,
    sources: Sources,
    commits: readonly ChangingCommit[],
  ): Promise<RuleJudge | null> {
    const found = await replacedRules(
      sources,
      commits.map(({ changes, parents }) => ({ changes, parents: parents.map((oid) => shortOf({ oid })) })),
    );
    const replaced = new Map(commits.map(({ oid }, i) => [oid, found[i]!]));
    const isAny = rules.rules.length > 0 || found.some((more) => more.length > 0);
    return isAny ? new RuleJudge(rules, about, replaced) : null;
  }

  objections(commit: PushedCommit): PushObjection[] {
    return commit.changes.flatMap(({ path }) => this.#against(commit, commit.trailers, path, "changes"));
  }

  /** Whether any rule could forbid anybody to write it. */
  isHeld(path: string): boolean {
    return this.#anybody?.writing(path) != null;
  }

  takenBack(_: ChangingCommit, path: string, merges: readonly ChangingCommit[]): PushObjection[] {
    return merges.flatMap((merge) => this.#against(merge, parseTrailers(merge.message), path, "takes back"));
  }

  #against(
    commit: ChangingCommit,
    trailers: PushedCommit["trailers"],
    path: string,
    does: "changes" | "takes back",
  ): PushObjection[] {
    const makers = makersOf({ trailers }, this.#about.pusher);
    const rule = this.#judgeOf(makers, commit.oid)?.writing(path) ?? null;
    if (rule === null) return [];
    return [
      {
        ...aboutCommit(commit, path),
        code: "E_PATH_RULE",
        message: `${shortOf(commit)} ${does} ${printable(path, 200)}: ${ruledOut(rule, path, makers)}`,
        hint: bindsEverybody(rule)
          ? whatInstead(rule)
          : `${whatInstead(rule)}; somebody whom it does not bind makes the commit theirs with: ${committingAnew(this.#about, commit)}`,
      },
    ];
  }

  #judgeOf(makers: readonly string[], commit: ObjectId): PathJudge | null {
    const more = this.#replaced.get(commit) ?? [];
    if (more.length > 0) return pathJudge(withMore(this.#rules, more), makers);
    const name = makers.join(" ");
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const judge = pathJudge(this.#rules, makers);
    this.#known.set(name, judge);
    return judge;
  }
}

interface Sources {
  readonly git: Git;
  readonly place: GitPlace;
}

/** What a commit changes, and how its parents are called in messages. */
export interface Replacing {
  readonly changes: readonly (PathChange & Partial<Pick<OwnChange, "befores">>)[];
  readonly parents: readonly string[];
}

/** Beside what holds here, the rules in the file that a commit replaces: it does not take off the rule that it breaks. */
export async function withReplaced(
  rules: PathRuleSet,
  sources: Sources,
  commit: Replacing,
): Promise<PathRuleSet> {
  const [replaced = []] = await replacedRules(sources, [commit]);
  return withMore(rules, replaced);
}

/**
 * The rules that each commit replaces, of all its parents. One process reads them for all commits, and none is started
 * where no commit changes the file. What cannot be understood of them binds nobody: somebody has to mend it.
 */
async function replacedRules(
  { git, place }: Sources,
  commits: readonly Replacing[],
): Promise<PlacedRule[][]> {
  const replaced = commits.map(({ changes, parents }) =>
    changes
      .filter(({ path }) => path === RULES_FILE)
      .flatMap(({ before, befores = [before] }) => befores)
      .flatMap((oid, i) => (oid === null ? [] : [{ oid, file: `${parents[i]}:${RULES_FILE}` }])),
  );
  const oids = replaced.flat().map(({ oid }) => oid);
  const texts = await blobs(git, place, oids);
  const rulesIn = async ({ oid, file }: { readonly oid: ObjectId; readonly file: string }) =>
    (await pathRulesFrom(file, new TextEncoder().encode(texts.get(oid)))).rules;
  return Promise.all(replaced.map(async (files) => (await Promise.all(files.map(rulesIn))).flat()));
}

/** The rules that a commit's own file has. `name` is how the commit is called in messages. */
export async function committedRules(
  { git, place }: Sources,
  commit: string,
  name: string,
): Promise<CommittedRules> {
  const file = `${name}:${RULES_FILE}`;
  const { status, stdout, stderr } = await git.run(["cat-file", "--batch"], {
    ...place,
    env: { ...place.env, GIT_NO_REPLACE_OBJECTS: "1" },
    input: `${commit}:${RULES_FILE}\n`,
  });
  const end = stdout.indexOf(10);
  const [, type, size] = new TextDecoder().decode(stdout.subarray(0, end)).split(" ");
  if (status !== 0 || end === -1) throw gitFailed(`Git cannot read ${file}`, stderr);
  if (type === "missing") return { rules: [], problems: [], others: [] };
  // A link is its target's name, which no TOML is.
  if (type === "blob") return pathRulesFrom(file, stdout.subarray(end + 1, end + 1 + Number(size)));
  return {
    rules: [],
    problems: [{ place: file, line: null, key: null, nearest: null, message: "is not a file" }],
    others: [],
  };
}

/** Beside what holds here, what the main branch has: no commit takes off the rule that it breaks. */
export async function withMain(
  rules: PathRuleSet,
  sources: Sources,
  main: MainRef | null,
): Promise<PathRuleSet & Pick<CommittedRules, "problems">> {
  if (main === null) return { ...rules, problems: [] };
  const theirs = await committedRules(sources, main.commit, main.name);
  return { ...withMore(rules, theirs.rules), problems: theirs.problems };
}

/** Of two that say the same, the one in the repository's file keeps that file as well. */
export function withMore(rules: PathRuleSet, more: readonly PlacedRule[]): PathRuleSet {
  const known = new Set(rules.rules.filter(({ source }) => source === "committed").map(({ text }) => text));
  return { ...rules, rules: [...rules.rules, ...more.filter(({ text }) => !known.has(text))] };
}

/** For those who must not guess. */
export function refuseBroken({ problems }: Pick<CommittedRules, "problems">): void {
  if (problems.length > 0) throw configError(problems);
}

/**
 * For commits that mend rules of the main branch which cannot be read: those that they bring, and what could be understood
 * of the others. Whom those bound nobody knows, and so agents and CI do not change the file.
 */
export async function mendedRules(
  understood: PathRuleSet,
  sources: Sources,
  main: MainRef,
  tip: string,
): Promise<PathRuleSet> {
  const brought = await committedRules(sources, tip, shortOf({ oid: tip }));
  refuseBroken(brought);
  const at = { place: `${main.name}:${RULES_FILE}, which cannot be read`, source: "committed" } as const;
  const kept = ["agent", "ci"].map((type) => `${type}:* never ${RULES_FILE}`);
  return withMore(understood, [...brought.rules, ...placedRules(kept, at)]);
}

/**
 * What would leave the main branch with rules that nobody can read, or with settings that no client reads: the rules would be
 * gone by a misspelt word. Of such settings only what is new, for a server may know fewer than its main branch has.
 */
export async function brokenRules(
  sources: Sources,
  branches: Pick<BranchRules, "main" | "mainNames">,
  moves: readonly TipMove[],
): Promise<PushObjection[]> {
  const move = mainMove(branches, moves);
  if (move === null) return [];
  const { problems, others } = await committedRules(sources, move.to, shortOf({ oid: move.to }));
  const known =
    others.length === 0 || move.from === null ? null : await committedRules(sources, move.from, "before");
  const fresh = others.filter(({ message }) => !known?.others.some((one) => one.message === message));
  const [problem] = [...problems, ...fresh];
  if (problem === undefined) return [];
  const { code, message, hint } = configError([problem]);
  return [{ ...aboutCommit({ oid: move.to }, RULES_FILE), code, message, hint }];
}
