import { constants } from "node:os";
import type { Command, Context, Output } from "../../../cli/grammar/command";
import { CotenantError, fileFailure, usageError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { shellQuoted } from "../../../kernel/printing";
import { type ExecEnvironment, exec as makeCaches } from "../operations";

const PASSED_ON = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"] as const;

export const exec: Command = {
  usage: "exec [--print-env] [--] <command> [<argument>]…",
  about:
    "Runs a command with caches and outputs of the agent's own, in .agent-cache/<agent>/ of this worktree, so that\nagents in one checkout do not trample on each other's. Its exit status is the command's; signals are passed on.\ncotenant's docs/EXEC.md says which tools honour it, and how.",
  flags: { "print-env": { meaning: "print the variables as shell code instead of running anything" } },
  examples: ["cotenant exec -- node --version", "cotenant exec --print-env"],
  words: { min: 0, max: Number.POSITIVE_INFINITY },
  remindsOfExpiry: false,
  // Whatever follows the command's name is the command's own, with `--` or without.
  prepare: (args) => separated(args),
  async run(context, parsed) {
    const [file = "", ...args] = parsed.words;
    if (file === "" && !parsed.has("print-env"))
      throw usageError("no command was named to run", "for example cotenant exec -- npm test");
    const made = await makeCaches(await context.workspace());
    if (parsed.has("print-env")) return printed(made);
    const { agentId, place, variables } = made;
    const ended = await runCommand(context, file, args, { ...process.env, ...variables });
    return {
      data: { agent_id: agentId, cache_root: place, command: [file, ...args], ...ended },
      text: "",
      exit: ended.exit_status ?? 128 + (constants.signals[ended.signal as NodeJS.Signals] ?? 0),
    };
  },
};

const WITH_VALUE = new Set(["--agent-id", "--session"]);

/** Flags of ours come before the command; the first word that is none begins it. */
function separated(args: readonly string[]): string[] {
  let at = 0;
  while (args[at]?.startsWith("--") && args[at] !== "--") at += WITH_VALUE.has(args[at]!) ? 2 : 1;
  return at >= args.length || args[at] === "--" ? [...args] : [...args.slice(0, at), "--", ...args.slice(at)];
}

function printed({ agentId, place, variables }: ExecEnvironment): Output {
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${shellQuoted(value)}`);
  return { data: { agent_id: agentId, cache_root: place, environment: variables }, text: lines.join("\n") };
}

interface Ended {
  readonly exit_status: number | null;
  readonly signal: string | null;
}

/** With --json our own answer is alone on standard output: the command's goes to standard error. */
function runCommand(
  context: Context,
  file: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Ended> {
  const { spawn } = require("node:child_process") as typeof import("node:child_process");
  return new Promise((resolve, reject) => {
    const pass = (signal: NodeJS.Signals) => child.kill(signal);
    // Before it starts: a signal that comes in between would end only this process.
    for (const signal of PASSED_ON) process.on(signal, pass);
    const child = spawn(file, args, { env, stdio: ["inherit", context.json ? 2 : "inherit", "inherit"] });
    const over = () => {
      for (const signal of PASSED_ON) process.off(signal, pass);
    };
    child.once("error", (error) => {
      over();
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT" && code !== "EACCES")
        return reject(fileFailure(error, "starting a command", file));
      const name = printable(file, 200);
      const data = { command: file };
      reject(
        code === "ENOENT"
          ? new CotenantError("E_NO_COMMAND", `${name}: there is no such command`, { data })
          : new CotenantError("E_NOT_EXECUTABLE", `${name}: it may not be run`, { data }),
      );
    });
    child.once("exit", (status, signal) => {
      over();
      resolve({ exit_status: status, signal });
    });
  });
}
