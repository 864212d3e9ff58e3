import { settingOf } from "../config/schema";
import { LocalCoordinator } from "../coordinator/local";
import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import { type PathRuleSet, type PlacedRule, parsePathRule, RULE_FORMS } from "../kernel/path-rules";
import { DEFAULT_POLICY } from "../kernel/policy";
import type { Git, GitOptions } from "../platform/git";
import type { Platform } from "../platform/platform";
import { DEFAULT_STORE_OPTIONS, Store } from "../store/store";
import { commitOf, type MainRef } from "./divergence";
import { refuseBroken, withMain } from "./path-rules";
import type { BranchRules } from "./push-branches";

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

type Place = Pick<GitOptions, "cwd" | "env">;

/** `cotenant.*` in Git's configuration, for those who want it otherwise. */
export async function serverRules(git: Git, place: Place): Promise<ServerRules> {
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

/** By what a push is judged. What of it cannot be read refuses every push, and is an error here. */
export async function courtOf(
  git: Git,
  place: Place,
  rules: ServerRules,
): Promise<{ readonly branches: BranchRules; readonly pathRules: PathRuleSet }> {
  const branches = await rulesOf(git, place, rules);
  const own = { rules: rules.pathRules, ignoreCase: rules.ignoreCase };
  const pathRules = await withMain(own, { git, place }, branches.main);
  refuseBroken(pathRules);
  return { branches, pathRules };
}

/** With the main branch as it is before the push. */
async function rulesOf(git: Git, place: Place, rules: ServerRules): Promise<BranchRules> {
  const tipOf = (branch: string) => commitOf(git, place.cwd, `refs/heads/${branch}`, place.env);
  return {
    allowed: rules.allowedBranches,
    main: (await serverMain(git, place, rules)).main,
    requireHistory: rules.requireMainHistory,
    allowedTips: async () =>
      (await Promise.all(rules.allowedBranches.map(tipOf))).filter((tip) => tip !== null),
    howToAllow: (name) => `on the server: git config --add cotenant.allowedBranches ${name}`,
  };
}

/** `isMissing`: the branch that was named is not there, be it `main` for now or none at all. */
export interface ServerMain {
  readonly main: MainRef | null;
  readonly named: string;
  readonly isMissing: boolean;
}

/** The configured one, else the one that HEAD names; where HEAD names none that is there, the usual ones. */
export async function serverMain(git: Git, place: Place, { mainBranch }: ServerRules): Promise<ServerMain> {
  const { stdout } = await git.run(["symbolic-ref", "--quiet", "HEAD"], place);
  const head = new TextDecoder()
    .decode(stdout)
    .trim()
    .replace(/^refs\/heads\//, "");
  const named = mainBranch ?? head;
  for (const branch of mainBranch === null ? [head, "main", "master"] : [mainBranch]) {
    const commit = branch === "" ? null : await commitOf(git, place.cwd, `refs/heads/${branch}`, place.env);
    if (commit !== null)
      return { main: { name: branch, branch, commit }, named, isMissing: branch !== named };
  }
  return { main: null, named, isMissing: true };
}
