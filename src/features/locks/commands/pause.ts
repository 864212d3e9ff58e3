import type { Command } from "../../../cli/grammar/command";
import { pauseRepository } from "../../../coordinator/pausing";
import { pauseData, pauseText } from "../../../kernel/pause";
import { givenReason } from "./holding";

export const command: Command = {
  usage: "pause --reason <text>",
  about:
    "Stops all new leases of this repository, for an upgrade or an incident. What is held stays held: renewals,\nheartbeats, releases, transfers and writes under it go on. Whoever asks for something new is refused with\nE_PAUSED and your reason, and whoever waits goes on waiting. It holds in this clone, until 'cotenant resume'.\nFor people only (human: and admin: ids).",
  flags: { reason: { value: "<text>", meaning: "why; told to everybody who is refused, and logged" } },
  examples: ['cotenant pause --reason "moving the database" --agent-id human:ada'],
  words: { min: 0, max: 0 },
  isForPeople: true,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const reason = givenReason(parsed, "a pause");
    const { pause, changed } = await pauseRepository(await workspace.session("write"), reason);
    const text = `${changed ? "" : "already "}${pauseText(pause)}\n  next: cotenant resume, when it is over`;
    return { data: { ...pauseData(pause), changed }, text: context.quiet ? "" : text };
  },
};
