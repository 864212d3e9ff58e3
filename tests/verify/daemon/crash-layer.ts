import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkLog, readLog } from "../injection/log";
import type { Layer, Task } from "../layer";
import { clear, fastDisk, makePlace, type Place } from "../linearizability/place";
import { Supervisor } from "./supervisor";

const CALLS = "pwrite64 write fdatasync openat rename unlink mkdir rmdir fcntl ftruncate".split(" ");
/** Node itself opens and reads a hundred files before the client has begun. */
const CLIENT_CALLS = CALLS.filter((call) => call !== "openat");
/** Until nobody is killed any more: the work has no more calls of that name. */
const MOST = 400;
const STEPS = ["acquired", "renewed", "released", "claimed"];
/** What each step leaves in the log. */
const LINES = [
  "claim.acquired resource:crash",
  "claim.renewed resource:crash",
  "claim.released resource:crash",
  "claim.acquired issue:01ARZ3NDEKTSV4RRFFQ69G5FAV",
];

/** SIGKILL at every system call with the daemon in between: of the daemon, and of its client (PROTOCOL 28). */
export const daemonCrash: Layer = {
  name: "daemon crash",
  unit: "injection points",
  inTest: 12,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0,
  mustMove: ["daemon killed at fdatasync", "daemon killed at write", "daemon killed at pwrite64"],
  async prove(task) {
    const { path: client } = await task.bundle("tests/verify/daemon/crash-client.ts");
    const { path: daemon } = await task.bundle("tests/verify/daemon/process.ts");
    const whole = new Map<string, boolean>();
    // One of each name in turn: a sample has some of all.
    for (let nth = 1; nth <= MOST; nth++)
      for (const [who, calls] of [
        ["daemon", CALLS],
        ["client", CLIENT_CALLS],
      ] as const)
        for (const call of calls) {
          if (whole.get(`${who} ${call}`) === true) continue;
          if (!task.goesOn) return;
          whole.set(`${who} ${call}`, !(await kills(task, { who, call, nth }, client, daemon)));
        }
  },
};

interface Point {
  readonly who: "daemon" | "client";
  readonly call: string;
  readonly nth: number;
}

/** False where it was over before. */
async function kills(task: Task, point: Point, client: string, daemon: string): Promise<boolean> {
  const place = makePlace(fastDisk());
  const supervisor = new Supervisor(place, daemon);
  const next = new Supervisor(place, daemon);
  const { who, call, nth } = point;
  const broke = (what: string) =>
    task.broke(`${who} killed at ${call} number ${nth}: ${what}`, `npm run verify -- --layer "daemon crash"`);
  try {
    await supervisor.start();
    const strace = who === "daemon" ? await attach(place, point) : null;
    const ran = await run(place, client, who === "client" ? point : null);
    const isKilled = who === "client" ? ran.status !== 0 : await isGone(place, strace!);
    if (who === "client" && isKilled && ran.stderr.includes("    at ")) broke(ran.stderr);
    judge(place, ran.steps, who === "client" && isKilled, broke);
    if (who === "daemon" && ran.status !== 0) broke(`its client failed: ${ran.stderr}`);
    if (isKilled) {
      task.count(`${who} killed at ${call}`);
      await supervisor.kill();
      await next.start();
      const again = await run(place, client, null);
      if (again.steps.join() !== STEPS.join())
        broke(`the next one got as far as ${again.steps}: ${again.stderr}`);
      for (const what of [...checkLog(readLog(place.control)).wrong, ...next.trouble]) broke(what);
    }
    task.tried++;
    return isKilled;
  } finally {
    await supervisor.end();
    await next.end();
    clear(place);
  }
}

/** Each step that was told is in the log once; where the client died, the one that it was at may be, too. */
function judge(
  place: Place,
  steps: readonly string[],
  isCutShort: boolean,
  broke: (what: string) => void,
): void {
  const log = readLog(place.control);
  for (const what of checkLog(log).wrong) broke(what);
  const lines = log.lines.flatMap(({ type, payload }) => {
    const about = [payload["leases"], payload["ended"]].flat() as ({ key?: string } | undefined)[];
    const key = about.find((one) => one?.key !== undefined)?.key;
    return type.startsWith("claim.") && key !== undefined ? [`${type} ${key}`] : [];
  });
  const most = isCutShort ? steps.length + 1 : steps.length;
  const isRight =
    lines.every((line, at) => line === LINES[at]) && lines.length >= steps.length && lines.length <= most;
  if (!isRight) broke(`told ${steps.join(", ") || "nothing"}, logged ${lines.join(", ") || "nothing"}`);
}

async function attach(place: Place, { call, nth }: Point): Promise<ChildProcess> {
  const inject = ["-e", `trace=${call}`, "-e", `inject=${call}:signal=KILL:when=${nth}`];
  const args = ["-f", "-p", String(recordOf(place).pid), "-o", "/dev/null", ...inject];
  const strace = spawn("strace", args, { stdio: ["ignore", "ignore", "pipe"] });
  await Promise.race([once(strace.stderr!, "data"), once(strace, "exit")]);
  return strace;
}

/** Whether the daemon was killed; otherwise it is left alone. */
async function isGone(place: Place, strace: ChildProcess): Promise<boolean> {
  const { pid } = recordOf(place);
  const isDead = () => {
    try {
      return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    } catch {
      return true;
    }
  };
  const dead = isDead();
  strace.kill("SIGTERM");
  // It may wait for a thread of the dead for ever.
  const patience = setTimeout(() => strace.kill("SIGKILL"), 5_000);
  if (strace.exitCode === null && strace.signalCode === null) await once(strace, "exit");
  clearTimeout(patience);
  return dead || isDead();
}

async function run(place: Place, client: string, point: Point | null) {
  const command = [process.execPath, client, place.worktrees[0]!];
  const traced =
    point === null
      ? command
      : [
          "strace",
          "-f",
          "-qq",
          "-o",
          "/dev/null",
          "-e",
          `trace=${point.call}`,
          "-e",
          `inject=${point.call}:signal=KILL:when=${point.nth}`,
          ...command,
        ];
  const child = spawn(traced[0]!, traced.slice(1), {
    env: { ...place.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const [status] = (await once(child, "close")) as [number | null];
  return { status, stderr, steps: stdout.split("\n").filter((word) => word !== "") };
}

function recordOf({ control }: Place): { pid: number } {
  return JSON.parse(readFileSync(join(control, `daemon/${process.getuid!()}.json`), "utf8")) as {
    pid: number;
  };
}
