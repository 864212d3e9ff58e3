import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { endOfFlags } from "../../../src/cli/grammar/parse";
import { findCommand } from "../../../src/cli/lookup";
import { runCommandLine, type Stage } from "../../../src/cli/program";
import { ERRORS, isErrorCode } from "../../../src/errors/registry";
import type { GitResult, LastingGit } from "../../../src/platform/git";
import { nodeGit } from "../../../src/platform/git-node";
import { NODE_TOOLS } from "../../../src/platform/node/this-machine";
import type { SimWorld } from "../../../testing/simulator";
import { quietWorld } from "../../store/stage";
import { expectThat, Finding } from "./finding";

export interface Said {
  readonly status: number;
  readonly out: string;
  readonly err: string;
  /** The error's code; null on success. */
  readonly code: string | null;
}

/** A real repository without a commit, and what the real Git says there. Its answers never change: asked once each. */
export function emptyRepository(scratch: string): LastingGit {
  const cwd = join(scratch, "empty");
  if (!existsSync(cwd)) execFileSync("git", ["init", "--quiet", cwd]);
  const real = nodeGit();
  const answers = new Map<string, Promise<GitResult>>();
  return {
    run: (args) => {
      // Ids of issues are in no commit, whichever they are.
      const question = args.join("\0").replace(/[0-9A-HJKMNP-TV-Z]{26}/g, "ID");
      const answer = answers.get(question) ?? Promise.resolve(real.run(args, { cwd }));
      answers.set(question, answer);
      return answer;
    },
    start: (args, options) => real.start(args, { ...options, cwd }),
  };
}

/** The command line in a simulated repository: the whole program but its process. */
export class CliRoom {
  readonly world: SimWorld;
  readonly #git: LastingGit;

  constructor(seed: number, git: LastingGit) {
    this.world = quietWorld(seed);
    this.#git = git;
    const { disk } = this.world;
    for (const path of ["/repo/.git/objects", "/repo/.git/refs/heads", "/repo/src", "/user"])
      disk.makePath(path);
    const write = (path: string, text: string) => disk.install(path, new TextEncoder().encode(text), 0o644);
    write("/repo/.git/HEAD", "ref: refs/heads/main\n");
    write("/repo/.git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
    write("/repo/.git/description", "");
    write("/repo/src/a.ts", "");
    write("/repo/README", "");
    disk.symlink("../outside", "/repo/link-out");
    disk.symlink("src", "/repo/link-in");
  }

  async run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Said> {
    let [out, err] = ["", ""];
    const { platform } = this.world.attach(`cotenant#${++started}`);
    const terminal = {
      isTerminal: false,
      color: false,
      columns: 100,
      out: (text: string) => {
        out += text;
        // Whoever watches has seen enough, and leaves.
        return !args.includes("--watch");
      },
      err: (text: string) => {
        err += text;
      },
    };
    const surroundings = () => ({
      platform,
      git: this.#git,
      tools: NODE_TOOLS,
      env: { COTENANT_AGENT_ID: "agent:a", ...env },
      cwd: "/repo",
      home: "/user",
      isTerminal: false,
    });
    const status = await this.#run(args, { terminal, surroundings });
    return { status, out, err, code: check(args, status, out, err) };
  }

  async #run(args: readonly string[], stage: Stage): Promise<number> {
    const before = { SIGINT: process.listeners("SIGINT"), SIGTERM: process.listeners("SIGTERM") };
    try {
      return await runCommandLine(args, stage);
    } catch (error) {
      throw new Finding(`a raw exception: ${error instanceof Error ? error.stack : String(error)}`);
    } finally {
      // A process that waits listens for signals until it ends, and this one does not end.
      for (const signal of ["SIGINT", "SIGTERM"] as const)
        for (const listener of process.listeners(signal))
          if (!before[signal].includes(listener)) process.removeListener(signal, listener);
    }
  }

  /** Every file with its content: whatever is written shows. */
  picture(): Map<string, string> {
    const { disk } = this.world;
    return new Map(disk.paths().map((path) => [path, Buffer.from(disk.peek(path) ?? []).toString("latin1")]));
  }
}

let started = 0;

/** What a terminal would obey instead of showing. */
const UNPRINTABLE = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** How checks end that found something: they answered, and the exit status says what the answer was. */
const REPORT_EXITS: readonly number[] = [1, ERRORS.E_CONFIG.exit, ERRORS.E_LOG_CORRUPT.exit];
const REPORT = /^\d+ errors?, \d+ warnings?\n$/m;

/** What a merge says that is left to a person; nothing where Git merges common ancestors. */
const LEFT_MARKS = /^(?:cotenant: [^\n]*: (?:merged as text|both sides changed)[^\n]*\n)*$/;

/** Every command line ends in a documented way, and says so in a documented form. */
function check(args: readonly string[], status: number, out: string, err: string): string | null {
  const words = `${out}\n${err}`;
  expectThat(!/^\s+at .*[:(]\d+/m.test(words), `a stack trace: ${words}`);
  const flags = args.slice(0, endOfFlags(args));
  const name = findCommand(args)?.name;
  // What follows the command that `exec` runs is that command's.
  const isExec = name === "exec" && status === 0 && !out.startsWith("{");
  if (flags.includes("--json") && !isExec) {
    const isStream = name === "events" && status === 0 && !flags.includes("--help");
    return isStream ? checkEvents(out) : checkJson(status, out);
  }
  // What completes a line separates its columns by tabs, for a shell to read.
  const shown = name === "complete" ? words.replaceAll("\t", " ") : words;
  expectThat(!UNPRINTABLE.test(shown), `control characters: ${JSON.stringify(words.slice(0, 500))}`);
  // A group without a verb shows its verbs.
  if (status === 0 || (status === 64 && err === "" && out.startsWith("usage: cotenant "))) return null;
  if (REPORT_EXITS.includes(status) && err === "" && REPORT.test(out)) return null;
  // Git's to call: it left marks for a person, and that is what this exit says.
  if (status === 1 && name === "merge-issue" && out === "" && LEFT_MARKS.test(err)) return null;
  if (status === 10 && name === "agent doctor" && /^(?:next|note): /m.test(out)) return null;
  const told = /^cotenant: [^\n]+ \((E_[A-Z_]+)\)\n {2}next: [^\n]+\n$/m.exec(err);
  expectThat(
    told !== null,
    `exit ${status} without code and next step: ${JSON.stringify(err.slice(0, 500))}`,
  );
  return checkCode(status, told[1]!, err);
}

/** A line for each event, and so none where none fits. */
function checkEvents(out: string): null {
  expectThat(out === "" || out.endsWith("\n"), `a line without an end: ${out.slice(-500)}`);
  for (const line of out.split("\n").slice(0, -1))
    expectThat(typeof JSON.parse(line).event_type === "string", `not an event: ${line}`);
  return null;
}

function checkJson(status: number, out: string): string | null {
  let document: {
    ok?: unknown;
    data?: { findings?: unknown; conflicts?: unknown; agents?: unknown };
    error?: { code?: string; message?: string; hint?: string };
  };
  try {
    document = JSON.parse(out) as typeof document;
  } catch {
    throw new Finding(`not one JSON document: ${out.slice(0, 500)}`);
  }
  if (REPORT_EXITS.includes(status) && document.ok === true && document.data?.findings !== undefined)
    return null;
  if (status === 1 && document.ok === true && document.data?.conflicts !== undefined) return null;
  if (status === 10 && document.ok === true && document.data?.agents !== undefined) return null;
  expectThat(document.ok === (status === 0), `exit ${status} and ok: ${document.ok}`);
  if (status === 0) return null;
  const { code = "", message = "", hint = "" } = document.error ?? {};
  expectThat(message !== "" && hint !== "", `${code} without words or a next step`);
  return checkCode(status, code, message);
}

function checkCode(status: number, code: string, words: string): string {
  if (!isErrorCode(code)) throw new Finding(`"${code}" is no registered code`);
  expectThat(code !== "E_INTERNAL", `E_INTERNAL: ${words}`);
  expectThat(ERRORS[code].exit === status, `${code} with exit ${status}`);
  return code;
}
