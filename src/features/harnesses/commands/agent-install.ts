import type { Command } from "../../../cli/grammar/command";
import { verbatim } from "../../../cli/terminal/render";
import { HARNESS_NAMES } from "../../../identity/harness";
import { printable } from "../../../kernel/ids";
import { HARNESSES } from "../../guard/harness";
import { installAgents, planAgents } from "../installation";
import type { SitePlan } from "../plan";
import { settleDoor, VIA, viaFrom } from "./agent-via";
import { deskFor, harnessesFrom, installedFrom, setUpRemarks, WHERE } from "./agents";

const WORDS: Readonly<Record<SitePlan["action"], string>> = {
  created: "new",
  added: "added to what is there",
  updated: "brought up to date",
  unchanged: "as it was",
};

export const command: Command = {
  usage: "agent install <harness>… | --all [--user | --shared] [--via <way>] [--print]",
  about:
    "Has a coding agent's harness ask cotenant before each write, so that the agent holds what it changes and never types a\nlock command. By default in settings of this worktree that are not committed; --shared takes those that are, --user your\nown. What is there stays, comments and all. Doing it again changes nothing; 'agent uninstall' brings back every byte.\n\nBy default a program is started for each event. With --via daemon its hooks ask the daemon of this repository, which is quicker,\nand run the program where it does not answer. With --via http Claude Code asks the daemon itself before each tool, which is quickest,\nand refuses where it does not answer. Without --via it is the program again.\nHarnesses: claude, codex, cursor, gemini, copilot, opencode, qwen, pi.",
  flags: { ...WHERE, ...VIA, print: { meaning: "show what would be written, and write nothing" } },
  examples: [
    "cotenant agent install claude",
    "cotenant agent install codex cursor --print",
    "cotenant agent install --all --user",
    "cotenant agent install claude --via daemon",
  ],
  words: { min: 0, max: HARNESS_NAMES.length },
  completes: HARNESS_NAMES.map(() => ({ choices: HARNESS_NAMES })),
  async run(context, parsed) {
    const isDry = parsed.has("print");
    const harnesses = harnessesFrom(parsed);
    const desk = await deskFor(context, parsed);
    const chosen = await viaFrom(context, parsed, desk, harnesses);
    const how = { program: installedFrom(context), shared: parsed.has("shared"), via: chosen.via };
    const planned = await planAgents(desk, harnesses, how);
    if (!isDry) await chosen.prepare();
    const plans = isDry ? planned : await installAgents(desk, harnesses, how);
    if (!isDry) await settleDoor(desk);
    const hasChanged = plans.some(({ after }) => after !== null);
    const remarks = [
      ...new Set(plans.flatMap((plan) => (plan.after === null ? [] : plan.remarks))),
      ...(hasChanged ? chosen.remarks : []),
      ...(await setUpRemarks(context, desk, parsed.has("shared"))),
    ];
    const lines = isDry
      ? plans.flatMap(printed)
      : hasChanged
        ? ["installed:", ...plans.map(line)]
        : ["agents are installed; nothing changed"];
    const next =
      hasChanged && !isDry ? ["next: start the agent's session anew, then run: cotenant agent doctor"] : [];
    return {
      data: {
        printed: isDry,
        changed: hasChanged && !isDry,
        level: desk.level,
        agents: plans.map((plan) => agentJson(plan, isDry)),
        remarks,
      },
      text:
        context.quiet && !isDry
          ? ""
          : [...lines, ...remarks.map((remark) => `note: ${remark}`), ...next].join("\n"),
    };
  },
};

function agentJson({ site, action, file, after, record, isShared, hides }: SitePlan, isDry: boolean) {
  return {
    harness: site.harness,
    action,
    path: file.path,
    via: record?.via ?? "program",
    shared: isShared,
    hidden_from_git: hides,
    content: isDry ? after : null,
  };
}

function line({ site, action }: SitePlan): string {
  const { title } = HARNESSES[site.harness];
  return `  ${title.padEnd(11)}  ${printable(site.shown, 400)}: ${WORDS[action]}`;
}

function printed({ site, action, after }: SitePlan): string[] {
  const head = `# ${printable(site.path, 400)}: ${WORDS[action]}`;
  if (after === null) return [head];
  const text = after.replace(/\r?\n$/, "");
  return [head, ...text.split(/\r?\n/).map((line) => verbatim(line)), ""];
}
