import { judgeRevisions } from "../../enforce/push";
import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { Command } from "../command";
import { pushRefusal } from "../hooking";
import { testimony } from "../ledger";
import { count } from "../render";

export const command: Command = {
  usage: "validate commits <range>",
  about:
    "Holds commits against the log, as the pre-push and pre-receive hooks do: every change of an issue had its claim\nwhen it was committed. For CI. Exits with 6 when one had none.",
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
      },
      { names: [range], options: [] },
    );
    const text =
      objections.length === 0
        ? `${count(commits.length, "commit")} with changes of issues or settings: valid`
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
