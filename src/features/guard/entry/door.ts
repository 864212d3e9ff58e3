import { nodeTerminal } from "../../../cli/terminal/terminal";
import { nodeGit } from "../../../platform/git-node";
import { nodePlatform } from "../../../platform/node/node";
import { isHarnessName } from "../report";
import { runHook } from "../run";
import type { BegunWait, World } from "../world";
import { defaultEvent } from "./events";
import { readHookInput } from "./request";
import { worldOf } from "./world-of";

const VERBS = new Set(["check", "stop", "end"]);
const VALUED = new Set(["--harness", "--event", "--pid", "--deadline", "--via"]);

/**
 * The way in for harnesses, which come often and in a hurry: the command lines that `agent install` writes, and nothing
 * else, without the rest of the program. Null for every other command line: then the whole program reads it.
 */
export async function throughGuardDoor(args: readonly string[]): Promise<number | null> {
  const [first, verb = "", ...rest] = args;
  if (first !== "guard" || !VERBS.has(verb)) return null;
  const given = new Map<string, string>();
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i]!;
    if (VALUED.has(word) && rest[i + 1] !== undefined) given.set(word, rest[++i]!);
    // What kind of end it was, the event says.
    else if (word !== "--failed") return null;
  }
  const harness = given.get("--harness");
  const pid = number(given.get("--pid"));
  const deadline = number(given.get("--deadline"));
  if (harness === undefined || !isHarnessName(harness) || pid === "wrong" || deadline === "wrong")
    return null;
  const event = given.get("--event") ?? defaultEvent(harness, `guard ${verb}`);
  const machine = {
    platform: nodePlatform(),
    git: nodeGit(),
    env: process.env as Readonly<Record<string, string | undefined>>,
    home: process.env["HOME"] || (require("node:os") as typeof import("node:os")).homedir() || null,
    cwd: currentDirectory(),
  };
  const call = { harness, event, patienceMs: deadline === null ? null : deadline * 1000 };
  const world = { ...worldOf(machine, pid), onAlarm, onWait };
  const { stdout, stderr, status } = await runHook(world, call, readHookInput());
  const terminal = nodeTerminal();
  if (stdout !== "" && verb === "check") terminal.out(stdout);
  if (stderr !== "" && verb === "check") terminal.err(stderr);
  const via = given.get("--via");
  if (via !== undefined) {
    const { startForHooks } = await import("../../../daemon/start-for-hooks");
    await startForHooks(via, process.argv[1] ?? "", machine);
  }
  return verb === "check" ? status : 0;
}

type GuardAlarm = Parameters<NonNullable<World["onAlarm"]>>[0];

const ALARM = Symbol.for("cotenant.guard-alarm");
const holder = globalThis as { [ALARM]?: GuardAlarm };

/**
 * A small program may have handed over to this one, in the same process: it waits for ever, and must not answer when its own
 * time is up. A promise that fails while nobody waits for it is a failure of the check.
 */
function onAlarm(alarm: GuardAlarm): void {
  holder[ALARM]?.switchOff();
  holder[ALARM] = alarm;
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

function number(text: string | undefined): number | null | "wrong" {
  if (text === undefined) return null;
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : "wrong";
}
