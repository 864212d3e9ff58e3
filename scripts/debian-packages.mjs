/**
 * Installs the Debian packages that tests use, where that is possible without asking anybody. The lists are in
 * debian-packages.json, for `npm test` and what `npm run verify` needs besides: package to the command, or else the file,
 * that it brings.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ROOT, say, seconds } from "./project.mjs";

/** Answers the packages still missing afterwards. Their tests fail and say so; none is left out. */
export function ensureDebianPackages(purposes = ["test"]) {
  const lists = JSON.parse(readFileSync(join(ROOT, "scripts/debian-packages.json"), "utf8"));
  const wanted = Object.assign({}, ...purposes.map((purpose) => lists[purpose]));
  const missing = () => Object.keys(wanted).filter((name) => !isThere(wanted[name]));
  const before = missing();
  if (before.length === 0) return [];
  const prefix = installer();
  if (prefix === null) {
    say(
      `missing: ${before.join(", ")} (no apt-get, or not allowed to use it): the tests that need them will fail`,
    );
    return before;
  }
  const started = performance.now();
  say(`installing Debian packages: ${before.join(", ")}…`);
  install(prefix, before);
  const after = missing();
  say(after.length > 0 ? `could not install: ${after.join(", ")}` : `installed in ${seconds(started)}`);
  return after;
}

function isThere(brought) {
  return brought.startsWith("/") ? existsSync(brought) : isOnPath(brought);
}

function isOnPath(command) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** The words before `install`, or null when there is no way that asks no password. */
function installer() {
  if (!isOnPath("apt-get")) return null;
  if (process.getuid?.() === 0) return ["apt-get"];
  const mayUseSudo = isOnPath("sudo") && spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status === 0;
  return mayUseSudo ? ["sudo", "-n", "apt-get"] : null;
}

function install([command, ...prefix], packages) {
  const patience = [
    "-o",
    "Acquire::http::Timeout=20",
    "-o",
    "Acquire::Retries=1",
    "-o",
    "DPkg::Lock::Timeout=60",
  ];
  const apt = (...args) =>
    spawnSync(command, [...prefix, ...patience, "-qq", ...args], {
      encoding: "utf8",
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
  const add = () => apt("install", "-y", "--no-install-recommends", ...packages);
  if (add().status === 0) return;
  // A machine made from a slim image knows no package lists yet.
  apt("update");
  const ended = add();
  if (ended.status !== 0) say(ended.stderr.trim());
}
