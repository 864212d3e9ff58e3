import type { Command } from "../../../cli/grammar/command";
import { givenReason } from "../../locks/commands/holding";
import { pauseQueue, targetRef } from "../operations";
import { queuePauseJson, queuePauseText } from "./landing";

export const command: Command = {
  usage: "land pause --reason <text> [--target <branch>]",
  about:
    "Stops landings on a target: whoever runs the queue is told by whom and why, and a run that is under way ends before\nits next landing. Entries can be added meanwhile. By those whom policy.land allows.",
  flags: {
    target: {
      value: "<branch>",
      completes: "ref",
      meaning: "of the queue for this branch (else land.target, else main)",
    },
    reason: { value: "<text>", meaning: "why; told to everybody who is refused, and logged" },
  },
  examples: ['cotenant land pause --reason "release in progress" --agent-id human:ada'],
  words: { min: 0, max: 0 },
  isForPeople: true,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const reason = givenReason(parsed, "a pause");
    const target = await targetRef(workspace, parsed.text("target") ?? null);
    const { pause, changed } = await pauseQueue(workspace, await workspace.session("write"), {
      target,
      reason,
    });
    const text = `${changed ? "" : "already: "}${queuePauseText(pause)}\n  next: cotenant land resume, when it is over`;
    return { data: { ...queuePauseJson(pause), changed }, text: context.quiet ? "" : text };
  },
};
