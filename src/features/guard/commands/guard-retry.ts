import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { isoOf } from "../contention";
import { worldOf } from "../entry/world-of";
import { retryBlocked, type SeenContention } from "../operations";

export const command: Command = {
  positional: "[<path>…]",
  about:
    "Looks whether those who are blocked may go on. Where the file is free by now, that is put on record, and the agent's\nnext attempt is granted. Where it is still held: exit 11, with the report. The first retry is the guard's own: before\nits time nothing is done, and a file that is free is granted at the next attempt.",
  flags: {},
  examples: ["cotenant guard retry", "cotenant guard retry src/app.ts"],
  words: { min: 0, max: 100 },
  completes: ["path"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const world = worldOf(workspace.surroundings, null);
    const { free, waiting } = await retryBlocked(workspace, world, parsed.words);
    const lines = [
      ...free.map(
        ({ contention: { path, agentId } }) => `${printable(path, 200)} is free: tell ${agentId} to go on`,
      ),
      ...waiting.map(({ contention: { path, agentId, retryAt }, isFree }) =>
        isFree
          ? `${printable(path, 200)} is free: the next attempt of ${agentId} is granted`
          : `${printable(path, 200)}: ${agentId} tries again by itself at ${isoOf(retryAt)}`,
      ),
    ];
    return {
      data: {
        resolved: free.map(({ contention }) => named(contention)),
        waiting: waiting.map(({ contention, isFree }) => ({
          ...named(contention),
          free: isFree,
          retry_at: isoOf(contention.retryAt),
        })),
      },
      text: lines.length === 0 ? "nobody is blocked" : lines.join("\n"),
    };
  },
};

function named({ path, agentId }: SeenContention["contention"]): Record<string, unknown> {
  return { path, agent_id: agentId };
}
