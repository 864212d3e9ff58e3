import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Prng } from "../../../src/platform/sim/prng";
import { checkAnswer } from "../injection/check";
import type { Layer, Task } from "../layer";
import { Aftermath } from "./aftermath";
import { programOf, Room } from "./room";
import { type Kind, PublishTracer, type Spot } from "./trace";

const CASES = [
  { name: "new-branch", hasBranch: false },
  { name: "moved-branch", hasBranch: true },
] as const;
type Case = (typeof CASES)[number];

interface Point {
  readonly which: Case;
  readonly kind: Kind;
  readonly spot: Spot;
}

const ALLOCATING = new Set(["openat", "write", "pwrite64", "mkdir", "rename", "link", "fsync", "fdatasync"]);

/** SCENARIOS 54: a death, or a failing disk, at every change that a publish makes, its Gits' included. */
export const publishCrash: Layer = {
  name: "publish crash",
  unit: "injection points",
  inTest: 24,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0,
  mustMove: [
    "KILL of cotenant",
    "KILL of git",
    "EIO of cotenant",
    "EIO of git",
    "ENOSPC of cotenant",
    "left old",
    "left new",
    "a lock of Git's was left",
  ],
  async prove(task) {
    const place = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "cotenant-publish-"));
    try {
      await new Programme(task, new Room(place, await programOf(task))).run();
    } finally {
      rmSync(place, { recursive: true, force: true, maxRetries: 5 });
    }
  },
};

class Programme {
  readonly #task: Task;
  readonly #room: Room;
  readonly #tracer: PublishTracer;

  constructor(task: Task, room: Room) {
    this.#task = task;
    this.#room = room;
    this.#tracer = new PublishTracer(room);
  }

  async run(): Promise<void> {
    const points = CASES.filter(({ name }) => this.#task.only === null || this.#task.only === name).flatMap(
      (which) => this.#points(which),
    );
    // Those that everything hangs on come first; the others in an order of chance, so that a short run sees all kinds.
    const isVital = ({ spot, kind }: Point) =>
      kind === "KILL" && /refs\/heads\/work\/x(?:\.lock)?$/.test(spot.where);
    const rest = new Prng(this.#task.seed, "points").shuffle(points.filter((point) => !isVital(point)));
    for (const point of [...points.filter(isVital), ...rest]) {
      if (!this.#task.goesOn) return;
      this.#try(point);
    }
  }

  #points(which: Case): Point[] {
    this.#room.set(which.name, which.hasBranch);
    const { spots, status, stderr } = this.#tracer.record(this.#room.ulid());
    if (status !== 0) throw new Error(`an undisturbed publish fails: ${stderr}`);
    return spots.flatMap((spot) => {
      const kinds: Kind[] = ["KILL", "EIO", ...(ALLOCATING.has(spot.call) ? (["ENOSPC"] as const) : [])];
      return kinds.map((kind) => ({ which, kind, spot }));
    });
  }

  #try({ which, kind, spot }: Point): void {
    const task = this.#task;
    task.tried++;
    this.#room.set(which.name, which.hasBranch);
    const aftermath = new Aftermath(this.#room);
    const requestId = this.#room.ulid();
    const ended = this.#tracer.inject(spot, kind, requestId);
    task.count(ended.isHit ? `${kind} of ${spot.by}` : "missed");
    if (!ended.isHit) return;
    // Whoever lives has an answer; the dead have none.
    const isAlive = ended.status !== null && !(kind === "KILL" && spot.by === "cotenant");
    const understood = isAlive ? checkAnswer(ended, aftermath.wrong) : null;
    if (existsSync(join(this.#room.repo, ".git/refs/heads/work/x.lock")))
      task.count("a lock of Git's was left");
    task.count(aftermath.checkRef(understood?.ok === true) ? "left new" : "left old");
    aftermath.checkNext(requestId);
    if (aftermath.wrong.length === 0) return;
    const name = `${which.name}: ${kind} at ${spot.call} number ${spot.nth} (${spot.where}, by ${spot.by})`;
    const replay = `npm run verify -- --layer "publish crash" --seed ${task.seed} --case ${which.name}`;
    task.broke(`${name}:\n  ${[...new Set(aftermath.wrong)].join("\n  ")}`, replay);
  }
}
