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
  guardCheck("3", "Bash", { command: "cd src && echo x > c.ts | tee d.ts" }),
].filter((words) =>
  // The whole program need not know what has a program of its own by heart: all of it is read at each start.
  beginnings.length === 0
    ? words[0] !== "snapshot" && words[0] !== "guard"
    : beginnings.some((start) => words.join(" ").startsWith(start)),
);

/** What a harness would say, as it is once it was read. */
function guardCheck(session, tool, input) {
  const call = { verb: "check", harness: "claude", event: "PreToolUse", patienceMs: 1000 };
  const asked = { sessionId: session.repeat(8), subagent: null, cwd: null, tool, input, toolUseId: null };
  const flags = { isRecoverable: false, isBorrowed: false, isShowingWaits: false };
  const report = { harness: "claude", moment: "before", event: "PreToolUse", ...asked, ...flags };
  const begun = { call: { ...call, harnessPid: process.pid, via: null }, event: { report } };
  return Object.assign(["guard", "check"], { begun });
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
      process.argv.splice(1, process.argv.length, bundle, ...command);
      await new Promise((resolve) => {
        process.exit = resolve;
        const own = { exports: {} };
        script.runInThisContext()(own.exports, require, own, bundle, dist);
        if (command.begun !== undefined) own.exports.answerCall(command.begun);
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
