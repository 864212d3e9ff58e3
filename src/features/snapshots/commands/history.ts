import type { Command } from "../../../cli/grammar/command";
import { paint } from "../../../cli/terminal/render";
import { meantWorktree } from "../../worktrees/meant";
import { drawGraph } from "../graph";
import { noteText, readingRoom, snapshotJson, warningWords } from "./snapshots";

export const command: Command = {
  usage: "history [--all] [--worktree <worktree>] [--tag <name>] [--limit <n>]",
  about:
    "Shows the snapshots of this worktree, newest first, and what came after what. A ! marks those that are best effort\nor hold repositories by their commit alone. Writes nothing, and takes no lock.",
  flags: {
    all: { meaning: "those of every worktree, also of removed ones" },
    worktree: {
      value: "<worktree>",
      completes: "worktree",
      meaning: "those of this one: id, branch or directory",
    },
    tag: { value: "<name>", meaning: "only those with this tag" },
    limit: { value: "<n>", meaning: "at most so many" },
  },
  examples: ["cotenant history", "cotenant history --all --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const { terminal } = context;
    const all = await readingRoom(workspace).shelf.all();
    const limit = parsed.whole("limit") ?? Number.POSITIVE_INFINITY;
    const word = parsed.text("worktree");
    const wanted =
      word === undefined
        ? (await workspace.worktree("read")).identity.worktreeId
        : /^wt:[0-9a-f]{8}$/.test(word)
          ? word
          : (await meantWorktree(workspace, word)).worktreeId;
    const tag = parsed.text("tag");
    const shown = all
      .filter(({ worktree_id: id }) => (parsed.has("all") && word === undefined) || id === wanted)
      .filter(({ tags }) => tag === undefined || tags.includes(tag))
      .reverse()
      .slice(0, limit);
    const rows = drawGraph(shown).map(({ descriptor, lanes }) => {
      const { short_id: id, warning } = snapshotJson(descriptor, all);
      const at = descriptor.created_at.replace("T", " ").replace(/\.\d+Z$/, "Z");
      const where = parsed.has("all") ? `  ${descriptor.worktree_id}` : "";
      const mark = warning === true ? paint(terminal, "yellow", "!") : " ";
      const line = `${lanes} ${mark} ${paint(terminal, "bold", String(id))}  ${at}  ${descriptor.agent_id}${where}  ${noteText(descriptor)}`;
      return [
        line.trimEnd(),
        ...warningWords(descriptor).map((words) => paint(terminal, "dim", `      ${words}`)),
      ];
    });
    return {
      data: { snapshots: shown.map((descriptor) => snapshotJson(descriptor, all)) },
      text: rows.length === 0 ? "no snapshots" : rows.flat().join("\n"),
    };
  },
};
