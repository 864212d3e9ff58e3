import * as fs from "node:fs";
import { CotenantError } from "../errors/cotenant-error";
import { DEFAULT_GIT_TIMEOUT_MS, type GitOptions, type GitResult, type LastingGit } from "./git";
import { startGitProcess } from "./git-process-node";

/**
 * Whatever the repository's or the user's configuration says, our own calls run no hooks, no file-system
 * monitor and no `ext::` transport: a repository under inspection must not be able to start programs.
 */
const SAFE = [
  "-c",
  "core.hooksPath=/dev/null",
  "-c",
  "core.fsmonitor=false",
  "-c",
  "protocol.ext.allow=never",
];
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
/** Git removes its lock files when it is asked to end; one that does not listen is killed after this. */
const GRACE_MS = 2_000;

export function nodeGit(inherited: Readonly<Record<string, string | undefined>> = process.env): LastingGit {
  return {
    run: (args, options) => run(args, options, environment(inherited, options.env)),
    start: (args, options) =>
      startGitProcess(
        [...SAFE, ...args],
        { ...options, environment: environment(inherited, options.env) },
        {
          notRun: (error) => notRun(String((error as { code?: unknown }).code), args, options.cwd, error),
          tooSlow: (timeoutMs) => tooSlow(args, timeoutMs),
        },
      ),
  };
}

function environment(
  inherited: Readonly<Record<string, string | undefined>>,
  given: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(inherited)) {
    if (value !== undefined && !/^GIT_/i.test(name)) env[name] = value;
  }
  return { ...env, LC_ALL: "C", GIT_TERMINAL_PROMPT: "0", ...given };
}

function run(args: readonly string[], options: GitOptions, env: Record<string, string>): Promise<GitResult> {
  // Costs a millisecond and a half: only for commands that ask Git.
  const { execFile } = require("node:child_process") as typeof import("node:child_process");
  const timeoutMs = options.timeoutMs ?? DEFAULT_GIT_TIMEOUT_MS;
  return new Promise((resolve, reject) => {
    let timedOut = false;
    const timers: NodeJS.Timeout[] = [];
    const child = execFile(
      "git",
      [...SAFE, ...args],
      { cwd: options.cwd, env, encoding: "buffer", maxBuffer: MAX_OUTPUT_BYTES, windowsHide: true },
      (error, stdout, stderr) => {
        for (const timer of timers) clearTimeout(timer);
        if (timedOut) return reject(tooSlow(args, timeoutMs));
        const code = (error as { code?: unknown } | null)?.code;
        if (typeof code === "string") return reject(notRun(code, args, options.cwd, error));
        if (child.signalCode !== null) return reject(killed(args, child.signalCode));
        resolve({ status: error === null ? 0 : (child.exitCode ?? -1), stdout, stderr: stderr.toString() });
      },
    );
    const kill = () => {
      child.kill("SIGKILL");
      // A grandchild may still hold the pipes; waiting for them would be waiting for it.
      child.stdout?.destroy();
      child.stderr?.destroy();
    };
    const stop = () => {
      timedOut = true;
      child.kill("SIGTERM");
      timers.push(setTimeout(kill, GRACE_MS));
    };
    timers.push(setTimeout(stop, timeoutMs));
    // Git may end without reading all of its input; its status says whether that is a failure.
    child.stdin?.on("error", () => {});
    child.stdin?.end(options.input ?? "");
  });
}

function tooSlow(args: readonly string[], timeoutMs: number): CotenantError {
  return new CotenantError("E_GIT_TIMEOUT", `git ${args[0] ?? ""} did not end within ${timeoutMs} ms`, {
    data: { command: ["git", ...args.slice(0, 8)], timeout_ms: timeoutMs },
  });
}

/** Half an answer is none: what it has not said must not be taken for "no" or for "nothing". */
function killed(args: readonly string[], signal: string): CotenantError {
  return new CotenantError("E_GIT", `git ${args[0] ?? ""} was ended by ${signal}`, {
    hint: "run it again; if it stays so, the machine may be short of memory",
    data: { command: ["git", ...args.slice(0, 8)], signal },
  });
}

function notRun(code: string, args: readonly string[], cwd: string, cause: unknown): CotenantError {
  const data = { command: ["git", ...args.slice(0, 8)], cwd, errno: code };
  // Node says ENOENT for a missing program and for a missing directory alike.
  if (code === "ENOENT" && fs.existsSync(cwd)) {
    return new CotenantError("E_GIT_TOO_OLD", "Git is missing: no program named git on the PATH", {
      data,
      cause,
    });
  }
  if (code === "EACCES") {
    const message = `no permission to run git in ${cwd}`;
    return new CotenantError("E_PERMISSION", message, { data, cause });
  }
  const why = code === "ENOENT" ? `the directory ${cwd} is gone` : `the system said ${code}`;
  return new CotenantError("E_GIT", `git ${args[0] ?? ""} could not be run: ${why}`, { data, cause });
}
