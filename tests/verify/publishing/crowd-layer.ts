import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { Prng } from "../../../testing/simulator/prng";
import { removeTree } from "../../support/remove-tree";
import { ROOT } from "../bundle";
import { checkLog, readLog } from "../injection/log";
import type { Layer, Task } from "../layer";
import { memoryFolder } from "../memory";
import { environment } from "./room";

const PUBLISHERS = 8;
const KILLS_PER_ROUND = 12;
const ACKNOWLEDGED_PER_KILL = 3;
const SHARED = "work/all";
/** No fixed dates: equal contents would make equal commits. */
const { GIT_AUTHOR_DATE: _one, GIT_COMMITTER_DATE: _two, ...ENV } = environment("agent:nobody");

/** Eight publishers on one branch and on their own, killed at any moment, their Gits too: nothing acknowledged is lost. */
export const publishers: Layer = {
  name: "publishers",
  unit: "kills",
  inTest: 8,
  inVerify: 400,
  share: 0.05,
  mustMove: [
    "kills of publishers",
    "kills in the middle of a publish",
    "kills of their Gits",
    "acknowledged",
    "settled by the next",
    "merged onto another's",
  ],
  async prove(task) {
    const { path } = await task.bundle("tests/verify/publishing/worker.ts");
    for (let round = 0; task.goesOn; round++) {
      const place = fs.mkdtempSync(join(memoryFolder(), "cotenant-publishers-"));
      try {
        await new Crowd(task, join(place, "repo"), path, new Prng(task.seed, `round ${round}`)).run();
      } finally {
        removeTree(place);
      }
    }
  },
};

interface Acknowledged {
  readonly branch: string;
  readonly commit: string;
}

class Crowd {
  readonly #task: Task;
  readonly #root: string;
  readonly #program: string;
  readonly #chance: Prng;
  readonly #alive = new Map<number, Publisher>();
  readonly #acknowledged: Acknowledged[] = [];
  readonly #complaints: string[] = [];
  #lives = 0;

  constructor(task: Task, root: string, program: string, chance: Prng) {
    this.#task = task;
    this.#root = root;
    this.#program = program;
    this.#chance = chance;
  }

  async run(): Promise<void> {
    this.#prepare();
    const before = this.#untouched();
    for (let killed = 0; killed < KILLS_PER_ROUND && this.#task.goesOn && this.#complaints.length === 0; ) {
      for (let index = 0; index < PUBLISHERS; index++) if (!this.#alive.has(index)) this.#start(index);
      await nap(this.#chance.below(30));
      // However busy the machine is: something gets done between two kills.
      if (this.#acknowledged.length >= ACKNOWLEDGED_PER_KILL * killed && this.#killOne()) {
        killed++;
        this.#task.tried++;
      }
    }
    for (const publisher of this.#alive.values()) publisher.kill();
    await Promise.all([...this.#alive.values()].map(({ ended }) => ended));
    this.#lastPublish();
    this.#judge(before);
    for (const what of this.#complaints)
      this.#task.broke(what, `npm run verify -- --layer publishers --seed ${this.#task.seed}`);
  }

  #start(index: number): void {
    const branches = index % 2 === 0 ? [SHARED] : [SHARED, `work/own-${index}`];
    const job = { root: this.#root, index, life: this.#lives++, branches };
    const publisher = new Publisher(this.#program, job, (one) => this.#acknowledged.push(one));
    this.#alive.set(index, publisher);
    void publisher.ended.then((said) => {
      this.#alive.delete(index);
      // Whoever is not killed never ends.
      if (said !== "") this.#complaints.push(`a publisher failed: ${said}`);
    });
  }

  /** One that is at work: itself, or a Git of its. */
  #killOne(): boolean {
    const working = [...this.#alive.values()].filter(({ isReady }) => isReady);
    const victim = working[this.#chance.below(Math.max(1, working.length))];
    if (victim === undefined) return false;
    const gits = victim.children();
    if (gits.length > 0 && this.#chance.chance(0.4)) {
      const pid = gits[this.#chance.below(gits.length)]!;
      try {
        process.kill(pid, "SIGKILL");
        this.#task.count("kills of their Gits");
        return true;
      } catch {
        return false;
      }
    }
    if (this.#chance.chance(0.5)) return this.#ambush();
    victim.kill();
    this.#task.count("kills of publishers");
    return true;
  }

  /** Whoever has just written down what it is about to do. */
  #ambush(): boolean {
    const until = performance.now() + 2_000;
    while (performance.now() < until) {
      const last = lastLine(join(this.#root, ".git/cotenant/claims.jsonl"));
      if (!last.includes('"publish.intended"')) continue;
      const pid = Number(/"pid":(\d+)\},"payload"/.exec(last)?.[1]);
      const victim = [...this.#alive.values()].find((one) => one.pid === pid);
      if (victim === undefined) return false;
      victim.kill();
      this.#task.count("kills in the middle of a publish");
      return true;
    }
    return false;
  }

  /** Whoever comes next settles what the dead have left. */
  #lastPublish(): void {
    const content = join(this.#root, "../last");
    fs.writeFileSync(content, "last\n");
    const run = (...args: string[]) =>
      execFileSync(process.execPath, [join(ROOT, "bin/cotenant"), ...args], {
        cwd: this.#root,
        env: { ...ENV, COTENANT_AGENT_ID: "agent:last" },
        stdio: ["ignore", "pipe", "pipe"],
      });
    try {
      run("lock", "acquire", "last.txt");
      for (const branch of [SHARED, "work/own-1", "work/own-3", "work/own-5", "work/own-7"])
        run("publish", "--branch", branch, "--message", "last", "--put", `last.txt=${content}`);
    } catch (error) {
      this.#complaints.push(`the next publish fails: ${(error as { stderr?: Buffer }).stderr?.toString()}`);
    }
  }

  #judge(before: string): void {
    const said = this.#git("fsck", "--strict", "--no-dangling", "--no-progress");
    if (said !== "") this.#complaints.push(`git fsck: ${said}`);
    if (this.#untouched() !== before)
      this.#complaints.push("HEAD, the index or a file of the worktree has changed");
    this.#task.count("acknowledged", this.#acknowledged.length);
    const reachable = new Map<string, Set<string>>();
    for (const { branch, commit } of this.#acknowledged) {
      const known = reachable.get(branch) ?? new Set(this.#git("rev-list", branch).split("\n"));
      reachable.set(branch, known);
      if (!known.has(commit)) this.#complaints.push(`${commit} was acknowledged, and is not on ${branch}`);
    }
    if (this.#git("rev-list", "--merges", "--all") !== "") this.#complaints.push("a history is not linear");
    this.#judgeLog();
  }

  /** What the log says was committed is what is there: no more, no less, and every intent has one end. */
  #judgeLog(): void {
    const log = readLog(join(this.#root, ".git/cotenant"));
    this.#complaints.push(...checkLog(log).wrong);
    const open = new Set<string>();
    const committed = new Map<string, number>();
    for (const { type, payload } of log.lines) {
      const name = `${payload["ref"]} ${payload["new"]}`;
      if (type === "publish.intended") open.add(name);
      else if (/^publish\.(?:committed|abandoned|unsettled)$/.test(type)) open.delete(name);
      if (type === "publish.unsettled") this.#complaints.push(`nobody can tell what became of ${name}`);
      if (payload["recovered"] === true) this.#task.count("settled by the next");
      if (type !== "publish.committed") continue;
      if (payload["recovered"] === true) this.#task.count("settled as committed");
      if (payload["merged"] === true) this.#task.count("merged onto another's");
      committed.set(String(payload["ref"]), (committed.get(String(payload["ref"])) ?? 0) + 1);
    }
    for (const name of open) this.#complaints.push(`an intent is still open: ${name}`);
    for (const [ref, count] of committed) {
      const found = Number(this.#git("rev-list", "--count", `main..${ref}`));
      if (found !== count) this.#complaints.push(`${ref} has ${found} commits, the log ${count}`);
    }
  }

  #prepare(): void {
    fs.mkdirSync(this.#root, { recursive: true });
    this.#git("init", "--quiet", "--initial-branch=main", ".");
    for (let index = 0; index < PUBLISHERS; index++) {
      fs.mkdirSync(join(this.#root, `dir-${index}`));
      fs.writeFileSync(join(this.#root, `dir-${index}/file.txt`), "first\n");
    }
    this.#git("add", "--all");
    this.#git("commit", "--quiet", "--message", "first");
  }

  #untouched(): string {
    const names = [".git/HEAD", ".git/index", ".git/refs/heads/main", "dir-0/file.txt", "dir-7/file.txt"];
    return names.map((name) => fs.readFileSync(join(this.#root, name), "base64")).join("\n");
  }

  #git(...args: string[]): string {
    return execFileSync("git", args, {
      cwd: this.#root,
      env: ENV,
      encoding: "utf8",
      maxBuffer: 64 << 20,
    }).trim();
  }
}

class Publisher {
  /** With what it said of itself, unless it was killed. */
  readonly ended: Promise<string>;
  isReady = false;
  readonly #child: ChildProcess;

  constructor(program: string, job: object, onAcknowledged: (one: Acknowledged) => void) {
    this.#child = spawn(process.execPath, [program, JSON.stringify(job)], {
      env: ENV,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [rest, stderr] = ["", ""];
    this.#child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        this.isReady = true;
        const [branch, commit] = line.split(" ");
        if (commit !== undefined) onAcknowledged({ branch: branch!, commit });
      }
    });
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    this.ended = new Promise((resolve) => {
      this.#child.on("close", (_status, signal) =>
        resolve(signal === "SIGKILL" ? "" : `${stderr || signal}`),
      );
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  children(): number[] {
    const { pid } = this.#child;
    try {
      const text = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
      return text
        .trim()
        .split(" ")
        .filter((one) => one !== "")
        .map(Number);
    } catch {
      return [];
    }
  }
}

const TAIL_BYTES = 8_192;

function lastLine(path: string): string {
  const fd = fs.openSync(path, "r");
  try {
    const { size } = fs.fstatSync(fd);
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    fs.readSync(fd, tail, 0, tail.length, size - tail.length);
    return tail.toString("latin1").trimEnd().split("\n").at(-1) ?? "";
  } finally {
    fs.closeSync(fd);
  }
}

function nap(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
