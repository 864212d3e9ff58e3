import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { ERRORS, isErrorCode } from "../../../src/errors/registry";
import type { Prng } from "../../../testing/simulator";
import { corpus } from "./corpus";
import { expectThat } from "./finding";
import { Mutator } from "./mutator";
import type { Count } from "./target";

/** Characters of up to four bytes: Linux hands no argument of 128 KiB to a process. */
const LONGEST_ARGUMENT = 32_000;

/** A sample through a process of its own, where arguments are bytes and the disk is a disk. */
export class RealProgram {
  readonly #program: string;
  readonly #room: string;
  readonly #lines = corpus("command-lines/valid.txt").map(({ text }) => text.split(" "));

  constructor(program: string, scratch: string) {
    this.#program = program;
    this.#room = join(scratch, "real");
    if (existsSync(this.#room)) return;
    mkdirSync(join(this.#room, "repo/src"), { recursive: true });
    execFileSync("git", ["init", "--quiet", join(this.#room, "repo")]);
    symlinkSync("../outside", join(this.#room, "repo/link-out"));
  }

  try(prng: Prng, count: Count): void {
    const mutator = new Mutator(prng);
    const args = [...prng.pick(this.#lines)].filter((arg) => arg !== "ISSUE");
    const at = prng.below(args.length + 1);
    const hostile = mutator.hostileText().replaceAll("\0", "").slice(0, LONGEST_ARGUMENT);
    args.splice(at, 0, prng.chance(0.7) ? hostile : "x");
    // Octal, so that the shell makes bytes of it which are no UTF-8.
    const bytes = [...mutator.prng.bytes(4)]
      .map((byte) => `\\${(byte || 1).toString(8).padStart(3, "0")}`)
      .join("");
    const script = `exec "$0" "$@" "$(printf '${bytes}')"`;
    const { status, stdout, stderr, signal, error } = spawnSync(
      "/bin/sh",
      ["-c", script, process.execPath, this.#program, ...harmless(args)],
      {
        cwd: join(this.#room, "repo"),
        env: {
          PATH: process.env["PATH"] ?? "",
          HOME: join(this.#room, "home"),
          COTENANT_AGENT_ID: "agent:a",
        },
        encoding: "utf8",
        timeout: 120_000,
      },
    );
    const shown = `${JSON.stringify(args).slice(0, 300)} + ${bytes}`;
    expectThat(signal === null && status !== null, `${shown}: did not end by itself (${signal ?? error})`);
    expectThat(!/^\s+at .*:\d+/m.test(stdout + stderr), `${shown}: a stack trace: ${stderr.slice(0, 500)}`);
    const code =
      /\((E_[A-Z_]+)\)\n {2}next: /.exec(stderr)?.[1] ?? /"code":"(E_\w+)"/.exec(stdout)?.[1] ?? null;
    const isHelp = status === 64 && stdout.startsWith("usage: ");
    if (status !== 0 && !isHelp) {
      expectThat(
        code !== null && isErrorCode(code),
        `${shown}: exit ${status} without a code: ${stderr.slice(0, 500)}`,
      );
      expectThat(
        ERRORS[code].exit === status && code !== "E_INTERNAL",
        `${shown}: ${code} with exit ${status}`,
      );
    }
    expectThat(readdirSync(this.#room).sort().join() === "repo", `${shown}: wrote outside`);
    count("through a process");
  }
}

function harmless(args: readonly string[]): string[] {
  return args.filter((arg) => !["demo", "--wait"].includes(arg));
}
