import type { Context } from "../../../cli/grammar/command";
import { paint } from "../../../cli/terminal/render";
import { cutTo, OwnScreen, sizeOf } from "../../../cli/terminal/screen";
import { Ending } from "../../../cli/terminal/streaming";
import type { Terminal } from "../../../cli/terminal/terminal";
import type { Subscription } from "../../../coordinator/contract";
import type { Workspace } from "../../../coordinator/workspace";
import { type Status, status } from "../operations/status";
import { statusData, statusLines } from "./status";

/** A busy log wakes us for everything; nobody reads faster than this. */
const AT_MOST_EVERY_MS = 100;

/** Shows the status again and again until the end has come. */
export async function watchStatus(context: Context, intervalMs: number): Promise<void> {
  const workspace = await context.workspace();
  const { timers } = workspace.surroundings.platform;
  const ending = new Ending();
  let wake = () => {};
  // What happens between a look and the sleep after it must not be slept over.
  let isRung = false;
  const rouse = () => {
    isRung = true;
    wake();
  };
  ending.signal.addEventListener("abort", rouse);
  process.on("SIGWINCH", rouse);
  let followed: Subscription | null = null;
  const view = viewFor(context, workspace, intervalMs);
  try {
    while (!ending.isHere) {
      isRung = false;
      const now = await status(workspace);
      if (!view.show(now)) break;
      followed ??= await workspace.followLog(rouse, now.sequence);
      await timers.sleep(AT_MOST_EVERY_MS).done;
      if (isRung || ending.isHere) continue;
      const sleep = timers.sleep(intervalMs - AT_MOST_EVERY_MS);
      wake = sleep.wake;
      await sleep.done;
    }
  } finally {
    view.close();
    followed?.close();
    process.off("SIGWINCH", rouse);
    ending.close();
  }
}

interface View {
  /** False when nobody looks any more. */
  show(status: Status): boolean;
  close(): void;
}

function viewFor(context: Context, workspace: Workspace, intervalMs: number): View {
  const { terminal, json } = context;
  const isDumb = workspace.surroundings.env["TERM"] === "dumb";
  return terminal.isTerminal && !json && !isDumb ? drawing(terminal, intervalMs) : printing(terminal, json);
}

function drawing(terminal: Terminal, intervalMs: number): View {
  const screen = new OwnScreen(terminal);
  const every = `every ${intervalMs / 1000} s, Ctrl-C ends`;
  return {
    show: (status) => {
      // Asked anew each time: the window may have changed.
      const { columns, rows } = sizeOf(process.stdout);
      const now = new Date().toISOString().slice(11, 19);
      const head = paint(terminal, "dim", `cotenant status, ${now} UTC (${every})`);
      const lines = [head, ...statusLines(status, { ...terminal, columns })];
      return screen.show(
        lines.map((line) => cutTo(line, columns)),
        rows,
      );
    },
    close: () => screen.close(),
  };
}

const TIMED = ["remaining_secs", "message"];

/** Only when something changed; time that merely passes is no change. */
function printing(terminal: Terminal, json: boolean): View {
  let before = "";
  return {
    show: (status) => {
      const data = statusData(status);
      const now = JSON.stringify(data, (name, value) => (TIMED.includes(name) ? undefined : value));
      if (now === before) return true;
      const isFirst = before === "";
      before = now;
      const text = statusLines(status, terminal).join("\n");
      return terminal.out(
        json ? `${JSON.stringify({ ok: true, data })}\n` : `${isFirst ? "" : "\n"}${text}\n`,
      );
    },
    close: () => {},
  };
}
