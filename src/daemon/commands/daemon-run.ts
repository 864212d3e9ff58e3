import type { Command } from "../../cli/grammar/command";
import { version } from "../../cli/grammar/version";
import { Ending } from "../../cli/terminal/streaming";
import { CotenantError } from "../../errors/cotenant-error";
import { thisBuild } from "../build";
import { Daemon } from "../daemon";
import { daemonEnvironment } from "../environment";
import { daemonPlace, readRecord } from "../place";

export const command: Command = {
  about:
    "Runs the daemon of this repository in the foreground, until Ctrl-C: for systemd, launchd, and for looking at it.\nOne runs per repository and user; where one is running already, it is refused.",
  flags: {
    "idle-exit": {
      value: "<secs>",
      meaning: "end after this long without anything to do; 0: never (default)",
    },
    detached: { meaning: "as 'daemon start' runs it: ends when idle, as daemon.idle_exit_secs says" },
  },
  examples: ["cotenant daemon run"],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  leavesHooks: true,
  async run(context, parsed) {
    const { config } = await context.workspace();
    const isDetached = parsed.has("detached");
    const idle = parsed.whole("idle-exit") ?? (isDetached ? config.values["daemon.idle_exit_secs"] : 0);
    // Before anybody can see that it is there: whoever sees it may end it.
    const ending = new Ending();
    try {
      const daemon = await Daemon.start({
        surroundings: () => {
          const surroundings = context.surroundings();
          return { ...surroundings, env: daemonEnvironment(surroundings.env) };
        },
        version: version(),
        program: context.program,
        build: thisBuild(),
        buildNow: thisBuild,
        idleSecs: idle === 0 ? null : idle,
        relaunch: isDetached ? context.program : null,
      });
      // Whoever stands in a worktree with no parent left is taken for something that an agent's command has started.
      if (isDetached) process.chdir("/");
      if (daemon === null) throw runningAlready((await context.workspace()).repository.controlDir);
      if (!context.quiet && !isDetached) context.note(`listening for ${daemon.repository}; Ctrl-C ends it`);
      void ending.wait().then(() => daemon.stop("asked to by a signal"));
      const why = await daemon.ended();
      return { data: { is_running: false, why }, text: context.quiet ? "" : `ended: ${why}` };
    } finally {
      ending.close();
    }
  },
};

function runningAlready(controlDir: string): CotenantError {
  const pid = readRecord(daemonPlace(controlDir))?.pid ?? null;
  return new CotenantError(
    "E_DAEMON",
    `a daemon is running already${pid === null ? "" : `: process ${pid}`}`,
    {
      hint: "leave it running, or end it first: cotenant daemon stop",
      data: { pid },
    },
  );
}
