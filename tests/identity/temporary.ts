import { execFileSync, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterAll } from "vitest";
import type { Git } from "../../src/platform/git";
import { nodeGit } from "../../src/platform/git-node";

/** A directory of this test file's own, by its real path, gone when its tests are over. */
export function temporaryDirectory(): string {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "cotenant-identity-")));
  afterAll(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Real Git, as a user would run it. */
export function git(cwd: string, ...args: string[]): string {
  return execFileSync("git", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trimEnd();
}

export function tryGit(cwd: string, args: string[], env: Record<string, string> = {}) {
  const done = spawnSync("git", args, { cwd, encoding: "utf8", env: { ...process.env, ...env } });
  return { status: done.status, stdout: done.stdout, stderr: done.stderr };
}

export function makeRepository(directory: string, ...options: string[]): string {
  fs.mkdirSync(directory, { recursive: true });
  git(directory, "init", "--quiet", ...options, ".");
  return directory;
}

export function commit(directory: string, message = "a commit"): void {
  git(directory, "commit", "--quiet", "--allow-empty", "-m", message);
}

export function write(file: string, text = "text\n"): string {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
  return file;
}

/** The real one, counting how often it is asked: hot paths must never ask. */
export function countingGit(): Git & { asked: string[][] } {
  const real = nodeGit();
  const asked: string[][] = [];
  return {
    asked,
    run(args, options) {
      asked.push([...args]);
      return real.run(args, options);
    },
  };
}

/** Lines of a corpus: `#` begins a comment, `\xNN`, `\uNNNN` and `\\` stand for characters, `{a*300}` repeats. */
export function corpus(name: string): { text: string; rest: string[]; line: number }[] {
  const file = path.join(import.meta.dirname, "../../testing/corpora", name);
  return fs
    .readFileSync(file, "utf8")
    .split("\n")
    .map((content, index) => ({ content, line: index + 1 }))
    .filter(({ content }) => content !== "" && !content.startsWith("#"))
    .map(({ content, line }) => {
      const [text = "", ...rest] = content.split("\t").map(characters);
      return { text, rest, line };
    });
}

function characters(text: string): string {
  return text
    .replace(/\{(.+?)\*(\d+)\}/g, (_, part: string, times: string) => part.repeat(Number(times)))
    .replace(/\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|\\)/gi, (whole, two?: string, four?: string) =>
      whole === "\\\\" ? "\\" : String.fromCharCode(Number.parseInt((two ?? four)!, 16)),
    );
}
