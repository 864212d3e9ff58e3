import * as fs from "node:fs";
import * as path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WatchedIssues } from "../../src/daemon/watched-issues";
import type { IssueRow } from "../../src/features/issues/board";
import { encodeIssue, type Issue, type IssueState } from "../../src/features/issues/model";
import {
  ANYTHING,
  queryAll,
  queryAvailable,
  queryBlocked,
  queryClosed,
} from "../../src/features/issues/query";
import { propertySeed } from "../kernel/property";
import { amount } from "../support/sample";
import { type Expected, plainly, Scene, type Seen } from "./scene";

const RUNS = Number(process.env["TEST_CACHE_RUNS"] ?? amount(12, 4));
const STEPS = 14;

const seen = ({ id, title, state, labels, dependencies }: IssueRow): Seen => ({
  id,
  title,
  state,
  labels,
  dependencies,
});

/** Each question as a process of its own would ask it. */
async function answers(scene: Scene, root: string): Promise<Expected> {
  const ask = async <T>(query: (setting: Awaited<ReturnType<Scene["setting"]>>) => Promise<T>) =>
    query(await scene.setting(root));
  const all = await ask((setting) => queryAll(setting, ANYTHING, "everywhere"));
  const list = ({ issues }: { issues: readonly IssueRow[] }) => issues.map(seen);
  return {
    available: list(await ask((setting) => queryAvailable(setting, ANYTHING))),
    all: list(all),
    blocked: list(await ask((setting) => queryBlocked(setting, ANYTHING))),
    closed: list(await ask((setting) => queryClosed(setting, ANYTHING))),
    broken: all.broken.map(({ id }) => id as string).sort(),
    here: list(await ask((setting) => queryAll(setting, ANYTHING, "here"))),
  };
}

/** What an outsider, or cotenant, may do to an issue; `n` chooses among whatever there is to choose. */
type Deed = (scene: Scene, issue: Issue, n: number) => Promise<void> | void;

const STATES: readonly IssueState[] = ["ready", "gated", "done", "backlog", "in_progress", "archived"];
const edited = (scene: Scene, issue: Issue, change: Partial<Issue>, root = scene.main) => {
  fs.mkdirSync(scene.folder(issue.id, root), { recursive: true });
  const text = encodeIssue({ ...issue, ...change });
  return { text, file: scene.file(issue.id, root) };
};
const version = (n: number) => ({
  version: n,
  origin: "",
  lease_id: null,
  fencing_token: null,
  sequence: null,
});
const quietly = (act: () => unknown) => {
  try {
    act();
  } catch {
    // Git refuses what it cannot do, and that is no change.
  }
};

const DEEDS: Readonly<Record<string, Deed>> = {
  "in place, and as long as before": (scene, issue, n) => {
    const { text, file } = edited(scene, issue, { state: n % 2 === 0 ? "ready" : "gated" });
    fs.writeFileSync(file, text);
  },
  "in place, with the old time put back": (scene, issue, n) => {
    const { text, file } = edited(scene, issue, { state: n % 2 === 0 ? "gated" : "ready" });
    const old = fs.existsSync(file) ? fs.statSync(file) : null;
    fs.writeFileSync(file, text);
    if (old !== null) fs.utimesSync(file, old.atime, old.mtime);
  },
  "by rename, and older than it was": (scene, issue, n) => {
    const { text, file } = edited(scene, issue, { state: STATES[n % STATES.length]!, stamp: version(n % 4) });
    fs.writeFileSync(`${file}.tmp`, text);
    fs.utimesSync(`${file}.tmp`, 1_000_000, 1_000_000);
    fs.renameSync(`${file}.tmp`, file);
  },
  "with a time that has not come yet": (scene, issue, n) => {
    const { text, file } = edited(scene, issue, { title: `Later ${n}`, priority: "high" });
    fs.writeFileSync(file, text);
    fs.utimesSync(file, 4_000_000_000, 4_000_000_000);
  },
  // Not as a newer version than cotenant's own: of worktrees that are no layer, what was logged counts.
  "in the other worktree": (scene, issue, n) => {
    const { text, file } = edited(
      scene,
      issue,
      { state: STATES[n % STATES.length]!, stamp: version(n % 2) },
      scene.other,
    );
    fs.writeFileSync(file, text);
  },
  "its file gone": (scene, issue) => fs.rmSync(scene.file(issue.id), { force: true }),
  "its directory gone": (scene, issue) => fs.rmSync(scene.folder(issue.id), { recursive: true, force: true }),
  "its directory empty": (scene, issue) => {
    fs.rmSync(scene.folder(issue.id), { recursive: true, force: true });
    fs.mkdirSync(scene.folder(issue.id), { recursive: true });
  },
  broken: (scene, issue, n) => {
    const { file } = edited(scene, issue, {});
    fs.writeFileSync(file, n % 2 === 0 ? "{" : encodeIssue({ ...issue, state: "lost" as IssueState }));
  },
  "a link to somewhere else": (scene, issue, n) => {
    const { file } = edited(scene, issue, {});
    const target = path.join(scene.main, "..", `target-${issue.id}.json`);
    fs.writeFileSync(target, encodeIssue({ ...issue, title: `Linked ${n}` }));
    fs.rmSync(file, { force: true });
    fs.symlinkSync(target, file);
  },
  "one more to wait for": (scene, issue, n) => {
    const all = fs.readdirSync(path.join(scene.main, ".cotenant/issues"));
    fs.mkdirSync(scene.folder(issue.id), { recursive: true });
    const needed = n % 7 === 0 ? "01HZZZZZZZZZZZZZZZZZZZZZZZ" : all[n % Math.max(1, all.length)];
    if (needed !== undefined) scene.addTo(issue.id, "deps", needed);
  },
  "one more label": (scene, issue, n) => {
    fs.mkdirSync(scene.folder(issue.id), { recursive: true });
    scene.addTo(issue.id, "labels", ["type:bug", "type:epic", "area:login"][n % 3]!);
  },
  "no more to wait for": (scene, issue) =>
    fs.rmSync(path.join(scene.folder(issue.id), "deps.or-set.jsonl"), { force: true }),
  "a new one": (scene, issue, n) => {
    scene.make(
      { priority: n % 2 === 0 ? "low" : "critical" },
      { dependencies: n % 3 === 0 ? [issue.id] : [] },
    );
  },
  committed: (scene) => {
    quietly(() => scene.git("add", "--all", ".cotenant/issues"));
    quietly(() => scene.git("commit", "--quiet", "--message", "more"));
  },
  "another branch": (scene, _, n) =>
    quietly(() =>
      scene.git(
        "checkout",
        "--quiet",
        "--force",
        n % 2 === 0 ? "main" : "--detach",
        ...(n % 2 === 0 ? [] : ["HEAD~1"]),
      ),
    ),
  "refs packed": (scene) => quietly(() => scene.git("pack-refs", "--all")),
  "written by cotenant here": (scene, issue, n) =>
    scene.update(issue.id, scene.main, "agent:a", { state: STATES[n % STATES.length]! }).catch(() => {}),
  "written by cotenant there": (scene, issue, n) =>
    scene.update(issue.id, scene.other, "agent:b", { state: STATES[n % STATES.length]! }).catch(() => {}),
  "deleted there": (scene, issue) =>
    scene.update(issue.id, scene.other, "agent:b", { deleted_at: new Date().toISOString() }).catch(() => {}),
  "claimed there": (scene, issue) => scene.claim(issue.id, scene.other, "agent:b").catch(() => {}),
  "given back there": (scene, issue) => scene.release(issue.id, scene.other, "agent:b").catch(() => {}),
  "the cache torn": (scene, _, n) => {
    for (const file of scene.cacheFiles()) fs.truncateSync(file, n % Math.max(1, fs.statSync(file).size));
  },
  "the cache altered": (scene, _, n) => {
    for (const file of scene.cacheFiles()) {
      const bytes = fs.readFileSync(file);
      if (bytes.length === 0) continue;
      bytes[n % bytes.length]! ^= 1 << (n % 8);
      fs.writeFileSync(file, bytes);
    }
  },
};

const step = fc.record({
  deed: fc.constantFrom(...Object.keys(DEEDS)),
  which: fc.nat(1_000),
  n: fc.nat(1_000_000),
  /** Whether anybody looks afterwards: what changes twice between two looks must show too. */
  isLooked: fc.boolean(),
});

interface Step {
  readonly deed: string;
  readonly which: number;
  readonly n: number;
  readonly isLooked: boolean;
}

/** With somebody who watches, who is asked just after each change. Answers how often they knew what had changed. */
async function playWatched(steps: readonly Step[]): Promise<number> {
  const scene = new Scene();
  const watched = new WatchedIssues(path.join(scene.main, "..", "cookies"));
  let known = 0;
  scene.watcher = {
    worthFrom: 0,
    ask: async (question) => {
      const answer = await watched.ask(question);
      if (typeof answer?.cache === "string") known++;
      return answer;
    },
    tell: async (question, { epoch, tick }, cache) => watched.tell(question, { epoch, tick, cache }),
  };
  try {
    for (const root of [scene.main, scene.other])
      fs.mkdirSync(path.join(root, ".cotenant/issues"), { recursive: true });
    await play(scene, steps, true);
    return known;
  } finally {
    watched.close();
  }
}

async function play(scene: Scene, steps: readonly Step[], isAged: boolean): Promise<void> {
  scene.isAged = isAged;
  const made = [scene.make(), scene.make({ state: "done" })];
  made.push(scene.make({}, { dependencies: [made[0]!.id], labels: ["type:story"] }));
  made.push(scene.make({}, { dependencies: [made[1]!.id] }));
  for (const root of [scene.main, scene.other]) await answers(scene, root);
  for (const [at, { deed, which, n, isLooked }] of steps.entries()) {
    // A cache that believes everything needs a file system whose clock has moved on.
    if (isAged) await new Promise((resolve) => setTimeout(resolve, 15));
    await DEEDS[deed]!(scene, made[which % made.length]!, n);
    if (isAged && scene.watcher === null) await new Promise((resolve) => setTimeout(resolve, 15));
    if (!isLooked && at < steps.length - 1) continue;
    const root = n % 3 === 0 ? scene.other : scene.main;
    const expected = await plainly(await scene.setting(root));
    expect(await answers(scene, root), `after step ${at}, ${deed}, in ${path.basename(root)}`).toEqual(
      expected,
    );
    // And once more, from what the first answer has left in the cache.
    expect(await answers(scene, root), `again after step ${at}, ${deed}`).toEqual(expected);
  }
}

describe("answers from the cache", () => {
  it("know an issue that only its holder's worktree has, with a cache and without", async () => {
    const scene = new Scene();
    const issue = scene.make();
    await scene.claim(issue.id, scene.other, "agent:b");
    fs.mkdirSync(scene.folder(issue.id, scene.other), { recursive: true });
    fs.renameSync(scene.file(issue.id), scene.file(issue.id, scene.other));
    fs.rmSync(scene.folder(issue.id), { recursive: true });
    for (const cache of ["none yet", "made by the first answer"]) {
      const { all } = await answers(scene, scene.main);
      expect(
        all.map(({ id }) => id),
        cache,
      ).toEqual([issue.id]);
    }
  });

  it.each([
    ["as caches are", false],
    ["with a cache that has settled", true],
  ])("are those of the files, whatever happens to them (%s)", { timeout: 600_000 }, async (_, isAged) => {
    const steps = fc.array(step, { minLength: 1, maxLength: STEPS });
    await fc.assert(
      fc.asyncProperty(steps, (all) => play(new Scene(), all, isAged)),
      { numRuns: RUNS, seed: propertySeed(), endOnFailure: true },
    );
  });

  it.runIf(process.platform === "linux")(
    "are those of the files, also where somebody watches who is asked at once",
    { timeout: 600_000 },
    async () => {
      let known = 0;
      const steps = fc.array(step, { minLength: 1, maxLength: STEPS });
      await fc.assert(
        fc.asyncProperty(steps, async (all) => {
          known += await playWatched(all);
        }),
        { numRuns: RUNS, seed: propertySeed(), endOnFailure: true },
      );
      // Otherwise nothing was tried.
      expect(known).toBeGreaterThan(0);
    },
  );
});
