import * as fs from "node:fs";
import { dirname } from "node:path";
import { Script } from "node:vm";
import { listeningTerminal } from "../../support/listening-terminal";
import type * as WholeProgram from "../../support/whole-program";

export interface Answer {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * The program, run in this process without a process's start: for the hundreds of commands that set a stage and look at
 * what a crash has left.
 */
export interface Program {
  run(agent: string, args: readonly string[]): Promise<Answer>;
}

const MOST_MS = 30_000;
const heard = { 1: "", 2: "" };

/** Loaded once, and warm then: a command may find what another one has left in a module's own variables. */
export class LoadedProgram implements Program {
  readonly #whole: typeof WholeProgram;
  readonly #repo: string;

  constructor(file: string, repo: string) {
    this.#whole = require(file) as typeof WholeProgram;
    this.#repo = repo;
  }

  async run(agent: string, args: readonly string[]): Promise<Answer> {
    const { runCommandLine, thisMachine } = this.#whole;
    process.chdir(this.#repo);
    process.env["COTENANT_AGENT_ID"] = agent;
    const { terminal, heard } = listeningTerminal();
    const surroundings = () => ({ ...thisMachine(), isTerminal: false });
    const status = await runCommandLine(args, { terminal, surroundings });
    letGo(this.#repo);
    return { status, ...heard };
  }
}

/** Evaluated anew for each command, as every process does: the same code as `bin/cotenant` runs, and nothing left over. */
export class FreshProgram implements Program {
  readonly #file: string;
  readonly #script: Script;
  readonly #repo: string;

  constructor(file: string, repo: string) {
    const source = fs.readFileSync(file, "latin1");
    const wrapped = `(function (exports, require, module, __filename, __dirname) {${source}\n})`;
    this.#file = file;
    this.#repo = repo;
    this.#script = new Script(wrapped, { filename: file });
  }

  async run(agent: string, args: readonly string[]): Promise<Answer> {
    process.chdir(this.#repo);
    process.env["COTENANT_AGENT_ID"] = agent;
    process.argv.splice(1, process.argv.length, this.#file, ...args);
    Object.assign(heard, { 1: "", 2: "" });
    const forget = listenersSoFar();
    try {
      const status = await this.#ends();
      return { status, stdout: heard[1], stderr: heard[2] };
    } finally {
      forget();
      letGo(this.#repo);
    }
  }

  #ends(): Promise<number> {
    return new Promise((resolve, reject) => {
      const watchdog = setTimeout(() => reject(new Error(`no end: ${process.argv.slice(2)}`)), MOST_MS);
      process.exit = ((status: number) => {
        clearTimeout(watchdog);
        resolve(status);
      }) as typeof process.exit;
      const own = { exports: {} };
      this.#script.runInThisContext()(own.exports, require, own, this.#file, dirname(this.#file));
    });
  }
}

/** A listener keeps all of the program that it belongs to, a megabyte for each command. Those added since go. */
function listenersSoFar(): () => void {
  const before = new Map(process.eventNames().map((name) => [name, new Set(process.rawListeners(name))]));
  return () => {
    for (const name of process.eventNames())
      for (const listener of process.rawListeners(name))
        if (before.get(name)?.has(listener) !== true)
          process.removeListener(name, listener as (...args: unknown[]) => void);
  };
}

/** Closes, and so unlocks, what is open below a directory: the end of a process would have done so. */
export function letGo(directory: string): void {
  for (const fd of fs.readdirSync("/proc/self/fd")) {
    try {
      if (fs.readlinkSync(`/proc/self/fd/${fd}`).startsWith(`${directory}/`)) fs.closeSync(Number(fd));
    } catch {
      // The descriptor of the list itself.
    }
  }
}

/** From now on this process keeps what is written to standard output and standard error. */
export function listen(): void {
  const { writeSync } = fs;
  const listening = (fd: number, data: string | Uint8Array, ...rest: unknown[]): number => {
    if (fd !== 1 && fd !== 2) return (writeSync as (...args: unknown[]) => number)(fd, data, ...rest);
    heard[fd] += Buffer.from(data as Uint8Array).toString();
    return data.length;
  };
  Object.defineProperty(require("node:fs"), "writeSync", {
    value: listening,
    configurable: true,
    writable: true,
  });
}
