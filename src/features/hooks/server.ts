import { type ConfigProblem, configError } from "../../config/problem";
import { settingOf } from "../../config/schema";
import { LocalCoordinator } from "../../coordinator/local";
import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { type PathRuleSet, type PlacedRule, parsePathRule, RULE_FORMS } from "../../kernel/path-rules";
import { DEFAULT_POLICY } from "../../kernel/policy";
import type { Git, GitPlace } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import { DEFAULT_STORE_OPTIONS, Store } from "../../store/store";
import { commitOf, type MainRef } from "./divergence";
import { committedRules, mendedRules, withMain } from "./path-rules";
import { type BranchRules, mainMove } from "./push-branches";
import type { TipMove } from "./push-tips";

/** The control plane of a repository that people push to; null where it has none, and nobody can testify there. */
export async function serverCoordinator(
  platform: Platform,
  gitDir: string,
): Promise<LocalCoordinator | null> {
  const controlDirectory = `${gitDir}/cotenant`;
  if ((await platform.files.stat(`${controlDirectory}/claims.jsonl`)) === null) return null;
  return new LocalCoordinator(
    new Store(platform, { ...DEFAULT_STORE_OPTIONS, controlDirectory }),
    DEFAULT_POLICY,
  );
}

/** What a server is told in its own Git configuration: no push can change that. */
export interface ServerRules {
  readonly ledgerBranch: string;
  readonly claimsPrefix: string;
  readonly allowedBranches: readonly string[];
  readonly mainBranch: string | null;
  readonly requireMainHistory: boolean;
  readonly ignoreCase: boolean;
  /** Those of its own, besides what its main branch has. */
  readonly pathRules: readonly PlacedRule[];
}

/** `cotenant.*` in Git's configuration, for those who want it otherwise. */
export async function serverRules(git: Git, place: GitPlace): Promise<ServerRules> {
  const { status, stdout, stderr } = await git.run(
    ["config", "--null", "--get-regexp", "^(cotenant\\.|core\\.ignorecase$)"],
    place,
  );
  // 1: there is none.
  if (status > 1) throw new CotenantError("E_GIT", `Git cannot read its configuration: ${stderr.trim()}`);
  const values = new Map<string, string[]>();
  for (const entry of new TextDecoder().decode(stdout).split("\0")) {
    const end = entry.indexOf("\n");
    if (end === -1) continue;
    const name = entry.slice(0, end);
    values.set(name, [...(values.get(name) ?? []), entry.slice(end + 1)]);
  }
  const last = (name: string) => values.get(`cotenant.${name}`)?.at(-1) ?? null;
  const isOff = (text: string) => /^(?:false|no|off|0)$/i.test(text);
  const branches = values.get("cotenant.allowedbranches")?.flatMap((one) => one.split(/[\s,]+/));
  return {
    ledgerBranch: last("ledgerbranch") ?? "cotenant-sync",
    claimsPrefix: last("claimsprefix") ?? "refs/cotenant/claims/",
    allowedBranches:
      branches?.filter((one) => one !== "") ??
      (settingOf("global_operations.allowed_branches").default as readonly string[]),
    mainBranch: last("mainbranch"),
    requireMainHistory: !isOff(last("requiremainhistory") ?? ""),
    ignoreCase: !isOff(values.get("core.ignorecase")?.at(-1) ?? "false"),
    pathRules: ownRules(values.get("cotenant.paths") ?? []),
  };
}

function ownRules(texts: readonly string[]): PlacedRule[] {
  const place = "cotenant.paths in the server's Git configuration";
  return texts.map((text) => {
    const rule = parsePathRule(text);
    if (!("wrong" in rule)) return { ...rule, place, source: "server" };
    throw new CotenantError(
      "E_CONFIG",
      `${place} has the entry "${printable(text, 100)}", which ${rule.wrong}`,
      {
        hint: `on the server: write it as ${RULE_FORMS} (git config --edit)`,
      },
    );
  });
}

/** By what a push is judged. */
export interface ServerCourt {
  readonly branches: BranchRules;
  readonly pathRules: PathRuleSet;
}

/**
 * What cannot be read of it refuses every push, and is an error here; rules of the main branch not the push that mends them.
 * `pushed`: what is received, and where it can be read.
 */
export async function courtOf(
  git: Git,
  place: GitPlace,
  rules: ServerRules,
  pushed: { readonly moves: readonly TipMove[]; readonly place: GitPlace } = { moves: [], place },
): Promise<ServerCourt> {
  const branches = await rulesOf(git, place, rules);
  const own = { rules: rules.pathRules, ignoreCase: rules.ignoreCase };
  const before = await withMain(own, { git, place }, branches.main);
  if (before.problems.length === 0) return { branches, pathRules: before };
  const move = mainMove(branches, pushed.moves);
  if (move === null) throw unmended(before.problems);
  const sources = { git, place: pushed.place };
  return { branches, pathRules: await mendedRules(before, sources, branches.main!, move.to) };
}

function unmended(problems: readonly ConfigProblem[]): CotenantError {
  const { message, hint, data } = configError(problems);
  return new CotenantError("E_CONFIG", message, { hint: `push a main branch that mends it: ${hint}`, data });
}

/** Why every push is refused, whatever is in it; null where pushes can be judged. */
export async function serverProblem(git: Git, place: GitPlace): Promise<CotenantError | null> {
  try {
    await courtOf(git, place, await serverRules(git, place));
    return null;
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    return error;
  }
}

/** What whoever installs the hook should know of what it goes by. */
export async function serverRemarks(git: Git, place: GitPlace): Promise<string[]> {
  const problem = await serverProblem(git, place);
  if (problem !== null) return [`every push is refused: ${problem.message}; ${problem.hint}`];
  const rules = await serverRules(git, place);
  const { main } = await serverMain(git, place, rules);
  const { others } =
    main === null ? { others: [] } : await committedRules({ git, place }, main.commit, main.name);
  const remarks = others.map((other) => `${configError([other]).message}: no client reads this file`);
  return [...(await mainRemarks(git, place, rules)), ...remarks];
}

/** The rules about branches need to know which one is the main one. */
async function mainRemarks(git: Git, place: GitPlace, rules: ServerRules): Promise<string[]> {
  const { main, named, isMissing } = await serverMain(git, place, rules);
  if (!isMissing) return [];
  const lacking = `there is no branch ${printable(named, 100)}, which is named as the main one`;
  return [
    main === null
      ? `${lacking}: until it or main is pushed, settings and gates may come in on every branch; another one is named with: git config cotenant.mainBranch <branch>`
      : `${lacking}: ${main.branch} counts as the main one; to say so: git config cotenant.mainBranch ${main.branch}`,
  ];
}

/** With the main branch as it is before the push. */
async function rulesOf(git: Git, place: GitPlace, rules: ServerRules): Promise<BranchRules> {
  const tipOf = (branch: string) => commitOf(git, place.cwd, `refs/heads/${branch}`, place.env);
  const { main, names } = await serverMain(git, place, rules);
  return {
    allowed: rules.allowedBranches,
    main,
    mainNames: names,
    requireHistory: rules.requireMainHistory,
    allowedTips: async () =>
      (await Promise.all(rules.allowedBranches.map(tipOf))).filter((tip) => tip !== null),
    howToAllow: (name) => `on the server: git config --add cotenant.allowedBranches ${name}`,
  };
}

/** `isMissing`: the branch that was named is not there, be it `main` for now or none at all. */
interface ServerMain {
  readonly main: MainRef | null;
  readonly named: string;
  /** Of these the first that is there is it. */
  readonly names: readonly string[];
  readonly isMissing: boolean;
}

/** The configured one, else the one that HEAD names; where HEAD names none that is there, the usual ones. */
async function serverMain(git: Git, place: GitPlace, { mainBranch }: ServerRules): Promise<ServerMain> {
  const { stdout } = await git.run(["symbolic-ref", "--quiet", "HEAD"], place);
  const head = new TextDecoder()
    .decode(stdout)
    .trim()
    .replace(/^refs\/heads\//, "");
  const named = mainBranch ?? head;
  const names = (mainBranch === null ? [head, "main", "master"] : [mainBranch]).filter((name) => name !== "");
  for (const branch of names) {
    const commit = await commitOf(git, place.cwd, `refs/heads/${branch}`, place.env);
    if (commit !== null)
      return { main: { name: branch, branch, commit }, named, names, isMissing: branch !== named };
  }
  return { main: null, named, names, isMissing: true };
}
