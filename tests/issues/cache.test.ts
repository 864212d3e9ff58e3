import * as fs from "node:fs";
import * as path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Catalog } from "../../src/features/issues/cache/catalog";
import { decodeCatalog, encodeCatalog, type Subject } from "../../src/features/issues/cache/file";
import { brokenEntry, entryFrom } from "../../src/features/issues/cache/table";
import { encodeIssue } from "../../src/features/issues/model";
import { ANYTHING, queryAvailable, queryClosed } from "../../src/features/issues/query";
import { shortId } from "../../src/features/issues/short-id";
import { makeUlid, type Ulid } from "../../src/kernel/ids";
import { Scene } from "./scene";

const SUBJECT: Subject = { roots: ["/r"], hasHead: true };

function catalogue(): Catalog {
  const scene = new Scene();
  const issues = [scene.make(), scene.make({ state: "done" }), scene.make({ title: "Ünïcode 🐙" })];
  const made = Catalog.empty(1, true).with(issues.map(({ id }) => id));
  const rowOf = (id: string) => made.rowOf(id);
  for (const issue of issues) {
    const sets = { labels: ["type:bug"], dependencies: [issues[0]!.id, "01HZZZZZZZZZZZZZZZZZZZZZZZ"] };
    made.places[0]!.table.set(made.rowOf(issue.id), entryFrom(issue.id, { issue }, sets), rowOf);
  }
  made.places[1]!.table.set(0, brokenEntry("it is not JSON"), rowOf);
  made.stamps.version[1] = 7;
  made.commit = "0123456789012345678901234567890123456789";
  made.position = '{"boot":"b"}';
  return made;
}

describe("the cache file", () => {
  it("brings back what went in", () => {
    const made = catalogue();
    const read = decodeCatalog(encodeCatalog(made, SUBJECT, Number.POSITIVE_INFINITY), SUBJECT)!;
    expect(read.names).toBe(made.names);
    expect([read.commit, read.position]).toEqual([made.commit, made.position]);
    expect([...read.stamps.version]).toEqual([0, 7, 0]);
    for (let row = 0; row < made.rows; row++) {
      const [before, after] = [made.places[0]!.table, read.places[0]!.table];
      expect(after.text(row)).toEqual(before.text(row));
      expect(after.labels(row)).toEqual(["type:bug"]);
      expect([...after.dependencies(row)]).toEqual([0, -1]);
      expect(after.columns.kind[row]).toBe(before.columns.kind[row]);
    }
    expect(read.places[1]!.table.text(0).broken).toBe("it is not JSON");
    // A dependency that comes later gets its row, and nothing else loses its own.
    const grown = read.with(["01HZZZZZZZZZZZZZZZZZZZZZZZ", "00000000000000000000000000"]);
    expect(grown.rows).toBe(5);
    expect([...grown.places[0]!.table.dependencies(1)]).toEqual([
      1,
      grown.rowOf("01HZZZZZZZZZZZZZZZZZZZZZZZ"),
    ]);
    expect(grown.places[0]!.table.text(3).title).toBe("Ünïcode 🐙");
  });

  it("is all there or nothing", () => {
    const bytes = encodeCatalog(catalogue(), SUBJECT, 0);
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const altered = bytes.slice();
        altered[at]! ^= flip;
        expect(decodeCatalog(altered, SUBJECT)).toBeNull();
        expect(decodeCatalog(bytes.slice(0, at), SUBJECT)).toBeNull();
      }),
      { numRuns: 300 },
    );
    expect(decodeCatalog(bytes, { ...SUBJECT, roots: ["/other"] })).toBeNull();
    expect(decodeCatalog(bytes, { ...SUBJECT, hasHead: false })).toBeNull();
    // Wherever in memory it was read to.
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);
    expect(decodeCatalog(shifted.subarray(3), SUBJECT)?.rows).toBe(3);
  });

  it("knows short ids as they are known without it", () => {
    const id = fc
      .tuple(fc.nat(1_000), fc.uint8Array({ minLength: 10, maxLength: 10, max: 3 }))
      .map(([time, random]) => makeUlid(time, random) as Ulid);
    fc.assert(
      fc.property(fc.uniqueArray(id, { minLength: 1, maxLength: 40 }), fc.nat(40), (ids, cut) => {
        const made = Catalog.empty(1, false).with(ids.slice(0, cut)).with(ids);
        for (const one of ids) expect(made.short(made.rowOf(one))).toBe(shortId(one, ids));
        expect(made.rowOf("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")).toBe(-1);
      }),
      { numRuns: 200 },
    );
  });
});

describe("the cache", () => {
  const available = async (scene: Scene) =>
    (await queryAvailable(await scene.setting(), ANYTHING)).issues.map(({ title }) => title);

  it("does not believe what may have changed again within one tick of a coarse clock", async () => {
    const scene = new Scene();
    scene.isCoarse = true;
    const issue = scene.make({ title: "Now" });
    expect(await available(scene)).toEqual(["Now"]);
    // As long as before, in the same file, and, as far as such a clock tells, at the same time.
    fs.writeFileSync(scene.file(issue.id), encodeIssue({ ...issue, title: "Own" }));
    expect(await available(scene)).toEqual(["Own"]);
    fs.writeFileSync(scene.file(issue.id), encodeIssue({ ...issue, state: "gated", title: "Own" }));
    expect(await available(scene)).toEqual([]);
  });

  it("survives a writer that was killed, and clears away after it", async () => {
    const scene = new Scene();
    scene.make({ title: "Work" });
    await available(scene);
    const [cache] = scene.cacheFiles();
    expect(cache).toBeDefined();
    const left = `${cache}.new-0123456789ab`;
    fs.writeFileSync(left, "half");
    fs.utimesSync(left, 1, 1);
    fs.truncateSync(cache!, 100);
    expect(await available(scene)).toEqual(["Work"]);
    expect(scene.cacheFiles().map((file) => path.basename(file))).toEqual([path.basename(cache!)]);
    expect(fs.statSync(cache!).size).toBeGreaterThan(100);
  });

  it("is written by many at once without harm", async () => {
    const scene = new Scene();
    for (let n = 0; n < 40; n++) scene.make({ title: `Work ${n}` });
    const all = await Promise.all(Array.from({ length: 8 }, () => available(scene)));
    for (const titles of all) expect(titles).toHaveLength(40);
    expect(scene.cacheFiles()).toHaveLength(1);
    expect(await available(scene)).toHaveLength(40);
  });

  it("is not made where it may not be, and the answer is the same", async () => {
    const scene = new Scene();
    scene.make({ title: "Work" });
    fs.mkdirSync(path.join(scene.main, ".git/cotenant"), { recursive: true });
    fs.writeFileSync(path.join(scene.main, ".git/cotenant/cache"), "in the way");
    expect(await available(scene)).toEqual(["Work"]);
    expect(await available(scene)).toEqual(["Work"]);
  });

  it("follows HEAD when the commit that it knew is gone", async () => {
    const scene = new Scene();
    const issue = scene.make({ title: "Work" });
    scene.git("add", ".cotenant/issues");
    scene.git("commit", "--quiet", "--message", "one");
    await available(scene);
    fs.rmSync(scene.folder(issue.id), { recursive: true });
    expect(await available(scene)).toEqual(["Work"]);
    scene.git("commit", "--quiet", "--amend", "--allow-empty", "--all", "--message", "none");
    scene.git("reflog", "expire", "--expire=now", "--all");
    scene.git("gc", "--quiet", "--prune=now");
    expect(await available(scene)).toEqual([]);
  });

  it("gives way to the worktree in which an issue is claimed, also in which state it is listed", async () => {
    const scene = new Scene();
    const issue = scene.make({ title: "Work" });
    const closed = async () =>
      (await queryClosed(await scene.setting(scene.main), ANYTHING)).issues.map(({ title }) => title);
    expect(await closed()).toEqual([]);
    fs.mkdirSync(scene.folder(issue.id, scene.other), { recursive: true });
    fs.writeFileSync(scene.file(issue.id, scene.other), encodeIssue({ ...issue, state: "archived" }));
    expect(await closed()).toEqual([]);
    await scene.claim(issue.id, scene.other, "agent:b");
    expect(await closed()).toEqual(["Work"]);
  });
});
