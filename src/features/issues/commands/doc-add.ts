import type { Command } from "../../../cli/grammar/command";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { MAX_DOCUMENT_TITLE, MOST_DOCUMENTS } from "../documents";
import { typedPlace } from "./documents";
import { EDIT_FLAGS, edit } from "./editing";

export const command: Command = {
  usage: "doc add <issue> <path> [--title <text>]",
  about:
    "Names a file of the repository as a document of an issue that you have claimed: a design, a plan, notes. The\nissue keeps its path; the file stays where it is.",
  flags: { ...EDIT_FLAGS, title: { value: "<text>", meaning: "what it is, in a few words" } },
  examples: ['cotenant doc add 7x3k docs/login.md --title "How logging in works"'],
  words: { min: 2, max: 2 },
  completes: ["issue", "path"],
  async run(context, parsed) {
    const title = titleOf(parsed.text("title"));
    return edit(
      context,
      parsed,
      parsed.words[0]!,
      async (desk) => {
        const { path, isFile, absolutePath } = await typedPlace(desk, parsed.words[1]!);
        const { platform } = desk.reader.sources;
        const stat = isFile ? await platform.files.stat(absolutePath) : null;
        if (stat?.kind !== "file") throw noFile(parsed.words[1]!);
        const by = desk.workspace === null ? "" : (await desk.workspace.agent()).agentId;
        const at = new Date(platform.clock.wallMs()).toISOString();
        return ({ id, issue }) => {
          const before = issue.documents.find((document) => document.path === path);
          if (before !== undefined && (title === null || before.title === title)) return null;
          const added = { path, title, added_at: before?.added_at ?? at, added_by: before?.added_by ?? by };
          const documents = [...issue.documents.filter((document) => document.path !== path), added];
          if (documents.length > MOST_DOCUMENTS)
            throw new CotenantError("E_LIMIT", `an issue has at most ${MOST_DOCUMENTS} documents`);
          return {
            fields: { documents },
            events: [{ type: "doc.added", payload: { issue_id: id, path, title } }],
          };
        };
      },
      {
        done: ({ issue }) =>
          `documents: ${issue.documents.map((document) => printable(document.path, 200)).join(", ")}`,
        same: "it has it already",
      },
    );
  },
};

function titleOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  const title = text.trim();
  if (title.length > MAX_DOCUMENT_TITLE)
    throw new CotenantError("E_LIMIT", `a document's title has at most ${MAX_DOCUMENT_TITLE} characters`);
  if (/[\p{Cc}\u2028\u2029]/u.test(title))
    throw new CotenantError("E_USAGE", "the title contains control characters", { hint: "leave them out" });
  return title;
}

function noFile(text: string): CotenantError {
  return new CotenantError("E_NOT_FOUND", `there is no file "${printable(text, 200)}"`, {
    hint: "write it first; a document is a file of the repository",
    data: { path: printable(text, 1_000) },
  });
}
