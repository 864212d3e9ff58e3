/** Where the project is, and how the scripts run programs and speak. Node's own modules only: nothing may be installed yet. */
import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

export function say(text) {
  process.stderr.write(`${text}\n`);
}

/** The options of this script's command line; what it does not know ends it with a word, not with a stack. */
export function optionsGiven(options) {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    const names = Object.keys(options).map((name) => `--${name}`);
    say(`${error.message.split(". ")[0]}; there are ${names.join(", ")}`);
    process.exit(2);
  }
}

export function seconds(startedMs) {
  return `${((performance.now() - startedMs) / 1000).toFixed(1)} s`;
}

/** Runs a Node script of an installed package, e.g. `node_modules/vitest/vitest.mjs`, on our terminal. */
export function runNode(script, args, options = {}) {
  return run(process.execPath, [join(ROOT, script), ...args], options);
}

/** Exit status; a death by signal is 128 + 1, so that it is never mistaken for success. */
export function run(command, args, options = {}) {
  const ended = spawnSync(command, args, { cwd: ROOT, stdio: "inherit", ...options });
  if (ended.error) throw ended.error;
  return ended.status ?? 129;
}

/** Every file and directory below `path`, or `path` itself when it is a file; sorted, with its stat. */
export function walk(path) {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return [];
  if (!stat.isDirectory()) return [{ path, stat }];
  const below = readdirSync(path).sort();
  return [{ path, stat }, ...below.flatMap((name) => walk(join(path, name)))];
}
