import type { Command } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import { printable } from "../../../kernel/ids";
import { meant } from "../meant";
import { shortId } from "../short-id";
import { namedPlace } from "./documents";
import { openDesk } from "./issues";

export const command: Command = {
  usage: "doc list <issue>",
  about: "Lists an issue's documents, and whether each is in this worktree.",
  flags: {},
  examples: ["cotenant doc list 7x3k"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const desk = await openDesk(context);
    const { reader } = desk;
    const { id, issue } = await meant(reader, parsed.words[0]!);
    const documents: ((typeof issue.documents)[number] & { present: boolean })[] = [];
    for (const document of issue.documents) {
      const place = await namedPlace(desk, document.path).catch(() => null);
      const stat =
        place?.isFile === true ? await reader.sources.platform.files.stat(place.absolutePath) : null;
      documents.push({ ...document, present: stat?.kind === "file" });
    }
    const rows = documents.map(({ path, title, present, added_by }) => [
      printable(path, 200),
      present ? "" : "not here",
      printable(added_by, 80),
      printable(title ?? "", 200),
    ]);
    const short = shortId(id, await reader.ids());
    const text =
      rows.length === 0
        ? `${short} has no documents; 'cotenant doc add' names one`
        : columns(context.terminal, ["PATH", "", "ADDED BY", "TITLE"], rows);
    return { data: { issue_id: id, documents }, text };
  },
};
