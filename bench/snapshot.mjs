/**
 * Snapshots of worktrees of several sizes: unchanged, beside `git status`; and after a change of one file in a hundred,
 * beside what people do otherwise: `git stash -u`, `cp -a` and `rsync -a`.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { figure, median, row, sleep } from "./figures.mjs";
import { ENV, inRepository, openAs, PROGRAM } from "./room.mjs";

const SIZES = (process.env.BENCH_FILES ?? "1000,10000,50000").split(",").map(Number);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 11);
const WHO = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
const PER_DIRECTORY = 20;
/** What was written just before a snapshot is read again by the next one. */
const UNTIL_OLD_MS = 2_200;
const HAS_RSYNC = spawnSync("rsync", ["--version"]).status === 0;

export async function snapshot() {
  const rows = [];
  for (const size of SIZES) rows.push(...(await inRepository((root) => measure(root, size))));
  return rows;
}

async function measure(root, size) {
  const files = fill(root, size);
  run("git", ["add", "-A"], root);
  run("git", [...WHO, "commit", "-qm", "files"], root);
  const repository = await openAs(root, "agent:bench");
  // The first one after a commit writes the index anew: what is measured is a worktree to which nothing happens.
  run("git", ["status", "--porcelain"], root);
  await sleep(UNTIL_OLD_MS);
  await repository.snapshot();
  return [...(await unchanged(root, size, repository)), ...(await changed(root, size, files))];
}

async function unchanged(root, size, repository) {
  const times = { ours: [], command: [], status: [], bare: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    const spent = {
      ours: await timedHere(() => repository.snapshot()),
      status: timed("git", ["status", "--porcelain"], root),
      command: timed(process.execPath, [PROGRAM, "snapshot", "--quiet"], root),
      bare: timed(process.execPath, ["-e", "0"], root),
    };
    // The first round warms the disk's caches.
    if (round > 0) for (const [name, ms] of Object.entries(spent)) times[name].push(ms);
  }
  const [ours, command, status, bare] = [times.ours, times.command, times.status, times.bare].map(median);
  const named = size.toLocaleString("en");
  return [
    row(
      `snapshot of an unchanged worktree, ${named} files, library`,
      `${figure(ours)} ms`,
      `git status ${figure(status)} ms`,
      ours / status,
      size === 10_000 ? "<= 2" : null,
    ),
    row(
      `  the same as a command`,
      `${figure(command)} ms`,
      `git status ${figure(status)} ms + node -e 0 ${figure(bare)} ms`,
      command / (status + bare),
    ),
  ];
}

async function changed(root, size, files) {
  const copy = `${root}-copy`;
  const mirror = `${root}-mirror`;
  const times = { ours: [], stash: [], cp: [], rsync: [] };
  const rounds = Math.max(3, Math.floor(ROUNDS / 3));
  try {
    if (HAS_RSYNC) run("rsync", ["-a", `${root}/`, `${mirror}/`], root);
    for (let round = 0; round < rounds; round++) {
      change(root, files, round);
      times.ours.push(timed(process.execPath, [PROGRAM, "snapshot", "--quiet"], root));
      times.cp.push(timed("cp", ["-a", root, copy], root));
      rmSync(copy, { recursive: true, force: true });
      if (HAS_RSYNC) times.rsync.push(timed("rsync", ["-a", "--delete", `${root}/`, `${mirror}/`], root));
      times.stash.push(timed("git", [...WHO, "stash", "push", "-q", "-u"], root));
      run("git", ["stash", "pop", "-q"], root);
    }
  } finally {
    for (const place of [copy, mirror]) rmSync(place, { recursive: true, force: true });
  }
  const [ours, stash, cp] = [times.ours, times.stash, times.cp].map(median);
  const rsync = HAS_RSYNC ? `${figure(median(times.rsync))} ms` : "not installed";
  const named = size.toLocaleString("en");
  return [
    row(
      `snapshot, command, one file in a hundred changed, ${named} files`,
      `${figure(ours)} ms`,
      `git stash -u ${figure(stash)} ms; cp -a ${figure(cp)} ms; rsync -a ${rsync}`,
      ours / stash,
    ),
  ];
}

function fill(root, size) {
  const files = [];
  for (let n = 0; n < size; n++) {
    const directory = join(
      root,
      "src",
      `m${Math.floor(n / PER_DIRECTORY) % 40}`,
      `d${Math.floor(n / PER_DIRECTORY)}`,
    );
    if (n % PER_DIRECTORY === 0) mkdirSync(directory, { recursive: true });
    const path = join(directory, `f${n}.ts`);
    writeFileSync(path, `export const value = ${n};\n`.repeat(1 + (n % 40)));
    files.push(path);
  }
  return files;
}

function change(root, files, round) {
  for (let n = round; n < files.length; n += 100) appendFileSync(files[n], `// round ${round}\n`);
  mkdirSync(join(root, "new", String(round)), { recursive: true });
  for (let n = 0; n < files.length / 200; n++)
    writeFileSync(join(root, "new", String(round), `${n}.txt`), `new ${round} ${n}\n`);
}

function run(program, args, cwd) {
  execFileSync(program, args, { cwd, env: ENV, stdio: "ignore" });
}

async function timedHere(act) {
  const started = process.hrtime.bigint();
  await act();
  return Number(process.hrtime.bigint() - started) / 1e6;
}

function timed(program, args, cwd) {
  const started = process.hrtime.bigint();
  const { status, stderr } = spawnSync(program, args, { cwd, env: ENV });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed: ${stderr}`);
  return Number(process.hrtime.bigint() - started) / 1e6;
}
