import type { Command } from "../../cli/grammar/command";
import { usage } from "../../cli/grammar/parse";
import { printable } from "../../kernel/ids";
import { controlMark } from "../place";
import { type Supervisor, stepsFor, unitFor } from "../units";

const SUPERVISORS: readonly Supervisor[] = ["systemd", "launchd"];

export const command: Command = {
  usage: "daemon install --print [systemd | launchd]",
  about:
    "Prints what makes systemd (as a user unit) or launchd start the daemon of this repository when you log in, and where to put\nit. Nothing is written. Without a name it is the one that this machine has.",
  flags: { print: { meaning: "print it; the only thing there is" } },
  examples: ["cotenant daemon install --print", "cotenant daemon install --print launchd"],
  words: { min: 0, max: 1 },
  completes: [{ choices: SUPERVISORS }],
  async run(context, parsed) {
    if (!parsed.has("print"))
      throw usage("cotenant does not install it; add --print to see the unit and where to put it");
    const word = parsed.words[0] ?? (process.platform === "darwin" ? "launchd" : "systemd");
    const supervisor = SUPERVISORS.find((known) => known === word);
    if (supervisor === undefined)
      throw usage(
        `there is no "${printable(word)}" here: it is systemd or launchd`,
        "cotenant daemon install --help",
      );
    const { repository } = await context.workspace();
    const unit = unitFor(supervisor, {
      node: process.execPath,
      program: context.program,
      root: repository.mainWorktreeRoot ?? repository.worktreeRoot,
      mark: controlMark(repository.commonDir),
    });
    if (!context.quiet) {
      context.note("if a daemon is running, end it first: cotenant daemon stop");
      context.note("to install it, run:");
      for (const line of stepsFor(supervisor, unit)) context.note(`  ${line}`);
    }
    const { home } = context.surroundings();
    const file = home === null ? `~/${unit.file}` : `${home}/${unit.file}`;
    return { data: { supervisor, ...unit, file }, text: unit.text.trimEnd() };
  },
};
