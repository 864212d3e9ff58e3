import { existsSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { Prng } from "../../../testing/simulator/prng";
import { removeTree } from "../../support/remove-tree";
import { checkAnswer } from "../injection/check";
import type { Layer, Task } from "../layer";
import { memoryFolder } from "../memory";
import { Aftermath } from "./aftermath";
import { Room } from "./room";
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

const MOST_TRIES = 4;
const ALLOCATING = new Set(["openat", "write", "pwrite64", "mkdir", "rename", "link", "fsync", "fdatasync"]);

/** As S54 of tests/scenarios/publish.test.ts: a death, or a failing disk, at every change that a publish makes, its Gits' included. */
export const publishCrash: Layer = {
  name: "publish crash",
  unit: "injection points",
  inTest: 6,
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
    const place = mkdtempSync(join(memoryFolder(), "cotenant-publish-"));
    try {
      // A bug of ours shows at the first point, where nothing has to be waited for.
      const room = new Room(place, await task.program(), task.plant === null ? 12 : 3);
      await new Programme(task, room).run();
    } finally {
      removeTree(place);
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
    const first = sample(points);
    // The others in an order of chance, so that a short run sees all kinds.
    const rest = new Prng(this.#task.seed, "points").shuffle(
      points.filter((point) => !first.includes(point)),
    );
    for (const point of [...first, ...rest]) {
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

  #try(point: Point): void {
    const task = this.#task;
    const { which, kind, spot } = point;
    task.tried++;
    const { aftermath, requestId, ended } = this.#strike(point);
    const name = `${which.name}: ${kind} at ${spot.call} number ${spot.nth} (${spot.where}, by ${spot.by})`;
    const replay = `npm run verify -- --layer "publish crash" --seed ${task.seed} --case ${which.name}`;
    if (!ended.isHit) {
      task.broke(`${name}: never came to it`, replay);
      return;
    }
    task.count(`${kind} of ${spot.by}`);
    // Whoever lives has an answer; the dead have none.
    const isAlive = ended.status !== null && !(kind === "KILL" && spot.by === "cotenant");
    const understood = isAlive ? checkAnswer(ended, aftermath.wrong) : null;
    if (existsSync(join(this.#room.repo, ".git/refs/heads/topic/x.lock")))
      task.count("a lock of Git's was left");
    task.count(aftermath.checkRef(understood?.ok === true) ? "left new" : "left old");
    aftermath.checkNext(requestId);
    if (aftermath.wrong.length > 0)
      task.broke(`${name}:\n  ${[...new Set(aftermath.wrong)].join("\n  ")}`, replay);
  }

  /** Until it hits: how many calls of a kind come before one depends on the hour, now and then. */
  #strike({ which, kind, spot }: Point) {
    for (let tries = 1; ; tries++) {
      this.#room.set(which.name, which.hasBranch);
      const aftermath = new Aftermath(this.#room);
      const requestId = this.#room.ulid();
      const ended = this.#tracer.inject(spot, kind, requestId);
      if (ended.isHit || tries === MOST_TRIES) return { aftermath, requestId, ended };
      this.#task.count("missed at first");
    }
  }
}

/** One of each kind, and the deaths that everything hangs on: of a Git with its lock on the branch, and of us once the branch has moved. */
function sample(points: readonly Point[]): Point[] {
  const find = (fits: (point: Point) => boolean) => points.filter(fits).slice(0, 1);
  const dies = ({ kind, spot }: Point, by: Spot["by"]) => kind === "KILL" && spot.by === by;
  const isVital = (point: Point) =>
    dies(point, "git") && point.spot.call === "rename" && point.spot.where.endsWith("topic/x.lock");
  const moved = points.findIndex(isVital);
  const others = (["EIO of cotenant", "EIO of git", "ENOSPC of cotenant"] as const).flatMap((wanted) =>
    find(({ kind, spot }) => wanted === `${kind} of ${spot.by}` && /claims|objects|topic/.test(spot.where)),
  );
  return [
    ...find(isVital),
    ...points
      .slice(moved)
      .filter((point) => dies(point, "cotenant"))
      .slice(0, 1),
    ...others,
  ];
}
