/** A whole cold guard check, start to exit, beside `node -e 0` in the same run: granted, held already, refused, again. */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { figure, median, row } from "./figures.mjs";
import { ENV, inRepository, PROGRAM } from "./room.mjs";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 41);
const HELD = "guard check, held already";
const COMMAND = ["guard", "check", "--harness", "claude", "--event", "PreToolUse"];

export async function guard() {
  // Apart: where somebody waits for a file, every check looks more closely.
  return [
    ...(await measured({
      "guard check, granted": (n) => ["11111111", `src/new-${n}.ts`, 195],
      [HELD]: () => ["22222222", "src/held.ts", 195],
    })),
    // Too little patience to wait for the retry. A session that was refused before is answered by what that rested on.
    ...(await measured({
      "guard check, refused": (n) => [String(40_000_000 + n), "src/held.ts", 5],
      "guard check, refused again before its retry": () => ["33333333", "src/held.ts", 5],
    })),
  ];
}

function measured(cases) {
  return inRepository((root) => {
    const { COTENANT_AGENT_ID: _, ...env } = ENV;
    mkdirSync(join(root, "src"), { recursive: true });
    writeFileSync(join(root, "src/held.ts"), "export {};\n");
    // As a harness would be: alive for as long as its agents work.
    const harness = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], { stdio: "ignore" });
    const check = ([session, file, patience]) => {
      const args = [PROGRAM, ...COMMAND, "--pid", String(harness.pid), "--deadline", String(patience)];
      const started = process.hrtime.bigint();
      const ran = spawnSync(process.execPath, args, {
        cwd: root,
        env,
        input: editEvent(root, session, file),
      });
      return { ...ran, ms: Number(process.hrtime.bigint() - started) / 1e6 };
    };
    try {
      check(["22222222", "src/held.ts", 195]);
      const times = { bare: [], ...Object.fromEntries(Object.keys(cases).map((name) => [name, []])) };
      for (let round = 0; round <= ROUNDS; round++) {
        const started = process.hrtime.bigint();
        spawnSync(process.execPath, ["-e", "0"], { cwd: root, env, input: "" });
        if (round > 0) times.bare.push(Number(process.hrtime.bigint() - started) / 1e6);
        for (const [name, make] of Object.entries(cases)) {
          const { ms, status, stdout, stderr } = check(make(round));
          const isRefused = stdout.includes('"deny"');
          if (status !== 0 || isRefused !== name.includes("refused"))
            throw new Error(`${name} went wrong: ${stdout}${stderr}`);
          // The first round warms the disk's caches.
          if (round > 0) times[name].push(ms);
        }
      }
      const { bare, ...ours } = times;
      const floor = median(bare);
      return Object.entries(ours).map(([what, samples]) =>
        row(
          what,
          `${figure(median(samples))} ms`,
          `node -e 0 ${figure(floor)} ms`,
          median(samples) / floor,
          what === HELD ? "<= 1.25" : "<= 1.5",
        ),
      );
    } finally {
      harness.kill();
    }
  });
}

/** What Claude Code says before it edits a file. */
export function editEvent(cwd, session, file) {
  return JSON.stringify({
    session_id: `${session}-0000-4000-8000-000000000000`,
    transcript_path: "/dev/null",
    cwd,
    permission_mode: "default",
    hook_event_name: "PreToolUse",
    tool_name: "Edit",
    tool_input: { file_path: join(cwd, file), old_string: "a", new_string: "b" },
    tool_use_id: "toolu_1",
  });
}
