import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { documentOf } from "../documents";
import { meantPath } from "./documents";
import { EDIT_FLAGS, edit } from "./editing";

export const command: Command = {
  usage: "doc remove <issue> <path>",
  about: "Takes a document off an issue that you have claimed. The file itself stays.",
  flags: EDIT_FLAGS,
  examples: ["cotenant doc remove 7x3k docs/login.md"],
  words: { min: 2, max: 2 },
  completes: ["issue", "path"],
  run: (context, parsed) =>
    edit(
      context,
      parsed,
      parsed.words[0]!,
      async (desk) => async (current) => {
        const { id, issue } = current;
        const known = issue.documents.map((document) => document.path);
        const { path } = documentOf(current, await meantPath(desk, parsed.words[1]!, known));
        return {
          fields: { documents: issue.documents.filter((document) => document.path !== path) },
          events: [{ type: "doc.removed", payload: { issue_id: id, path } }],
        };
      },
      {
        done: ({ issue }) =>
          `documents: ${issue.documents.map((document) => printable(document.path, 200)).join(", ") || "none"}`,
        same: "it does not have it",
      },
    ),
};
