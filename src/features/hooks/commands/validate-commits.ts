import type { Command } from "../../../cli/grammar/command";
import { count } from "../../../cli/terminal/render";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { ERRORS } from "../../../errors/registry";
import { CommitReader } from "../../../git/commits";
import { rulingKey } from "../../../identity/path-keys";
import { printable } from "../../../kernel/ids";
import type { PathRuleSet } from "../../../kernel/path-rules";
import { testimony } from "../../ledger/commands/ledger";
import { issueOf } from "../commit-rules";
import { commitOf, type MainRef, mainRef } from "../divergence";
import { mendedRules, rulesHere, withMain } from "../path-rules";
import { judgeRevisions } from "../push";
import type { TipMove } from "../push-tips";
import { pushRefusal } from "./hooking";

export const command: Command = {
  usage: "validate commits <range>",
  about:
    "Holds commits against the log, as the pre-push and pre-receive hooks do: every change of an issue had its claim\nwhen it was committed, nobody else held a changed file, and no rule of policy.paths was broken. For CI. What speaks\nagainst them has a code, and the exit status is that of the code: 1 where somebody else holds or held it, 6 to 8 where\na lease was missing, 9 where a rule forbids it.",
  flags: {},
  examples: ["cotenant validate commits HEAD", "cotenant validate commits main..HEAD --json"],
  words: { min: 1, max: 1 },
  async run(context, parsed) {
    const [range = ""] = parsed.words;
    if (range.startsWith("-"))
      throw new CotenantError("E_USAGE", `"${printable(range)}" is not a range of commits`, {
        hint: "write <from>..<to>, such as origin/main..HEAD",
      });
    const workspace = await context.workspace();
    const { repository, surroundings, coordinator, config } = workspace;
    const { git, platform } = surroundings;
    const place = { cwd: repository.worktreeRoot };
    const main = await mainRef(git, place.cwd, config.values["global_operations.main_branch"]);
    const pathRules = await rulesFor(workspace, range, main);
    const { commits, objections } = await judgeRevisions(
      {
        git,
        place,
        coordinator,
        claims: await testimony(workspace, true),
        digest: platform.digest,
        mode: config.values["enforce.push"],
        keyOf: (path) => rulingKey(workspace, path),
        pathRules,
        pusher: (await workspace.actorOrNull())?.agentId ?? null,
        hasHooks: false,
        branches: null,
      },
      { names: [range], options: [] },
      await movesOf(workspace, range),
    );
    if (objections.some(({ path }) => issueOf(path) !== null)) {
      const { claimsUnheard } = await import("../../ledger/open");
      const unheard = claimsUnheard(workspace);
      if (unheard !== null) throw unheard;
    }
    const text =
      objections.length === 0
        ? `${count(commits.length, "commit")} looked at: valid`
        : pushRefusal("pre-push", objections).slice(1).join("\n");
    return {
      data: {
        valid: objections.length === 0,
        commits: commits.length,
        objections: objections.map(({ commit, code, path, message, hint, owner, leaseId }) => ({
          commit,
          code,
          path,
          message,
          hint,
          owner,
          lease_id: leaseId,
        })),
      },
      text: context.quiet && objections.length === 0 ? "" : text,
      // The one that waiting does not mend, where there are several.
      exit: Math.max(0, ...objections.map(({ code }) => ERRORS[code].exit)),
    };
  },
};

async function rulesFor(workspace: Workspace, range: string, main: MainRef | null): Promise<PathRuleSet> {
  const { git } = workspace.surroundings;
  const place = { cwd: workspace.repository.worktreeRoot };
  const known = await withMain(rulesHere(workspace), { git, place }, main);
  if (known.problems.length === 0 || main === null) return known;
  const tip = await commitOf(git, place.cwd, range.split(/\.{2,3}/).at(-1) || "HEAD");
  return mendedRules(known, { git, place }, main, tip ?? main.commit);
}

/**
 * The range as pushes: `<from>..<to>` goes to a branch that stands where the two part, and so do all others that have a
 * lower end. One without has all of a history in it: there each merge goes to the branch that its first parent is.
 */
async function movesOf({ surroundings, repository }: Workspace, range: string): Promise<TipMove[]> {
  const { git } = surroundings;
  const place = { cwd: repository.worktreeRoot };
  const reader = new CommitReader(git, place);
  const { stdout } = await git.run(["rev-parse", "--revs-only", range], place);
  const names = new TextDecoder().decode(stdout).split("\n").slice(0, -1);
  const upper = names.filter((name) => !name.startsWith("^"));
  // A range that is none has no moves either; reading its commits says what is wrong. Tags are looked through.
  const tips = upper.length === 0 ? [] : await reader.list({ names: upper, options: ["--no-walk"] });
  const ends = names.filter((name) => name.startsWith("^")).map((name) => name.slice(1));
  const ref = "refs/heads/range";
  if (ends.length === 0 && tips.length > 0) {
    const merges = await reader.read(await reader.list({ names: tips, options: ["--min-parents=2"] }));
    return merges.map(({ oid, parents }) => ({ ref, from: parents[0]!, to: oid }));
  }
  const moves: TipMove[] = [];
  for (const to of tips)
    for (const end of ends)
      for (const from of await reader.mergeBases(end, to)) moves.push({ ref, from, to });
  return moves;
}
