/**
 * Writes V8's compiled code for a bundle, so that a command does not start by compiling itself.
 *
 *   node scripts/code-cache.cjs <bundle> <file to write> [<only commands that begin so> ...]
 *
 * Runs a few typical commands in a scratch repository first: what they compiled on the way is kept too.
 */
"use strict";
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const vm = require("node:vm");

const [bundle, target, ...beginnings] = process.argv.slice(2);
const dist = path.dirname(bundle);
const COMMANDS = [
  ["init"],
  ["lock", "acquire", "src/a.ts"],
  ["lock", "acquire", "src/a.ts"],
  ["lock", "acquire", "--dir", "src", "--agent-id", "agent:other"],
  ["lock", "status"],
  ["issue", "create", "--title", "x"],
  ["query", "available"],
  ["query", "available"],
  ["claim", "next"],
  ["claim", "status"],
  ["status"],
  ["lock", "release", "src/a.ts"],
  ["hook", "pre-commit"],
  ["hook", "prepare-commit-msg", "message"],
  ["hook", "post-commit"],
  ["guard", "check", "--harness", "claude", "--event", "PreToolUse", "--pid", String(process.pid)],
  ["guard", "check", "--harness", "claude", "--event", "PreToolUse", "--pid", String(process.pid)],
].filter((words) => beginnings.length === 0 || beginnings.some((start) => words.join(" ").startsWith(start)));

async function main() {
  const script = new vm.Script(fs.readFileSync(bundle, "latin1"), { filename: bundle });
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "cotenant-cache-"));
  const exit = process.exit;
  try {
    process.env.HOME = scratch;
    process.env.COTENANT_AGENT_ID = "agent:warm";
    execFileSync("git", ["init", "-q", scratch]);
    process.chdir(scratch);
    fs.mkdirSync(".git/cotenant", { mode: 0o700 });
    fs.writeFileSync("message", "x\n");
    execFileSync("git", ["add", "message"]);
    fs.writeSync = muted(fs.writeSync);
    fs.readSync = fed(fs.readSync, edit(scratch));
    for (const command of COMMANDS) {
      process.argv.splice(1, process.argv.length, bundle, ...command);
      await new Promise((resolve) => {
        process.exit = resolve;
        const own = { exports: {} };
        script.runInThisContext()(own.exports, require, own, bundle, dist);
      });
    }
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.writeFileSync(target, script.createCachedData());
  } finally {
    process.exit = exit;
    process.chdir(dist);
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

/** The commands' words go nowhere; everything else is written. */
function muted(writeSync) {
  return (fd, data, ...rest) => (fd === 1 || fd === 2 ? data.length : writeSync(fd, data, ...rest));
}

/** What a harness would say before it edits a file. */
function edit(cwd) {
  const tool = { tool_name: "Edit", tool_input: { file_path: path.join(cwd, "message") } };
  const event = { session_id: "warm-up", cwd, hook_event_name: "PreToolUse", ...tool };
  return Buffer.from(JSON.stringify(event));
}

/** Standard input says the same to every command: all of it at once, and then no more. */
function fed(readSync, input) {
  let isOver = false;
  return (fd, buffer, ...rest) => {
    if (fd !== 0) return readSync(fd, buffer, ...rest);
    isOver = !isOver;
    return isOver ? input.copy(buffer) : 0;
  };
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
