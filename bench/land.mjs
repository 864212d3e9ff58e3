/**
 * 100 branches through the merge queue, of which 10 conflict and 10 fail their check, beside a plain loop of `git merge` and
 * the same check in one checkout, in one run. The check takes a while, as tests do: what is checked at once is what counts.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { figure, row } from "./figures.mjs";
import { ENV, PROGRAM } from "./room.mjs";

const BRANCHES = Number(process.env.BENCH_BRANCHES ?? 100);
const CHECK_SECS = Number(process.env.BENCH_CHECK_SECS ?? 0.2);
const CHECK = `sleep ${CHECK_SECS}; ! ls | grep -q BROKEN`;
const LANDER = { ...ENV, COTENANT_AGENT_ID: "human:bench" };

export async function land() {
  const plain = inQueueful((root) => timed(() => byHand(root)));
  const rows = [];
  for (const [parallel, check] of [
    [1, CHECK],
    [4, CHECK],
    [1, "! ls | grep -q BROKEN"],
  ]) {
    const beside = check === CHECK ? plain : inQueueful((root) => timed(() => byHand(root, check)));
    const ours = inQueueful((root) => {
      cotenant(root, {}, "land", "add", ...names());
      return timed(() =>
        cotenant(root, { COTENANT_LAND_CHECKS: check }, "land", "run", "--parallel", String(parallel)),
      );
    });
    const what = check === CHECK ? `a check of ${CHECK_SECS} s, ${parallel} at once` : "a check of no time";
    rows.push(
      row(
        `land ${BRANCHES} branches, ${what}`,
        `${figure(ours.ms / 1000)} s`,
        `git merge and the check, one by one ${figure(beside.ms / 1000)} s`,
        ours.ms / beside.ms,
      ),
    );
    if (ours.landed !== beside.landed) throw new Error(`${ours.landed} landed, ${beside.landed} by hand`);
  }
  return rows;
}

const names = () => Array.from({ length: BRANCHES }, (_, at) => `work/${at + 1}`);

function timed(act) {
  const started = performance.now();
  act();
  return { ms: performance.now() - started };
}

/** A repository with the branches, its main checked out; answers also how many have landed. */
function inQueueful(body) {
  const room = mkdtempSync(join(tmpdir(), "cotenant-bench-land-"));
  const root = join(room, "repo");
  try {
    execFileSync("git", ["init", "-q", "-b", "main", root], { env: ENV });
    for (const [key, value] of [
      ["user.name", "bench"],
      ["user.email", "bench@example.org"],
    ])
      git(root, "config", key, value);
    commit(root, { "a.txt": "base\n" }, "first");
    for (const [at, name] of names().entries()) {
      git(root, "checkout", "-q", "-b", name, "main");
      const files = { [`work-${at}.txt`]: `${at}\n` };
      if (at % 10 === 2) files["a.txt"] = `of ${at}\n`;
      if (at % 10 === 6) files[`BROKEN-${at}`] = "broken\n";
      commit(root, files, name);
    }
    git(root, "checkout", "-q", "main");
    commit(root, { "a.txt": "of main\n" }, "second");
    const measured = body(root);
    const landed = git(root, "rev-list", "--first-parent", "--count", "main").trim();
    return { ...measured, landed: Number(landed) };
  } finally {
    rmSync(room, { recursive: true, force: true });
  }
}

/** As a script would: merge, check, and go back where one of them fails. */
function byHand(root, check = CHECK) {
  for (const name of names()) {
    const merged = spawnSync("git", ["merge", "-q", "--no-ff", "--no-edit", name], {
      cwd: root,
      env: ENV,
      stdio: "ignore",
    });
    if (merged.status !== 0) {
      git(root, "merge", "--abort");
      continue;
    }
    const checked = spawnSync("/bin/sh", ["-c", check], { cwd: root, env: ENV, stdio: "ignore" });
    if (checked.status !== 0) git(root, "reset", "-q", "--hard", "HEAD~1");
  }
}

function commit(root, files, message) {
  for (const [file, content] of Object.entries(files)) writeFileSync(join(root, file), content);
  git(root, "add", "--all");
  git(root, "commit", "-q", "-m", message);
}

function git(root, ...args) {
  return execFileSync("git", args, {
    cwd: root,
    env: ENV,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
}

function cotenant(root, env, ...args) {
  execFileSync(process.execPath, [PROGRAM, ...args, "--quiet"], {
    cwd: root,
    env: { ...LANDER, ...env },
    stdio: ["ignore", "ignore", "ignore"],
  });
}
