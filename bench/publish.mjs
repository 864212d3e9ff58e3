/**
 * Publishing one file without a checkout, beside `git add` and `git commit` in a worktree of one's own, and beside both in
 * one checkout for all; and how it grows with the number of files. All in one run.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { figure, median, row } from "./figures.mjs";
import { crew, ENV, PROGRAM } from "./room.mjs";

const FILES = Number(process.env.BENCH_FILES ?? 10_000);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const SLICE_MS = Number(process.env.BENCH_SLICE_MS ?? 3_000);
const PROCESSES = 8;
const DIRECTORIES = 100;

export async function publish() {
  return [...(await besideWorktrees()), ...(await growth())];
}

async function besideWorktrees() {
  return inTree(FILES, async (root) => {
    execFileSync("git", ["checkout", "-q", "-f", "main"], { cwd: root, env: ENV });
    for (let n = 0; n < PROCESSES; n++)
      git(root, "worktree", "add", "-q", "-b", `tree/${n}`, join(root, `../worktree-${n}`));
    const together = (count, kind, more = {}) => crew(count, { kind, root, forMs: SLICE_MS, ...more });
    const samples = { one: [], ownTree: [], own: [], shared: [], trees: [], checkout: [] };
    let [failed, tried] = [0, 0];
    for (let round = 0; round < ROUNDS; round++) {
      // One agent publishes from one process at a time: each crew has names of its own.
      samples.one.push(sum(await together(1, "publish", { who: `one${round}-` })));
      samples.ownTree.push(sum(await together(1, "addAndCommit")));
      const own = await together(PROCESSES, "publish", { who: `own${round}-` });
      samples.own.push(sum(own));
      for (const [n, one] of own.entries()) lostNone(root, `work/own${round}-${n}`, [one]);
      samples.trees.push(sum(await together(PROCESSES, "addAndCommit")));
      const who = `all${round}-`;
      const all = await together(PROCESSES, "publish", { shared: true, who });
      samples.shared.push(sum(all));
      lostNone(root, `work/all-${who}`, all);
      const one = await together(PROCESSES, "addAndCommit", { shared: true });
      samples.checkout.push(sum(one) * (1 - failures(one) / rounds(one)));
      failed += failures(one);
      tried += rounds(one);
    }
    const at = Object.fromEntries(Object.entries(samples).map(([name, rates]) => [name, median(rates)]));
    const each = (rate) => `${figure(1000 / rate)} ms`;
    const perSecond = (rate) => `${figure(rate)}/s`;
    return [
      row(
        `publish one file into ${figure(FILES)} files, library`,
        each(at.one),
        `add + commit in a worktree ${each(at.ownTree)}`,
        at.one / at.ownTree,
        ">= 10",
      ),
      row(
        "8 publishers on distinct branches",
        perSecond(at.own),
        `eight worktrees committing ${perSecond(at.trees)}`,
        at.own / at.trees,
        ">= 10",
      ),
      row(
        "8 publishers on one branch, none lost",
        perSecond(at.shared),
        `eight worktrees committing ${perSecond(at.trees)}`,
        at.shared / at.trees,
        ">= 5",
      ),
      row(
        "8 publishers on one branch, none failed",
        perSecond(at.shared),
        `add + commit by 8 in one checkout ${perSecond(at.checkout)}, ${figure(failed)} of ${figure(tried)} failed`,
        at.shared / at.checkout,
      ),
    ];
  });
}

/** Grows with the depth of the tree, not with the number of files in it. */
async function growth() {
  const most = Number(process.env.BENCH_MOST_FILES ?? 100_000);
  const least = most / 100;
  const rateIn = (files) =>
    inTree(files, async (root) => {
      const rates = [];
      for (let round = 0; round < ROUNDS; round++)
        rates.push(sum(await crew(1, { kind: "publish", root, forMs: SLICE_MS, who: `grow${round}-` })));
      return median(rates);
    });
  const [small, large] = [await rateIn(least), await rateIn(most)];
  return [
    row(
      `publish one file into ${figure(most)} files`,
      `${figure(1000 / large)} ms`,
      `into ${figure(least)} files ${figure(1000 / small)} ms`,
      small / large,
      "<= 1.5",
    ),
  ];
}

/** Runs `body` in a repository with that many files on main, in a hundred directories, none of them checked out. */
async function inTree(files, body) {
  const room = mkdtempSync(join(tmpdir(), "cotenant-bench-"));
  const root = join(room, "repo");
  try {
    execFileSync("git", ["init", "-q", "--initial-branch=main", root], { env: ENV });
    for (const [name, value] of [
      ["user.name", "bench"],
      ["user.email", "bench@example.com"],
      ["gc.auto", "0"],
    ])
      git(root, "config", name, value);
    const lines = [
      "commit refs/heads/main",
      "committer bench <bench@example.com> 1700000000 +0000",
      "data 5",
      "first",
    ];
    for (let n = 0; n < files; n++)
      lines.push(`M 100644 inline dir-${n % DIRECTORIES}/file-${n}.txt`, "data 4", "one", "");
    execFileSync("git", ["fast-import", "--quiet"], { cwd: root, env: ENV, input: `${lines.join("\n")}\n` });
    execFileSync(process.execPath, [PROGRAM, "version"], { cwd: root, env: ENV });
    return await body(root);
  } finally {
    rmSync(room, { recursive: true, force: true });
  }
}

function git(root, ...args) {
  return execFileSync("git", args, { cwd: root, env: ENV, encoding: "utf8" }).trim();
}

/** A figure of commits that are not there would be worth nothing. Those that were to get ready count as well. */
function lostNone(root, branch, results) {
  const found = Number(git(root, "rev-list", "--count", `main..${branch}`));
  const wanted = results.reduce((total, { done }) => total + done, 0);
  if (found !== wanted) throw new Error(`${branch}: ${found} commits of ${wanted}`);
}

const sum = (results) => results.reduce((total, { rate }) => total + rate, 0);
const rounds = (results) => results.reduce((total, { waits }) => total + waits.length, 0);
const failures = (results) => results.reduce((total, { failed }) => total + failed, 0);
