/**
 * Writes V8's compiled code for a bundle, so that a command does not start by compiling itself.
 *
 *   node scripts/code-cache.cjs <bundle> <file to write> [<only commands that begin so> ... | --whole]
 *
 * Runs a few typical commands in a scratch repository first: what they compiled on the way is kept too. With --whole
 * everything is compiled, and nothing runs.
 */
"use strict";
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const v8 = require("node:v8");
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
  ["snapshot"],
  ["snapshot"],
  ["hook", "pre-commit"],
  ["hook", "prepare-commit-msg", "message"],
  ["hook", "post-commit"],
  ...[
    ["1", "src/a.ts"],
    ["1", "src/a.ts"],
    ["2", "src/b.ts"],
    ["2", "src/a.ts"],
  ].map(([session, file]) => guardCheck(session, "Write", { file_path: file })),
  // In another order: a program that cannot read shell commands is not to be warmed up with one.
  guardCheck("3", "Bash", { command: "cd src && echo x > c.ts | tee d.ts" }, true),
].filter((words) =>
  // The whole program need not know what has a program of its own by heart: all of it is read at each start.
  beginnings.length === 0
    ? words[0] !== "snapshot"
    : beginnings.some((start) => words.join(" ").startsWith(start)),
);

/** What a harness would say comes as if it had been read already. */
function guardCheck(session, tool, input, isShell = false) {
  const said = {
    session_id: session.repeat(8),
    hook_event_name: "PreToolUse",
    tool_name: tool,
    tool_input: input,
  };
  const harness = ["--harness", "claude"];
  const limits = ["--deadline", "1", "--pid", String(process.pid)];
  const words = ["guard", "check", ...(isShell ? [...limits, ...harness] : [...harness, ...limits])];
  return Object.assign(words, { input: JSON.stringify(said) });
}

/** V8 takes compiled code only from a process with its own flags: they are set back before it is written. */
function compiledWhole() {
  v8.setFlagsFromString("--no-lazy");
  const script = new vm.Script(fs.readFileSync(bundle, "latin1"), { filename: bundle });
  v8.setFlagsFromString("--lazy");
  return script;
}

async function compiledByUse() {
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
    for (const command of COMMANDS) {
      globalThis[Symbol.for("cotenant.hook-input")] = command.input && { text: command.input };
      process.argv.splice(1, process.argv.length, bundle, ...command);
      await new Promise((resolve) => {
        process.exit = resolve;
        const own = { exports: {} };
        script.runInThisContext()(own.exports, require, own, bundle, dist);
      });
    }
    return script.createCachedData();
  } finally {
    process.exit = exit;
    process.chdir(dist);
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

async function main() {
  const isWhole = beginnings[0] === "--whole";
  const code = isWhole ? compiledWhole().createCachedData() : await compiledByUse();
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.writeFileSync(target, code);
}

/** The commands' words go nowhere; everything else is written. */
function muted(writeSync) {
  return (fd, data, ...rest) => (fd === 1 || fd === 2 ? data.length : writeSync(fd, data, ...rest));
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
