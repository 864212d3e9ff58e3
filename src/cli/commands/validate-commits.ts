import type { Workspace } from "../../coordinator/workspace";
import { judgeRevisions } from "../../enforce/push";
import type { TipMove } from "../../enforce/push-tips";
import { CotenantError } from "../../errors/cotenant-error";
import { rulingKey } from "../../identity/path-keys";
import { printable } from "../../kernel/ids";
import { CommitReader } from "../../objects/commits";
import type { Command } from "../command";
import { pushRefusal } from "../hooking";
import { testimony } from "../ledger";
import { count } from "../render";

export const command: Command = {
  usage: "validate commits <range>",
  about:
    "Holds commits against the log, as the pre-push and pre-receive hooks do: every change of an issue had its claim\nwhen it was committed, and nobody else held a changed file. For CI. Exits with 6 when something speaks against them,\nand with another status when that cannot be told.",
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
    const { commits, objections } = await judgeRevisions(
      {
        git,
        place: { cwd: repository.worktreeRoot },
        coordinator,
        claims: await testimony(workspace, true),
        digest: platform.digest,
        mode: config.values["enforce.push"],
        keyOf: (path) => rulingKey(workspace, path),
        pusher: null,
        branches: null,
      },
      { names: [range], options: [] },
      await moveOf(workspace, range),
    );
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
      exit: objections.length === 0 ? 0 : 6,
    };
  },
};

/** From where the two ends part: `<from>..<to>` is judged as if it were pushed to a branch that stands there. */
async function moveOf({ surroundings, repository }: Workspace, range: string): Promise<TipMove[]> {
  const { git } = surroundings;
  const place = { cwd: repository.worktreeRoot };
  const { stdout } = await git.run(["rev-parse", "--revs-only", range], place);
  const names = new TextDecoder().decode(stdout).split("\n").slice(0, -1);
  const to = names.find((name) => !name.startsWith("^"));
  const not = names.filter((name) => name.startsWith("^"));
  if (to === undefined || names.length !== 2 || not.length !== 1) return [];
  const [from = null] = await new CommitReader(git, place).mergeBases(not[0]!.slice(1), to);
  return [{ ref: "refs/heads/range", from, to }];
}
