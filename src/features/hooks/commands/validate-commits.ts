import type { Command } from "../../../cli/grammar/command";
import { ERRORS } from "../../../errors/registry";
import { count } from "../../../kernel/printing";
import { pushRefusal } from "../answers/answer";
import { validateCommits } from "../answers/push";

export const command: Command = {
  positional: "<range>",
  about:
    "Holds commits against the log, as the pre-push and pre-receive hooks do: every change of an issue had its claim\nwhen it was committed, nobody else held a changed file, and no rule of policy.paths was broken. For CI. What speaks\nagainst them has a code, and the exit status is that of the code: 1 where somebody else holds or held it, 6 to 8 where\na lease was missing, 9 where a rule forbids it.",
  flags: {},
  examples: ["cotenant validate commits HEAD", "cotenant validate commits main..HEAD --json"],
  words: { min: 1, max: 1 },
  async run(context, parsed) {
    const { commits, objections } = await validateCommits(context, parsed.words[0]!);
    const isValid = objections.length === 0;
    const text = isValid
      ? `${count(commits.length, "commit")} looked at: valid`
      : pushRefusal("pre-push", objections).slice(1).join("\n");
    return {
      data: {
        valid: isValid,
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
      text: context.quiet && isValid ? "" : text,
      // The one that waiting does not mend, where there are several.
      exit: Math.max(0, ...objections.map(({ code }) => ERRORS[code].exit)),
    };
  },
};
