import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { branchName } from "../../publish/branch-rules";
import { resumeQueue, targetRef } from "../operations";
import { queuePauseJson } from "./landing";

export const command: Command = {
  usage: "land resume [--target <branch>]",
  about: "Lets landings on a target go on after 'land pause'. By those whom policy.land allows.",
  flags: {
    target: {
      value: "<branch>",
      completes: "ref",
      meaning: "of the queue for this branch (else land.target, else main)",
    },
  },
  examples: ["cotenant land resume --agent-id human:ada"],
  words: { min: 0, max: 0 },
  isForPeople: true,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const target = await targetRef(workspace, parsed.text("target") ?? null);
    const ended = await resumeQueue(workspace, await workspace.session("write"), { target });
    const name = printable(branchName(target), 200);
    return {
      data: { target: branchName(target), ended: queuePauseJson(ended), changed: ended !== null },
      text: context.quiet
        ? ""
        : ended === null
          ? `landing on ${name} was not paused`
          : `landing on ${name} goes on`,
    };
  },
};
