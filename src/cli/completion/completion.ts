import { usageError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { Command } from "../grammar/command";
import { SCRIPTS, SHELLS, type Shell } from "./scripts";

export const command: Command = {
  positional: "bash|zsh|fish",
  about:
    'Prints what your shell needs to complete commands, flags and their values, and the ids, keys and agents of this\nrepository. Its first lines say where to put it; for bash, ~/.bashrc: eval "$(cotenant completion bash)"',
  flags: {},
  examples: ["cotenant completion bash", "cotenant completion zsh", "cotenant completion fish"],
  words: { min: 1, max: 1 },
  completes: [{ choices: SHELLS }],
  remindsOfExpiry: false,
  async run(_, parsed) {
    const [shell] = parsed.words as [string];
    if (!(SHELLS as readonly string[]).includes(shell)) {
      throw usageError(`there is no completion for "${printable(shell)}"`, `use one of ${SHELLS.join(", ")}`);
    }
    const script = SCRIPTS[shell as Shell];
    return { data: { shell, script }, text: script };
  },
};
