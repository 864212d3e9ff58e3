import { spawn } from "node:child_process";
import type { Hook, HookEnd } from "./dialect";

/** Variables by which programs know that they run inside a harness: each session sets its own, and sees no other's. */
const MARKERS = /^(?:CLAUDE|CODEX|CURSOR|GEMINI|COPILOT|OPENCODE|QWEN|PI_)/;

export function cleanEnv(more: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !MARKERS.test(name));
  return { ...Object.fromEntries(kept), ...more };
}

/** As a harness runs a hook: a shell for a line, one JSON object on standard input, and no more patience than it has. */
export function runHook(
  { line, args, timeoutMs }: Pick<Hook, "line" | "args" | "timeoutMs">,
  input: object,
  setting: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<HookEnd> {
  return new Promise((resolve) => {
    const [file, words] = args === null ? ["/bin/sh", ["-c", line]] : [line, args];
    const child = spawn(file, words, { ...setting, stdio: ["pipe", "pipe", "pipe"] });
    let [stdout, stderr, timedOut] = ["", "", false];
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill("SIGKILL");
    }, timeoutMs);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.stdin.on("error", () => {});
    child.on("error", (error) => resolve({ status: 127, stdout: "", stderr: error.message, timedOut }));
    child.on("close", (status) => {
      clearTimeout(timer);
      resolve({ status, stdout, stderr, timedOut });
    });
    child.stdin.end(JSON.stringify(input));
  });
}
