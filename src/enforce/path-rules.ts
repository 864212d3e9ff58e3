import { pathRulesFrom, pathRulesIn } from "../config/path-rules";
import { type ConfigProblem, configError } from "../config/problem";
import type { Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import {
  type PathJudge,
  type PathRuleSet,
  type PlacedRule,
  pathJudge,
  RULES_FILE,
  ruledOut,
  whatInstead,
} from "../kernel/path-rules";
import type { ChangingCommit, CommitPlace } from "../objects/commits";
import type { Git } from "../platform/git";
import { gitWords } from "../platform/git-answers";
import type { Objection } from "./commit-rules";
import type { MainRef } from "./divergence";
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
  readonly isAnyHeld = true;
  readonly #rules: PathRuleSet;
  readonly #about: RulesAbout;
  readonly #known = new Map<string, PathJudge | null>();
  readonly #anybody: PathJudge | null;

  constructor(rules: PathRuleSet, about: RulesAbout) {
    this.#rules = rules;
    this.#about = about;
    this.#anybody = pathJudge({ ...rules, rules: rules.rules.map((rule) => ({ ...rule, who: "*" })) }, [
      "agent:anybody",
    ]);
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
    const rule = this.#judgeOf(makers)?.writing(path) ?? null;
    if (rule === null) return [];
    return [
      {
        ...aboutCommit(commit, path),
        code: "E_PATH_RULE",
        message: `${shortOf(commit)} ${does} ${printable(path, 200)}: ${ruledOut(rule, path, makers)}`,
        hint: `${whatInstead(rule)}; somebody whom it does not bind makes the commit theirs with: ${committingAnew(this.#about, commit)}`,
      },
    ];
  }

  #judgeOf(makers: readonly string[]): PathJudge | null {
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
  readonly place: CommitPlace;
}

export interface CommittedRules {
  readonly rules: readonly PlacedRule[];
  /** Why there may be more of them than can be understood. */
  readonly problems: readonly ConfigProblem[];
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
  if (status !== 0 || end === -1)
    throw new CotenantError("E_GIT", `Git cannot read ${file}: ${gitWords(stderr)}`);
  if (type === "missing") return { rules: [], problems: [] };
  // A link is its target's name, which no TOML is.
  if (type === "blob") return pathRulesFrom(file, stdout.subarray(end + 1, end + 1 + Number(size)));
  return {
    rules: [],
    problems: [{ place: file, line: null, key: null, nearest: null, message: "is not a file" }],
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

export function withMore(rules: PathRuleSet, more: readonly PlacedRule[]): PathRuleSet {
  const known = new Set(rules.rules.map(({ text }) => text));
  return { ...rules, rules: [...rules.rules, ...more.filter(({ text }) => !known.has(text))] };
}

/** For those who must not guess. */
export function refuseBroken({ problems }: Pick<CommittedRules, "problems">): void {
  if (problems.length > 0) throw configError(problems);
}

/** What would leave the main branch with rules that nobody can read. */
export async function brokenRules(
  sources: Sources,
  main: MainRef,
  moves: readonly TipMove[],
): Promise<PushObjection[]> {
  const found: PushObjection[] = [];
  for (const { ref, to } of moves) {
    if (ref !== `refs/heads/${main.branch}`) continue;
    const [problem] = (await committedRules(sources, to, to.slice(0, 12))).problems;
    if (problem === undefined) continue;
    const { code, message, hint } = configError([problem]);
    found.push({ ...aboutCommit({ oid: to }, RULES_FILE), code, message, hint });
  }
  return found;
}
