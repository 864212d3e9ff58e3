import { randomInt } from "node:crypto";
import type { Command, Context, Parsed } from "../../cli/grammar/command";
import { usage } from "../../cli/grammar/parse";
import { paint } from "../../cli/terminal/render";
import { runDemo } from "../demo";
import { Interrupted } from "../interrupts";
import { isFine, toJson, toText } from "../report";
import { runWarden } from "../warden";
import { runWorker } from "../worker";

const DEFAULTS = { seconds: 20, agents: 8 };
const LIMITS = { seconds: [1, 600], agents: [2, 32], seed: [0, 0xffff_ffff] } as const;

export const command: Command = {
  about:
    "Lets agents, each a process of its own, share a scratch repository: they claim issues, lock files, wait,\nare killed, stopped and evicted, while every promise is checked. Exits with 1 when one is broken.\nYour own repository and configuration are not touched.",
  flags: {
    seconds: { value: "<n>", meaning: `how long they work (default ${DEFAULTS.seconds})` },
    agents: { value: "<n>", meaning: `how many, 2 to 32 (default ${DEFAULTS.agents})` },
    seed: { value: "<n>", meaning: "make the same choices as an earlier run" },
    keep: { meaning: "keep the scratch repository and say where it is" },
  },
  examples: ["cotenant demo --seconds 3", "cotenant demo --seconds 6 --seed 7 --json"],
  // One word, for the demo's own processes, which are told everything else on standard input.
  words: { min: 0, max: 1 },
  remindsOfExpiry: false,
  async run(context, parsed) {
    const role = parsed.words[0];
    if (role === "worker" && !process.stdin.isTTY) return runWorker();
    if (role === "warden" && !process.stdin.isTTY) return runWarden();
    if (role !== undefined) throw usage("'demo' takes options only", "cotenant demo --help");
    return perform(context, parsed);
  },
};

async function perform(context: Context, parsed: Parsed) {
  const { terminal, json, quiet, program } = context;
  const style = (name: Parameters<typeof paint>[1], text: string) => paint(terminal, name, text);
  const isDumb = process.env["TERM"] === "dumb";
  try {
    const outcome = await runDemo({
      seconds: limited(parsed, "seconds") ?? DEFAULTS.seconds,
      agents: limited(parsed, "agents") ?? DEFAULTS.agents,
      seed: limited(parsed, "seed") ?? randomInt(100_000),
      keep: parsed.has("keep"),
      program,
      show: json || quiet ? "nothing" : terminal.isTerminal && !isDumb ? "view" : "log",
      paint: style,
      out: (text) => terminal.out(text),
    });
    const fine = isFine(outcome);
    const gap = terminal.isTerminal || quiet ? "" : "\n";
    const text = quiet && fine ? (outcome.kept ?? "") : gap + toText(outcome, style);
    return { data: toJson(outcome), text, exit: fine ? 0 : 1 };
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    const text = `${error.message}; ${parsed.has("keep") ? "the scratch repository is kept" : "nothing is left behind"}`;
    return { data: { interrupted: true }, text, exit: error.exit };
  }
}

function limited(parsed: Parsed, flag: keyof typeof LIMITS): number | undefined {
  const value = parsed.whole(flag);
  const [least, most] = LIMITS[flag];
  if (value === undefined || (value >= least && value <= most)) return value;
  throw usage(`--${flag} is from ${least} to ${most}, not ${value}`, "cotenant demo --help");
}
