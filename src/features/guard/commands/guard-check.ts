import type { Command, Output } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { count } from "../../../kernel/printing";
import { CHANGE_FLAGS, changeFrom } from "../../locks/commands/flags";
import { answerHook, HOOK_FLAGS, harnessPid } from "../entry/flags";
import { worldOf } from "../entry/world-of";
import { checkPaths } from "../operations";

const MOST_PATIENCE_MS = 2 * 3_600_000;

export const command: Command = {
  usage: "guard check --harness <name> | guard check <path>…",
  about:
    "What a harness calls before each write. It reads the harness's event from standard input, takes the leases for that\nsession, and prints nothing; a refusal comes in the harness's own form. With paths instead, a script asks for itself:\nthe leases are bound to the process that runs the command, and a refusal is an error like any other.",
  flags: {
    ...HOOK_FLAGS,
    deadline: { value: "<secs>", meaning: "when the harness gives up waiting for an answer" },
    wait: { meaning: "with paths: wait for the retry, as a hook does" },
    ...CHANGE_FLAGS,
  },
  examples: ["cotenant guard check src/app.ts", "cotenant guard check --harness claude < event.json"],
  words: { min: 0, max: 1_000 },
  completes: ["path"],
  remindsOfExpiry: false,
  mendsConfig: true,
  async run(context, parsed): Promise<Output> {
    const answer = await answerHook(context, parsed, "check");
    if (answer !== null) {
      if (context.json) return { data: { ...answer }, text: "" };
      context.terminal.out(answer.stdout);
      context.terminal.err(answer.stderr);
      return { data: {}, text: "", exit: answer.status, isStreamed: true };
    }
    if (parsed.words.length === 0)
      throw usage("say which harness calls, or name paths", "cotenant guard check --help");
    const workspace = await context.workspace();
    const world = worldOf(workspace.surroundings, harnessPid(parsed));
    const { held, pid, remarks, changed, replayed } = await checkPaths(workspace, world, {
      paths: parsed.words,
      patienceMs: parsed.has("wait") ? MOST_PATIENCE_MS : 0,
      ...changeFrom(parsed),
    });
    if (remarks !== null) context.note(remarks);
    return {
      data: { files: held, remarks, changed, replayed },
      text: `${count(held.length, "file")} held while process ${pid} runs`,
    };
  },
};
