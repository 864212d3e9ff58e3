import type { Command } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import { shownLines } from "../../../cli/terminal/shown-text";
import { printable } from "../../../kernel/ids";
import { DEFAULT_HISTORY, doc } from "../operations/doc";
import type { ChangedIssue } from "../operations/issue-change";
import { openDesk, openRepositoryDesk } from "./desk";
import { changeCommand } from "./output";

const ONE_DOCUMENT = { words: { min: 2, max: 2 }, completes: ["issue", "path"] } as const;

function documentsText({ found }: ChangedIssue): string {
  const paths = found.issue.documents.map(({ path }) => printable(path, 200));
  return `documents: ${paths.join(", ") || "none"}`;
}

export const add = changeCommand({
  positional: "<issue> <path>",
  about:
    "Names a file of the repository as a document of an issue that you have claimed: a design, a plan, notes. The\nissue keeps its path; the file stays where it is.",
  flags: { title: { value: "<text>", meaning: "what it is, in a few words" } },
  examples: ['cotenant doc add 7x3k docs/login.md --title "How logging in works"'],
  ...ONE_DOCUMENT,
  change: (desk, request, parsed) =>
    doc.add(desk, { ...request, path: parsed.words[1]!, title: parsed.text("title") }),
  done: documentsText,
  same: () => "it has it already",
});

export const list: Command = {
  positional: "<issue>",
  about: "Lists an issue's documents, and whether each is in this worktree.",
  flags: {},
  examples: ["cotenant doc list 7x3k"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const { id, shortId, documents } = await doc.list(await openDesk(context), { issue: parsed.words[0]! });
    const rows = documents.map(({ path, title, present, added_by }) => [
      printable(path, 200),
      present ? "" : "not here",
      printable(added_by, 80),
      printable(title ?? "", 200),
    ]);
    const text =
      rows.length === 0
        ? `${shortId} has no documents; 'cotenant doc add' names one`
        : columns(context.terminal, ["PATH", "", "ADDED BY", "TITLE"], rows);
    return { data: { issue_id: id, documents }, text };
  },
};

export const show: Command = {
  positional: "<issue> <path>",
  about:
    "Shows a document of an issue: as this worktree has it, else as HEAD does, or as any commit does. Long ones are\ncut.",
  flags: { at: { value: "<commit>", completes: "ref", meaning: "as this commit, branch or tag has it" } },
  examples: ["cotenant doc show 7x3k docs/login.md", "cotenant doc show 7x3k docs/login.md --at HEAD"],
  ...ONE_DOCUMENT,
  async run(context, parsed) {
    const [issue, path] = parsed.words as [string, string];
    const request = { issue, path, at: parsed.text("at") };
    const { id, document, source, content } = await doc.show(await openDesk(context), request);
    const { text, bytes, isCut } = content;
    const name = `${printable(document.path, 400)} of issue ${id}, ${source}, as its authors wrote it`;
    const lines =
      text === null
        ? [`  ${name}: not text, ${bytes} bytes`]
        : shownLines(context.terminal, name, text, isCut);
    return {
      data: { issue_id: id, document, source, content: text, bytes, cut: isCut },
      text: lines.join("\n"),
    };
  },
};

export const history: Command = {
  positional: "<issue> <path>",
  about: "Lists the commits that changed a document of an issue, the newest first, also under former names.",
  flags: { limit: { value: "<n>", meaning: `how many at most (default ${DEFAULT_HISTORY})` } },
  examples: ["cotenant doc history 7x3k docs/login.md"],
  ...ONE_DOCUMENT,
  async run(context, parsed) {
    const [issue, named] = parsed.words as [string, string];
    const request = { issue, path: named, limit: parsed.whole("limit") };
    const { id, path, commits } = await doc.history(await openRepositoryDesk(context), request);
    const rows = commits.map(({ commit, at, author, subject, path: then }) => [
      commit.slice(0, 12),
      printable(at, 30),
      printable(author, 40),
      printable(subject, 120),
      then === path ? "" : printable(then, 200),
    ]);
    const text =
      rows.length === 0
        ? `${printable(path, 200)} is in no commit yet`
        : columns(context.terminal, ["COMMIT", "WHEN", "AUTHOR", "WHAT", "CALLED"], rows);
    return { data: { issue_id: id, path, commits }, text };
  },
};

export const remove = changeCommand({
  positional: "<issue> <path>",
  about: "Takes a document off an issue that you have claimed. The file itself stays.",
  examples: ["cotenant doc remove 7x3k docs/login.md"],
  ...ONE_DOCUMENT,
  change: (desk, request, { words }) => doc.remove(desk, { ...request, path: words[1]! }),
  done: documentsText,
  same: () => "it does not have it",
});
