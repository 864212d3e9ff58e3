import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { planRemoval, removeHooks } from "../installation/install";
import type { Removal } from "../installation/removal";
import { howFrom, openHooks, refuseRuledRemoval, SERVER } from "./hooks";

const WORDS: Readonly<Record<Removal["action"], string>> = {
  removed: "removed",
  restored: "restored as it was",
  taken_out: "our lines taken out",
};

export const command: Command = {
  usage: "hooks uninstall [--shared] [--force] [--server]",
  about:
    "Takes cotenant out of this clone's hooks, wherever they are. Every file is afterwards as it was before, to the byte;\nwhat somebody changed in it meanwhile stays.",
  flags: {
    shared: { meaning: "also from hooks that are committed, for everybody" },
    force: { meaning: "also where other repositories may find their hooks" },
    ...SERVER,
  },
  examples: ["cotenant hooks uninstall"],
  words: { min: 0, max: 0 },
  leavesHooks: true,
  mendsConfig: true,
  async run(context, parsed) {
    const desk = await openHooks(context, parsed.has("server"));
    const plans = await planRemoval(desk, howFrom(parsed));
    if (parsed.has("shared")) await refuseRuledRemoval(desk, plans);
    await removeHooks(desk, plans);
    const { removals, left } = plans;
    const text = [
      removals.length === 0 ? "no hooks of cotenant's to take out" : "taken out:",
      ...removals.map(({ path, action }) => `  ${printable(path, 400)}: ${WORDS[action]}`),
      ...(left.length === 0 ? [] : ["left:"]),
      ...left.map(({ path, why }) => `  ${printable(path, 400)}: ${why}`),
    ].join("\n");
    return {
      data: {
        changed: removals.length > 0,
        hooks: removals.map(({ hook, path, action }) => ({ hook, path, action })),
        left,
      },
      text: context.quiet ? "" : text,
    };
  },
};
