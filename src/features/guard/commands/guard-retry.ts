import type { Command } from "../../../cli/grammar/command";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { heldPath, isoOf, ownersOf } from "../contention";
import { ownPlace } from "../entry/session";
import { type Seen, seenContentions } from "../overview";
import { recordFreed } from "../records";
import { stillHeldBy } from "../words";
import { reachOf } from "../yielding";

export const command: Command = {
  usage: "guard retry [<path>…]",
  about:
    "Looks whether those who are blocked may go on. Where the file is free by now, that is put on record, and the agent's\nnext attempt is granted. Where it is still held: exit 11, with the report. The first retry is the guard's own: before\nits time nothing is done, and a file that is free is granted at the next attempt.",
  flags: {},
  examples: ["cotenant guard retry", "cotenant guard retry src/app.ts"],
  words: { min: 0, max: 100 },
  completes: ["path"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const reach = reachOf(workspace.config.values["guard.across_worktrees"]);
    const paths = new Set<string>();
    for (const word of parsed.words) paths.add((await workspace.path(word)).path);
    const all = (await seenContentions(workspace.coordinator, reach)).filter(
      ({ contention }) =>
        paths.size === 0 ||
        paths.has(contention.path) ||
        ownersOf(contention).some((owner) => paths.has(heldPath(contention, owner))),
    );
    const free = all.filter(({ isFree, contention }) => isFree && contention.state !== "waiting");
    const held = all.filter(({ isFree, contention }) => !isFree && contention.state !== "waiting");
    const place = free.length === 0 ? null : await ownPlace(context, parsed);
    if (place !== null)
      await recordFreed(
        place,
        free.map(({ contention }) => contention),
      );
    if (held.length > 0) throw stillHeld(held);
    const waiting = all.filter(({ contention }) => contention.state === "waiting");
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

function named({ path, agentId }: Seen["contention"]): Record<string, unknown> {
  return { path, agent_id: agentId };
}

function stillHeld(held: readonly Seen[]): CotenantError {
  const words = stillHeldBy(held.map(({ contention }) => contention));
  return new CotenantError("E_BLOCKED", words, { data: { reports: held.flatMap(({ reports }) => reports) } });
}
