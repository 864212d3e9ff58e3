/** Installs the dependencies when what is in node_modules is not what the lock file asks for. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, say, seconds } from "./project.mjs";

const NODE_MAJOR = 20;

export function ensureInstalled() {
  requireNode();
  if (isInstalled()) return;
  const started = performance.now();
  say("installing dependencies (npm ci)…");
  // Everything here is a dev dependency: NODE_ENV=production would otherwise install nothing.
  const args = ["ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error"];
  const ended = npm(args);
  if (ended.status !== 0) {
    say(`${ended.stdout}${ended.stderr}`.split("npm error Usage:")[0].trim());
    throw new Error(`npm ci failed${ended.error ? `: ${ended.error.message}` : ""}`);
  }
  say(`installed in ${seconds(started)}`);
}

function requireNode() {
  if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR) return;
  throw new Error(`cotenant needs Node ${NODE_MAJOR} or newer; this is ${process.versions.node}`);
}

/** Under `npm start` npm names its own script, which also works where `npm` is a batch file. */
function npm(args) {
  const script = process.env.npm_execpath;
  const [command, prefix] = script?.endsWith(".js") ? [process.execPath, [script]] : ["npm", []];
  return spawnSync(command, [...prefix, ...args], { cwd: ROOT, encoding: "utf8" });
}

/**
 * npm writes node_modules/.package-lock.json last, so it tells a finished install from a broken one. Versions
 * are compared, not times: a `git switch` touches the lock file without changing it.
 */
function isInstalled() {
  const wanted = packagesOf("package-lock.json");
  const present = packagesOf("node_modules/.package-lock.json");
  if (wanted === null) throw new Error("package-lock.json is missing or not JSON");
  if (present === null) return false;
  return Object.entries(wanted).every(
    ([path, entry]) => path === "" || !isForThisMachine(entry) || isSame(entry, present[path]),
  );
}

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(join(ROOT, file), "utf8")).packages ?? null;
  } catch {
    return null;
  }
}

function isSame(wanted, present) {
  return present?.version === wanted.version && present.integrity === wanted.integrity;
}

/** Optional packages are the builds for one platform each. Those for another C library cannot be told apart here. */
function isForThisMachine({ optional, os, cpu, libc }) {
  if (!optional) return true;
  if (libc !== undefined || (os === undefined && cpu === undefined)) return false;
  return (os?.includes(process.platform) ?? true) && (cpu?.includes(process.arch) ?? true);
}
