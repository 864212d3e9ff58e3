/** A commit of many files with our hooks, beside the same commit without them and one bare Node for each hook. */
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { figure, median, row } from "./figures.mjs";
import { ENV, inRepository, PROGRAM } from "./room.mjs";

const FILES = 100;
const HOOKS = 3;
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 21);
const WHO = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];

export function hooks() {
  return inRepository((root) => {
    execFileSync(process.execPath, [PROGRAM, "hooks", "install", "--quiet"], { cwd: root, env: ENV });
    const times = { bare: [], without: [], with: [] };
    for (let round = 0; round <= ROUNDS; round++) {
      const spent = {
        bare: timed(process.execPath, ["-e", "0"], root),
        without: commit(root, `${round}a`, ["-c", "core.hooksPath=/dev/null"]),
        with: commit(root, `${round}b`, []),
      };
      // The first round warms the disk's caches.
      if (round > 0) for (const [name, ms] of Object.entries(spent)) times[name].push(ms);
    }
    const [bare, without, ours] = [times.bare, times.without, times.with].map(median);
    const floor = without + HOOKS * bare;
    return [
      row(
        `git commit of ${FILES} files with ${HOOKS} hooks`,
        `${figure(ours)} ms`,
        `without ${figure(without)} ms + ${HOOKS} × node -e 0 ${figure(bare)} ms`,
        ours / floor,
        "<= 1.35",
      ),
    ];
  });
}

function commit(root, content, options) {
  for (let n = 0; n < FILES; n++) writeFileSync(join(root, `file-${n}.txt`), `${content} ${n}\n`);
  execFileSync("git", ["add", "--all"], { cwd: root, env: ENV });
  return timed("git", [...options, ...WHO, "commit", "-qm", content], root);
}

function timed(program, args, cwd) {
  const started = process.hrtime.bigint();
  const { status, stderr } = spawnSync(program, args, { cwd, env: ENV });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed: ${stderr}`);
  return Number(process.hrtime.bigint() - started) / 1e6;
}
