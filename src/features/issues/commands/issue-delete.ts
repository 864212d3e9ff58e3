import type { Command } from "../../../cli/grammar/command";
import { CotenantError } from "../../../errors/cotenant-error";
import { releaseIfHeld } from "../../locks/commands/releasing";
import { EDIT_FLAGS, edit } from "./editing";

export const command: Command = {
  usage: "issue delete <id> [--reason <text>]",
  about:
    "Deletes an issue that you have claimed. Only from the main worktree, where everybody sees it. A tombstone\nstays, so that no old worktree brings it back. Your claim is given back with it.",
  flags: { ...EDIT_FLAGS, reason: { value: "<text>", meaning: "why; kept in the tombstone" } },
  examples: ['cotenant issue delete 7x3k --reason "a duplicate of 9k2m"'],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const reason = parsed.text("reason") ?? null;
    return edit(
      context,
      parsed,
      parsed.words[0]!,
      async ({ reader, workspace }) => {
        const { mainRoot, here } = reader.sources;
        if (workspace !== null && mainRoot !== null && mainRoot !== here.root)
          throw new CotenantError("E_POLICY", "an issue is deleted from the main worktree only", {
            hint: `cd ${mainRoot}, claim it there, and delete it`,
            data: { main_worktree: mainRoot },
          });
        return ({ issue }) => ({
          fields: {
            deleted_at: new Date(reader.sources.platform.clock.wallMs()).toISOString(),
            ...(reason === null ? {} : { resolution: reason }),
          },
          events: [{ type: "issue.deleted", payload: { issue_id: issue.id, reason } }],
        });
      },
      {
        done: () => "deleted",
        same: "it was deleted already",
        // Nothing is left to work on.
        afterwards: async ({ workspace }, { id }) =>
          workspace !== null && (await releaseIfHeld(parsed, workspace, id))
            ? ", and its claim is given back"
            : "",
      },
    );
  },
};
