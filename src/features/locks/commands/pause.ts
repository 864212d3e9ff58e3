import type { Command } from "../../../cli/grammar/command";
import { pauseData, pauseText } from "../../../kernel/pause";
import { pause as pauseRepository, resume as resumeRepository } from "../operations";

export const pause: Command = {
  about:
    "Stops all new leases of this repository, for an upgrade or an incident. What is held stays held: renewals,\nheartbeats, releases, transfers and writes under it go on. Whoever asks for something new is refused with\nE_PAUSED and your reason, and whoever waits goes on waiting. It holds in this clone, until 'cotenant resume'.\nFor people only (human: and admin: ids).",
  flags: {
    reason: {
      value: "<text>",
      isRequired: true,
      meaning: "why; told to everybody who is refused, and logged",
    },
  },
  examples: ['cotenant pause --reason "moving the database" --agent-id human:ada'],
  words: { min: 0, max: 0 },
  isForPeople: true,
  async run(context, parsed) {
    const request = { reason: parsed.text("reason") };
    const { pause, changed } = await pauseRepository(await context.workspace(), request);
    const text = `${changed ? "" : "already "}${pauseText(pause)}\n  next: cotenant resume, when it is over`;
    return { data: { ...pauseData(pause), changed }, text: context.quiet ? "" : text };
  },
};

export const resume: Command = {
  about:
    "Ends a pause: new leases are granted again, and whoever waited goes on, in order. Says so where nothing was paused.\nFor people only (human: and admin: ids).",
  flags: {},
  examples: ["cotenant resume --agent-id human:ada"],
  words: { min: 0, max: 0 },
  isForPeople: true,
  async run(context) {
    const ended = await resumeRepository(await context.workspace());
    const text = ended === null ? "not paused" : `resumed; it was ${pauseText(ended)}`;
    return {
      data: { resumed: ended !== null, pause: ended === null ? null : pauseData(ended) },
      text: context.quiet ? "" : text,
    };
  },
};
