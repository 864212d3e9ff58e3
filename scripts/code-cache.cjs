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

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
