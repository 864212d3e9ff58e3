import type { Command, Context } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { Ending } from "../../../cli/terminal/streaming";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { count, shellWord } from "../../../kernel/printing";
import { dispatchLogs, isAtWork, readLog } from "../operations";

const HELP = "cotenant dispatch logs --help";
const LOOK_EVERY_MS = 300;
const LONGEST_LINE = 10_000;

export const command: Command = {
  usage: "dispatch logs <issue> [--attempt <n>] [--follow] [--paths]",
  about:
    "Prints what an agent printed while it worked on an issue, the last attempt unless another is named, without anything\nthat could move the cursor.",
  flags: {
    attempt: { value: "<n>", meaning: "that attempt; 1 is the first of which a log is kept" },
    follow: { meaning: "go on as it is written, until the agent has ended" },
    paths: { meaning: "print where the logs are, instead of what is in them" },
  },
  examples: ["cotenant dispatch logs 7k3f --follow  # exits 4"],
  words: { min: 1, max: 1, what: "an issue" },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const { issueId, paths } = await dispatchLogs(workspace, parsed.words[0]!);
    if (parsed.has("paths"))
      return {
        data: { issue_id: issueId, paths },
        text: paths.map((path) => printable(path, 1_000)).join("\n"),
      };
    const attempt = parsed.whole("attempt") ?? paths.length;
    const path = paths[attempt - 1];
    if (path === undefined)
      throw new CotenantError(
        "E_NOT_FOUND",
        `there are logs of ${count(paths.length, "attempt")}, and none of attempt ${attempt}`,
        { hint: `see them: cotenant dispatch logs ${shellWord(parsed.words[0]!)} --paths` },
      );
    if (parsed.has("follow") && context.json)
      throw usage("--follow prints as it comes, and --json all at once", HELP);
    const decoder = new TextDecoder();
    let { bytes, end } = await readLog(workspace, path, 0);
    const text = decoder.decode(bytes, { stream: true });
    if (!parsed.has("follow"))
      return { data: { issue_id: issueId, paths, attempt, text }, text: cleaned(text).replace(/\n$/, "") };
    const ending = new Ending();
    const { timers } = workspace.surroundings.platform;
    let isHeard = show(context, text);
    while (isHeard && !ending.isHere) {
      const wasAtWork = await isAtWork(workspace, path);
      ({ bytes, end } = await readLog(workspace, path, end));
      if (bytes.length === 0 && !wasAtWork) break;
      isHeard = show(context, decoder.decode(bytes, { stream: true }));
      if (bytes.length > 0) continue;
      const sleep = timers.sleep(LOOK_EVERY_MS);
      ending.signal.addEventListener("abort", sleep.wake, { once: true });
      await sleep.done;
    }
    ending.close();
    return { data: { issue_id: issueId, paths, attempt }, text: "", isStreamed: true };
  },
};

function show({ terminal }: Context, text: string): boolean {
  return text === "" || terminal.out(cleaned(text));
}

function cleaned(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .split("\n")
    .map((line) => printable(line.replaceAll("\t", "    "), LONGEST_LINE))
    .join("\n");
}
