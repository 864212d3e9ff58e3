import { execFileSync, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Workspace } from "../../../src/coordinator/workspace";
import type { Descriptor } from "../../../src/features/snapshots/descriptor";
import { previewInPlace, restoreInPlace } from "../../../src/features/snapshots/inplace";
import { takeSnapshot } from "../../../src/features/snapshots/new-snapshot";
import { restoreAnew } from "../../../src/features/snapshots/restored-worktree";
import { type SnapshotContext, snapshotContext } from "../../../src/features/snapshots/snapshot-context";
import { writerKey } from "../../../src/features/worktrees/writer-lock";
import { thisMachine } from "../../../src/platform/node/this-machine";
import { nodeTrees } from "../../../src/platform/node/trees";
import type { Trees } from "../../../src/platform/trees";
import { Prng } from "../../../testing/simulator/prng";
import { gitPicture, treePicture } from "../../support/tree-picture";
import type { Layer, Task } from "../layer";
import { memoryFolder } from "../memory";
import { Gardener } from "./growth";

/** Rounds with one repository, so that each meets what the ones before have left: caches, packs, pruned names. */
const ROUNDS = 25;
/** Files that have not changed for so long are believed the next time. Two seconds in earnest, which nobody waits for here. */
const YOUNG_MS = 20;
/** Until everything is older, by a clock of files that goes in steps. */
const UNTIL_OLD_MS = 2 * YOUNG_MS;

/**
 * Random trees are kept, wrecked and brought back, and compared with what they were by code that is none of ours: names,
 * kinds, permissions and digests. What must happen at all happens by turns; what is in the trees is left to chance.
 */
export const snapshots: Layer = {
  name: "snapshots",
  unit: "rounds",
  inTest: 4,
  inVerify: 1_000,
  share: 0.05,
  mustMove: [
    "restored anew",
    "restored in place",
    "with ignored files",
    "nothing was read again",
    "some was read again",
  ],
  async prove(task) {
    for (let story = 0; task.goesOn; story++) {
      const room = roomFor(task, story);
      try {
        await new Story(task, task.seed + story, room).play();
      } finally {
        makeRemovable(room);
        fs.rmSync(room, { recursive: true, force: true });
      }
    }
  },
};

const IN_MEMORY = memoryFolder();

/**
 * Mostly in memory, where nobody waits for a disk that is not what is tried here; and sometimes on one, which uses the
 * numbers of files that are gone again.
 */
function roomFor({ scratch }: Task, story: number): string {
  const isOnDisk = story % 4 === 3 || !fs.existsSync(IN_MEMORY);
  if (!isOnDisk) return fs.mkdtempSync(join(IN_MEMORY, "cotenant-snapshots-"));
  const room = join(scratch, String(story));
  fs.mkdirSync(room);
  return room;
}

class Story {
  readonly #task: Task;
  readonly #seed: number;
  readonly #room: string;
  readonly #root: string;
  readonly #chance: Prng;
  readonly #gardener: Gardener;

  constructor(task: Task, seed: number, room: string) {
    this.#task = task;
    this.#seed = seed;
    this.#room = room;
    this.#root = join(room, "repo");
    this.#chance = new Prng(seed, "snapshots");
    this.#gardener = new Gardener(this.#chance, this.#root);
  }

  async play(): Promise<void> {
    const format = this.#chance.chance(0.2) ? "sha256" : "sha1";
    fs.mkdirSync(this.#root, { recursive: true });
    const git = (...args: string[]) => execFileSync("git", args, { cwd: this.#root, stdio: "ignore" });
    git("init", "--quiet", `--object-format=${format}`);
    for (const [key, value] of [
      ...[
        ["user.name", "Fuzz"],
        ["user.email", "fuzz@example.invalid"],
        ["gc.auto", "0"],
      ],
      ["core.autocrlf", this.#chance.pick(["true", "input", "false"])],
    ] as [string, string][])
      git("config", key, value);
    // Whatever chance makes of the rest, there is something to read.
    fs.writeFileSync(join(this.#root, "first"), "first\n");
    git("add", "--force", "first");
    this.#gardener.change(this.#chance.between(0, 40));
    for (let round = 0; round < ROUNDS && (round === 0 || this.#task.goesOn); round++) {
      this.#task.tried++;
      const wrong = await this.#round(round).catch(
        (error: Error) => `it failed: ${error.stack ?? error.message}`,
      );
      if (wrong !== null)
        this.#task.broke(
          `round ${round} of seed ${this.#seed}: ${wrong}\n  ${this.#gardener.deeds.slice(-25).join("\n  ")}`,
          `npm run verify -- --layer snapshots --seed ${this.#seed}`,
        );
      if (wrong !== null) return;
    }
  }

  async #round(round: number): Promise<string | null> {
    const chance = this.#chance;
    this.#gardener.deeds.push(`round ${round}`);
    if (chance.chance(0.8)) this.#gardener.change(chance.between(0, 12));
    const withIgnored = round % 4 >= 2;
    const [files, git] = [treePicture(this.#root), gitPicture(this.#root)];
    const ignored = withIgnored ? new Set<string>() : ignoredIn(this.#root);
    const isTwice = round % 3 === 0;
    if (isTwice) await sleep(UNTIL_OLD_MS);
    const room = await this.#open(isTwice || chance.chance(0.7));
    const { descriptor, captured } = await takeSnapshot(room, { withIgnored });
    if (captured!.read > 0) this.#task.count("some was read again");
    if (withIgnored) this.#task.count("with ignored files");
    const wrong = isTwice ? await this.#again(room, descriptor, withIgnored) : null;
    if (wrong !== null) return wrong;
    const after = difference(files, treePicture(this.#root)) ?? difference(git, gitPicture(this.#root));
    if (after !== null) return `taking it changed something: ${after}`;
    const expected = without(files, ignored);
    this.#gardener.deeds.push("wreck");
    this.#gardener.change(chance.between(1, 15));
    return round % 2 === 0
      ? this.#anew(room, descriptor, expected, round)
      : this.#inPlace(room, descriptor, expected, withIgnored);
  }

  /** Nothing has changed, and everything is old: nothing may be read, and all must be there. */
  async #again(
    room: SnapshotContext,
    { tree, digest }: Descriptor,
    withIgnored: boolean,
  ): Promise<string | null> {
    const { descriptor, captured } = await takeSnapshot(room, { withIgnored });
    if (captured!.read > 0) return `${captured!.read} files were read again, and none had changed`;
    this.#task.count("nothing was read again");
    return descriptor.tree === tree && descriptor.digest === digest ? null : "taken twice, it differs";
  }

  async #anew(
    room: SnapshotContext,
    descriptor: Descriptor,
    expected: Record<string, string>,
    round: number,
  ): Promise<string | null> {
    const place = join(this.#room, `back-${round}`);
    await restoreAnew(room, descriptor, { place, branch: null });
    this.#task.count("restored anew");
    const found = difference(expected, treePicture(place));
    makeRemovable(place);
    execFileSync("git", ["worktree", "remove", "--force", place], { cwd: this.#root, stdio: "ignore" });
    return found === null ? null : `restored anew: ${found}`;
  }

  async #inPlace(
    room: SnapshotContext,
    descriptor: Descriptor,
    expected: Record<string, string>,
    withIgnored: boolean,
  ): Promise<string | null> {
    const key = writerKey(room.session.actor.worktreeId);
    await room.session.acquire([{ key, reach: "repository" }], { ttlSecs: 600 });
    const wrecked = treePicture(this.#root);
    let before: Descriptor | null;
    try {
      const { planId } = await previewInPlace(room, descriptor);
      ({ before } = await restoreInPlace(room, descriptor, { planId, fencingToken: null, secret: null }));
    } catch (error) {
      // Something that Git ignores is in the way: said so, and nothing was touched.
      if ((error as { code?: unknown }).code !== "E_POLICY") throw error;
      this.#task.count("something in the way");
      return difference(wrecked, treePicture(this.#root));
    }
    this.#task.count("restored in place");
    const now = treePicture(this.#root);
    // What Git ignores, and directories that are only there for it, stay beside what is brought back.
    const beside = withIgnored ? [] : Object.keys(now).filter((path) => isBeside(path, expected, now));
    const others = new Set([...(withIgnored ? [] : ignoredIn(this.#root)), ...beside]);
    for (const path of Object.keys(expected)) others.delete(path);
    const found = difference(expected, without(now, others));
    if (found !== null) return `restored in place: ${found}`;
    if (before === null) return null;
    const place = join(this.#room, "before");
    await restoreAnew(room, before, { place, branch: null });
    const kept = treePicture(place);
    const lost = Object.entries(wrecked).filter(
      ([path, what]) => kept[path] !== what && now[path] !== what && !what.startsWith("directory"),
    );
    makeRemovable(place);
    execFileSync("git", ["worktree", "remove", "--force", place], { cwd: this.#root, stdio: "ignore" });
    return lost.length === 0 ? null : `lost by restoring in place: ${JSON.stringify(lost.slice(0, 3))}`;
  }

  async #open(believesSoon: boolean): Promise<SnapshotContext> {
    const real = thisMachine();
    const tools = { ...real.tools, trees: async () => TREES };
    const machine = { ...real, tools, cwd: this.#root, home: null, env: {}, isTerminal: false };
    const workspace = await Workspace.open(machine, { agentId: "agent:fuzz", doing: "fuzz" });
    const room = await snapshotContext(workspace);
    return believesSoon ? { ...room, machine: { ...room.machine, youngMs: YOUNG_MS } } : room;
  }
}

/** No power fails here: syncing a whole disk several times a round would be most of the work. */
const TREES: Trees = { ...nodeTrees(), syncAll: () => {} };

/** Files that Git ignores, and the directories that hold nothing else, asked of Git in another way than we ask it. */
function ignoredIn(root: string): Set<string> {
  const list = (...args: string[]) =>
    execFileSync("git", ["status", "--porcelain=v1", "-z", ...args], {
      cwd: root,
      encoding: "latin1" as BufferEncoding,
      stdio: ["ignore", "pipe", "ignore"],
    })
      .split("\0")
      .filter((line) => line.startsWith("!! "))
      .map((line) => line.slice(3).replace(/\/$/, ""));
  const found = new Set(list("--ignored=matching", "--untracked-files=all"));
  const all = treePicture(root);
  for (const path of emptyAndIgnored(root, all)) found.add(path);
  for (const path of Object.keys(all)) {
    const parts = path.split("/");
    for (let n = 1; n < parts.length; n++) if (found.has(parts.slice(0, n).join("/"))) found.add(path);
  }
  return found;
}

/** `git status` does not speak of directories in which there is nothing. */
function emptyAndIgnored(root: string, all: Record<string, string>): string[] {
  const directories = Object.keys(all).filter((path) => all[path]!.startsWith("directory"));
  const input = Buffer.from(directories.map((path) => `${path}/\0`).join(""), "latin1");
  const { stdout } = spawnSync("git", ["check-ignore", "-z", "--stdin"], { cwd: root, input });
  return stdout
    .toString("latin1")
    .split("\0")
    .map((path) => path.replace(/\/$/, ""))
    .filter(Boolean);
}

/** A directory that is only there for something that is not part of the snapshot. */
function isBeside(path: string, expected: Record<string, string>, now: Record<string, string>): boolean {
  return path in now && !(path in expected) && now[path]!.startsWith("directory");
}

function without(files: Record<string, string>, names: ReadonlySet<string>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).filter(([path]) => !names.has(path)));
}

function difference(expected: Record<string, string>, found: Record<string, string>): string | null {
  const all = new Set([...Object.keys(expected), ...Object.keys(found)]);
  const wrong = [...all].filter((path) => expected[path] !== found[path]);
  if (wrong.length === 0) return null;
  const shown = wrong
    .slice(0, 5)
    .map((path) => `${JSON.stringify(path)}: ${expected[path]} became ${found[path]}`);
  return `${wrong.length} differ: ${shown.join("; ")}`;
}

/** A directory without permission to write cannot be emptied, except by root. */
function makeRemovable(root: string): void {
  execFileSync("chmod", ["-R", "u+rwX", root], { stdio: "ignore" });
}
