import type { Command } from "../../../cli/grammar/command";
import { resumeRepository } from "../../../coordinator/pausing";
import { pauseData, pauseText } from "../../../kernel/pause";

export const command: Command = {
  usage: "resume",
  about:
    "Ends a pause: new leases are granted again, and whoever waited goes on, in order. Says so where nothing was paused.\nFor people only (human: and admin: ids).",
  flags: {},
  examples: ["cotenant resume --agent-id human:ada"],
  words: { min: 0, max: 0 },
  isForPeople: true,
  async run(context) {
    const workspace = await context.workspace();
    const ended = await resumeRepository(await workspace.session("write"));
    const text = ended === null ? "not paused" : `resumed; it was ${pauseText(ended)}`;
    return {
      data: { resumed: ended !== null, pause: ended === null ? null : pauseData(ended) },
      text: context.quiet ? "" : text,
    };
  },
};
