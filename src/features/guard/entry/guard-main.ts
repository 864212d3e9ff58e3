import * as os from "node:os";
import { nodeTerminal } from "../../../cli/terminal/terminal";
import { nodeGit } from "../../../platform/git-node";
import { nodePlatform } from "../../../platform/node/node";
import { answerEvent } from "../run";
import type { BegunWait, World } from "../world";
import type { BegunCall } from "./quick-guard";
import { worldOf } from "./world-of";

/** Answers a harness's call that was read already, and ends the process. */
export async function answerCall({ call, event }: BegunCall): Promise<void> {
  const { verb, via, harnessPid } = call;
  const machine = {
    platform: nodePlatform(),
    git: nodeGit(),
    env: process.env as Readonly<Record<string, string | undefined>>,
    home: process.env["HOME"] || os.homedir() || null,
    cwd: currentDirectory(),
  };
  const world: World = { ...worldOf(machine, harnessPid), onAlarm, onWait };
  const { stdout, stderr, status } = await answerEvent(world, call, event);
  const terminal = nodeTerminal();
  if (stdout !== "" && verb === "check") terminal.out(stdout);
  if (stderr !== "" && verb === "check") terminal.err(stderr);
  if (via !== null) {
    const { startForHooks } = await import("../../../daemon/start-for-hooks");
    await startForHooks(via, process.argv[1] ?? "", machine);
  }
  process.exit(verb === "check" ? status : 0);
}

/** A promise that fails while nobody waits for it is a failure of the check. */
function onAlarm(alarm: Parameters<NonNullable<World["onAlarm"]>>[0]): void {
  process.on("unhandledRejection", (error) => alarm.ring(error));
}

/** A line for our plugins, which show it at once and take it out of what the guard says. */
function onWait(waits: BegunWait): void {
  process.stderr.write(`${JSON.stringify({ waits })}\n`);
}

/** A directory that is gone is no reason to stop an agent: its event says where it stands. */
function currentDirectory(): string {
  try {
    return process.cwd();
  } catch {
    return "/";
  }
}
