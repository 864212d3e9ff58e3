import type { ChildProcess } from "node:child_process";
import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import type { CommandEnd, CommandRequest, Commands } from "../commands";
import { withoutGitPlaces } from "../git-places";
import { markedWith, membersOf } from "./processes";

/** Between being asked to end and being made to. */
const GRACE_MS = 3_000;
const LOOK_EVERY_MS = 20;
const INTERRUPTS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The descriptor whose other end only this process has: it is closed with this process, however that ends. */
const LEASH = 3;
/**
 * What a bound command starts has this in its environment, by which it is found also in a group or session of its own: shells of
 * coding agents begin one for each command.
 */
const MARK = "COTENANT_COMMAND";
/**
 * Runs the line that it is given, beside a shell that waits at the leash and whose id the leash tells. A word means that
 * nothing of the command is left; an end without one, that this process has ended: then all of the command is ended, asked first.
 */
const BOUND = `(trap '' TERM INT HUP; read -r word <&${LEASH} && exit
read -r own rest </proc/self/stat
end() {
  for place in /proc/[0-9]*; do
    [ "$place" != "/proc/$own" ] && tr '\\0' '\\n' <"$place/environ" | grep -qx "${MARK}=$${MARK}" && kill -s "$1" "\${place#/proc/}"
  done
  kill -s "$1" -- -$$
}
end TERM; sleep 3; end KILL) >/dev/null 2>&1 &
echo $! >&${LEASH}
exec /bin/sh -c "$1" ${LEASH}<&-`;

export function nodeCommands(inherited: NodeJS.ProcessEnv = process.env): Commands {
  return { run: (request) => run(request, environment(inherited, request.env)) };
}

function environment(inherited: NodeJS.ProcessEnv, given: CommandRequest["env"]): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...withoutGitPlaces(inherited) };
  for (const [name, value] of Object.entries(given))
    if (value === undefined) delete env[name];
    else env[name] = value;
  return env;
}

async function run(request: CommandRequest, env: NodeJS.ProcessEnv): Promise<CommandEnd> {
  const { spawn } = require("node:child_process") as typeof import("node:child_process");
  const { randomBytes } = require("node:crypto") as typeof import("node:crypto");
  const startedAt = performance.now();
  const tail = new Tail(request.keepBytes);
  // Before it starts: a signal that comes in between would end this process and leave the command behind.
  const onSignal = (signal: NodeJS.Signals) => stop.because(signal);
  const heeded = request.leavesSignals === true ? [] : INTERRUPTS;
  for (const signal of heeded) process.on(signal, onSignal);
  const isBound = request.isBound === true;
  const mark = isBound ? randomBytes(12).toString("hex") : null;
  // A group of its own: whatever it starts can be ended with it.
  const child = spawn("/bin/sh", isBound ? ["-c", BOUND, "sh", request.line] : ["-c", request.line], {
    cwd: request.cwd,
    env: mark === null ? env : { ...env, [MARK]: mark },
    detached: true,
    stdio: ["ignore", "pipe", "pipe", ...(isBound ? ["pipe" as const] : []), ...(request.inherit ?? [])],
    windowsHide: true,
  });
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => {
      tail.add(chunk);
      request.onOutput?.(chunk);
    });
  const leash = isBound ? new Leash(child.stdio[LEASH] as import("node:stream").Duplex) : null;
  const stop = new Stop(child, mark);
  const timer = setTimeout(() => stop.because("timeout"), Math.min(request.timeoutMs, 0x7fff_ffff));
  const onAbort = () => stop.because("abort");
  request.signal?.addEventListener("abort", onAbort, { once: true });
  if (request.signal?.aborted === true) onAbort();
  let ended: { exitStatus: number | null; signal: string | null };
  try {
    ended = await exitOf(child, request.cwd);
    await stop.clearAway(leash);
  } finally {
    clearTimeout(timer);
    request.signal?.removeEventListener("abort", onAbort);
    for (const signal of heeded) process.off(signal, onSignal);
    leash?.close();
  }
  if (stop.interrupt !== null) await endLike(stop.interrupt);
  return {
    ...ended,
    timedOut: stop.reason === "timeout",
    durationMs: Math.round(performance.now() - startedAt),
    output: tail.text(),
    outputBytes: tail.bytes,
  };
}

function exitOf(
  child: ChildProcess,
  cwd: string,
): Promise<{ exitStatus: number | null; signal: string | null }> {
  return new Promise((resolve, reject) => {
    child.once("error", (error) => reject(notStarted(error, cwd)));
    child.once("exit", (exitStatus, signal) => resolve({ exitStatus, signal }));
  });
}

/** Who waits at it ends the command's group when this process is killed. */
class Leash {
  /** The process that waits; null until it has said so. */
  holder: number | null = null;
  readonly #stream: import("node:stream").Duplex;
  #said = "";

  constructor(stream: import("node:stream").Duplex) {
    this.#stream = stream;
    // Nobody reads it any more where the whole group was killed.
    stream.on("error", () => {});
    stream.on("data", (chunk: Buffer) => {
      this.#said += chunk.toString("latin1");
      if (this.#said.endsWith("\n")) this.holder = Number(this.#said);
    });
  }

  release(): void {
    if (!this.#stream.writableEnded) this.#stream.end("over\n");
  }

  close(): void {
    this.#stream.destroy();
  }
}

/** Ends a command with all that it has started: asked first, then made to. */
class Stop {
  reason: "timeout" | "abort" | NodeJS.Signals | null = null;
  readonly #child: ChildProcess;
  readonly #mark: string | null;
  #killer: NodeJS.Timeout | null = null;

  constructor(child: ChildProcess, mark: string | null) {
    this.#child = child;
    this.#mark = mark === null ? null : `${MARK}=${mark}`;
  }

  get interrupt(): NodeJS.Signals | null {
    return this.reason === "timeout" || this.reason === "abort" ? null : this.reason;
  }

  because(reason: NonNullable<Stop["reason"]>): void {
    this.reason ??= reason;
    this.#tell("SIGTERM");
    this.#killer ??= setTimeout(() => this.#tell("SIGKILL"), GRACE_MS);
  }

  /**
   * After the command itself: what it left in the background, and what of its output is still in the pipes. Who waits at
   * the leash is let go last: this process may be killed meanwhile. Where the members of a group cannot be listed, nobody
   * could tell it from what the command has left, and it goes first.
   */
  async clearAway(leash: Leash | null): Promise<void> {
    if (leash !== null && this.#members() === null) leash.release();
    await this.#clear(() => leash?.holder ?? null);
    leash?.release();
    await this.#clear(() => null);
    if (this.#killer !== null) clearTimeout(this.#killer);
    await drained(this.#child);
  }

  async #clear(spared: () => number | null): Promise<void> {
    const killAt = performance.now() + GRACE_MS;
    // Where nobody waits for orphans, they stay in the table for ever, killed as they are.
    const giveUpAt = killAt + 1_000;
    for (let isAsked = false; this.#isThere(spared()) && performance.now() < giveUpAt; isAsked = true) {
      if (performance.now() > killAt) this.#tell("SIGKILL");
      else if (!isAsked) this.#tell("SIGTERM");
      await later(LOOK_EVERY_MS);
    }
  }

  #isThere(spared: number | null): boolean {
    const group = this.#members();
    const isGroupThere = group === null ? this.#signalGroup(0) : group.some((pid) => pid !== spared);
    return isGroupThere || this.#strays().some((pid) => pid !== spared);
  }

  /** Null where they cannot be listed. */
  #members(): number[] | null {
    const { pid } = this.#child;
    return pid === undefined ? [] : membersOf(pid);
  }

  /** What has gone into a group of its own. */
  #strays(): number[] {
    return this.#mark === null ? [] : markedWith(this.#mark);
  }

  #tell(signal: NodeJS.Signals): void {
    // First: who waits at the leash is among them, and of the group.
    for (const pid of this.#strays()) signalled(pid, signal);
    this.#signalGroup(signal);
  }

  #signalGroup(signal: NodeJS.Signals | 0): boolean {
    const { pid } = this.#child;
    return pid !== undefined && signalled(-pid, signal);
  }
}

/** False where nobody is left to hear it. */
function signalled(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** A process that left the group may hold the pipes open for ever: it is not waited for. */
async function drained(child: ChildProcess): Promise<void> {
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null);
  const ends = streams.map((stream) =>
    stream.closed ? Promise.resolve() : new Promise<void>((resolve) => stream.once("close", () => resolve())),
  );
  // Timers come first after a pause of this process: the pipes are read once more before they are given up.
  const late = later(500).then(() => new Promise<void>((resolve) => setImmediate(resolve)));
  await Promise.race([Promise.all(ends), late]);
  for (const stream of streams) stream.destroy();
}

/** The signal was meant for us too, and now nothing is left behind. */
async function endLike(signal: NodeJS.Signals): Promise<never> {
  process.kill(process.pid, signal);
  await later(1_000);
  throw new CotenantError("E_INTERNAL", `${signal} did not end this process`);
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The last so many bytes of what comes. */
class Tail {
  bytes = 0;
  readonly #keep: number;
  readonly #chunks: Buffer[] = [];
  #kept = 0;

  constructor(keep: number) {
    this.#keep = keep;
  }

  add(chunk: Buffer): void {
    this.bytes += chunk.length;
    this.#chunks.push(chunk);
    this.#kept += chunk.length;
    while (this.#kept - this.#chunks[0]!.length >= this.#keep) this.#kept -= this.#chunks.shift()!.length;
  }

  text(): string {
    const whole = Buffer.concat(this.#chunks);
    let from = Math.max(0, whole.length - this.#keep);
    // Not in the middle of a character.
    while (from > 0 && from < whole.length && (whole[from]! & 0xc0) === 0x80) from++;
    return new TextDecoder().decode(whole.subarray(from));
  }
}

/** Node says ENOENT for a missing shell and for a missing directory alike. */
function notStarted(error: Error, cwd: string): CotenantError {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "ENOENT") return fileFailure(error, "starting a command", cwd);
  return new CotenantError(
    "E_DISK",
    `a command could not be started in ${cwd}: it is gone, or there is no shell`,
    {
      data: { path: cwd, errno: code },
      cause: error,
    },
  );
}
