import type { Command } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { documentHistory, documentOf, MOST_COMMITS } from "../documents";
import { meant } from "../meant";
import { meantPath, namedPlace } from "./documents";
import { openDesk } from "./issues";

const DEFAULT_LIMIT = 50;

export const command: Command = {
  usage: "doc history <issue> <path> [--limit <n>]",
  about: "Lists the commits that changed a document of an issue, the newest first, also under former names.",
  flags: { limit: { value: "<n>", meaning: `how many at most (default ${DEFAULT_LIMIT})` } },
  examples: ["cotenant doc history 7x3k docs/login.md"],
  words: { min: 2, max: 2 },
  completes: ["issue", "path"],
  async run(context, parsed) {
    const limit = parsed.whole("limit") ?? DEFAULT_LIMIT;
    if (limit < 1 || limit > MOST_COMMITS)
      throw new CotenantError("E_LIMIT", `--limit ${limit} is not within 1 and ${MOST_COMMITS}`);
    const { repository } = await context.workspace();
    const desk = await openDesk(context);
    const found = await meant(desk.reader, parsed.words[0]!);
    const known = found.issue.documents.map(({ path }) => path);
    const document = documentOf(found, await meantPath(desk, parsed.words[1]!, known));
    // Also a path that is long gone must be one of this repository.
    const { path } = await namedPlace(desk, document.path);
    const git = desk.reader.sources.git!;
    const commits = await documentHistory(git, repository.worktreeRoot, path, limit);
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
    return { data: { issue_id: found.id, path, commits }, text };
  },
};
