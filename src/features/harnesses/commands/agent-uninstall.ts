import type { Command } from "../../../cli/grammar/command";
import { HARNESS_NAMES } from "../../../identity/harness";
import { printable } from "../../../kernel/ids";
import { leftToUser, planAgentRemoval, refuseRuledRemovals, removeAgents } from "../installation";
import type { Removal } from "../plan";
import { settleDoor } from "./agent-via";
import { deskFor, harnessesFrom, WHERE } from "./agents";

const WORDS: Readonly<Record<Removal["action"], string>> = {
  removed: "removed",
  taken_out: "our entries taken out",
};

export const command: Command = {
  usage: "agent uninstall <harness>… | --all [--user | --shared]",
  about:
    "Takes cotenant out of a harness's settings. Every file is afterwards as it was before, to the byte; what somebody\nchanged in it meanwhile stays. Files that are committed need --shared again, your own --user.",
  flags: WHERE,
  examples: ["cotenant agent uninstall claude", "cotenant agent uninstall --all"],
  words: { min: 0, max: HARNESS_NAMES.length },
  completes: HARNESS_NAMES.map(() => ({ choices: HARNESS_NAMES })),
  mendsConfig: true,
  async run(context, parsed) {
    const harnesses = harnessesFrom(parsed);
    const desk = await deskFor(context, parsed);
    const plan = await planAgentRemoval(desk, harnesses, parsed.has("shared"));
    await refuseRuledRemovals(desk, plan);
    await removeAgents(desk, plan);
    await settleDoor(desk);
    const { removals } = plan;
    const theirs = desk.level === "user" ? [] : await leftToUser(desk.surroundings, harnesses);
    const left = [...plan.left, ...theirs];
    const text = [
      removals.length === 0 ? "nothing of cotenant's to take out" : "taken out:",
      ...removals.map(({ found, action }) => `  ${printable(found.site.shown, 400)}: ${WORDS[action]}`),
      ...(left.length === 0 ? [] : ["left:"]),
      ...left.map(({ path, why }) => `  ${printable(path, 400)}: ${printable(why, 400)}`),
    ].join("\n");
    return {
      data: {
        changed: removals.length > 0,
        level: desk.level,
        agents: removals.map(({ found, action }) => ({
          harness: found.site.harness,
          path: found.file.path,
          action,
        })),
        left,
      },
      text: context.quiet ? "" : text,
    };
  },
};
