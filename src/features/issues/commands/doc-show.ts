import type { Command } from "../../../cli/grammar/command";
import { shownLines } from "../../../cli/terminal/shown-text";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { commitNamed, committedContent, type DocumentContent, documentOf, fileContent } from "../documents";
import { meant } from "../meant";
import { meantPath, namedPlace } from "./documents";
import { type Desk, openDesk } from "./issues";

export const command: Command = {
  usage: "doc show <issue> <path> [--at <commit>]",
  about:
    "Shows a document of an issue: as this worktree has it, else as HEAD does, or as any commit does. Long ones are\ncut.",
  flags: { at: { value: "<commit>", completes: "ref", meaning: "as this commit, branch or tag has it" } },
  examples: ["cotenant doc show 7x3k docs/login.md", "cotenant doc show 7x3k docs/login.md --at HEAD"],
  words: { min: 2, max: 2 },
  completes: ["issue", "path"],
  async run(context, parsed) {
    const desk = await openDesk(context);
    const found = await meant(desk.reader, parsed.words[0]!);
    const known = found.issue.documents.map(({ path }) => path);
    const document = documentOf(found, await meantPath(desk, parsed.words[1]!, known));
    const { source, content } = await read(desk, document.path, parsed.text("at"));
    const { text, bytes, isCut } = content;
    const name = `${printable(document.path, 400)} of issue ${found.id}, ${source}, as its authors wrote it`;
    const lines =
      text === null
        ? [`  ${name}: not text, ${bytes} bytes`]
        : shownLines(context.terminal, name, text, isCut);
    return {
      data: { issue_id: found.id, document, source, content: text, bytes, cut: isCut },
      text: lines.join("\n"),
    };
  },
};

async function read(
  desk: Desk,
  path: string,
  at: string | undefined,
): Promise<{ source: string; content: DocumentContent }> {
  const { git, here, platform } = desk.reader.sources;
  if (at !== undefined) {
    if (git === null)
      throw new CotenantError("E_NOT_A_REPO", "outside Git there are no commits to look at", {
        hint: "leave out --at",
      });
    const commit = await commitNamed(git, here.root, at);
    const content = await committedContent(git, here.root, commit, path);
    if (content !== null) return { source: commit, content };
    throw new CotenantError("E_NOT_FOUND", `${printable(at, 80)} has no ${printable(path, 200)}`, {
      hint: "'cotenant doc history' shows the commits that changed it",
      data: { path: printable(path, 1_000), commit },
    });
  }
  const place = await namedPlace(desk, path);
  const content = place.isFile ? await fileContent(platform, place.absolutePath) : null;
  if (content !== null) return { source: "worktree", content };
  const committed = git === null ? null : await committedContent(git, here.root, "HEAD", path);
  if (committed !== null) return { source: "HEAD", content: committed };
  throw new CotenantError(
    "E_NOT_FOUND",
    `${printable(path, 200)} is neither in this worktree nor in its HEAD`,
    {
      hint: "look at another branch with --at <branch>, or in the worktree where the issue is worked on",
      data: { path: printable(path, 1_000) },
    },
  );
}
