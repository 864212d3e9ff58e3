import { rmSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holdsAll } from "../../src/features/snapshots/base-snapshot";
import { compareFiles } from "../../src/features/snapshots/comparison";
import type { KeptFile } from "../../src/features/snapshots/contents";
import { type Descriptor, decodeDescriptor, encodeDescriptor } from "../../src/features/snapshots/descriptor";
import { meantSnapshot } from "../../src/features/snapshots/descriptor-store";
import { drawGraph } from "../../src/features/snapshots/graph";
import { decodeManifest, encodeManifest, makeManifest } from "../../src/features/snapshots/manifest";
import { planReplacement } from "../../src/features/snapshots/replacement";
import { planRetention, type Rules } from "../../src/features/snapshots/retention";
import {
  decodeRemembered,
  encodeRemembered,
  loadRemembered,
  type Remembered,
  saveRemembered,
} from "../../src/features/snapshots/stat-cache";
import { buildTrees } from "../../src/features/snapshots/tree-builder";
import { bytesOf, byteTextOf } from "../../src/git/byte-text";
import { nodePlatform } from "../../src/platform/node/node";
import { ROW } from "../../src/platform/trees";
import { scratch } from "../support/scratch";

const platform = nodePlatform();
const path = fc
  .array(
    fc.string({
      unit: fc.integer({ min: 1, max: 255 }).map((code) => String.fromCharCode(code)),
      minLength: 1,
      maxLength: 12,
    }),
  )
  .map((parts) => parts.map((part) => part.replaceAll("/", "_")).join("/"))
  .filter((text) => text !== "");
const mode = fc.integer({ min: 0, max: 0o777 });

describe("bytes as text", () => {
  it("come back as they were, in parts of any kind", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, isLong) => {
        const whole = isLong ? Uint8Array.from([...new Array(9_000).fill(97), ...bytes]) : bytes;
        expect(bytesOf(byteTextOf(whole))).toEqual(whole);
      }),
    );
    expect(byteTextOf(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))).toBe("\xef\xbb\xbfa");
  });
});

describe("a manifest", () => {
  it("says of every file and directory what its permissions were", () => {
    const entries = fc.uniqueArray(fc.tuple(path, mode), { selector: ([name]) => name });
    fc.assert(
      fc.property(entries, entries, entries, (files, directories, unlisted) => {
        const made = makeManifest({ files, directories, unlisted });
        const read = decodeManifest(encodeManifest(made))!;
        for (const [name, bits] of files)
          expect(
            read.files.get(name) ?? ((bits & 0o100) === 0 ? read.usual.file : read.usual.executable),
          ).toBe(bits);
        for (const [name, bits] of directories)
          expect(read.directories.get(name) ?? read.usual.directory).toBe(bits);
        expect(new Map(read.unlisted)).toEqual(new Map(unlisted));
      }),
    );
  });

  it("is refused where it is anything else", () => {
    const good = byteTextOf(
      encodeManifest(makeManifest({ files: [["a", 0o600]], directories: [], unlisted: [["b", 0o755]] })),
    );
    expect(decodeManifest(bytesOf(good))).not.toBeNull();
    for (const bad of [
      "",
      "x",
      good.slice(0, -1),
      good.replace("manifest 1", "manifest 2"),
      good.replace("h 755", "h 955"),
      `${good}z 644 x\0`,
    ])
      expect(decodeManifest(bytesOf(bad)), JSON.stringify(bad)).toBeNull();
  });
});

describe("what is remembered of a tree", () => {
  const remembered = (paths: readonly string[]) => ({
    snapshotId: "01M7G6KS0JX8JQPG438R8ZVW6J",
    rest: { branch: "d\u00e9j\u00e0 \u2028", files: 3 },
    picture: {
      listingMark: "mark",
      paths,
      rows: Float64Array.from({ length: paths.length * ROW }, (_, i) => (i % 7 === 0 ? Number.NaN : i / 3)),
      oids: paths.map((_, i) => (i % 2 === 0 ? "" : "ab".repeat(20))),
      directories: ["d", "d/e"],
      directoryRows: new Float64Array(2 * ROW),
      directoryTrees: ["cd".repeat(20), ""],
      tree: "ef".repeat(20),
    },
  });

  it("is read back as it was", () => {
    fc.assert(
      fc.property(fc.uniqueArray(path, { maxLength: 20 }), (paths) => {
        const made = remembered(paths);
        // Node's own bytes lie somewhere in a larger piece of memory.
        const bytes = Buffer.concat([Buffer.from("xyz"), encodeRemembered(platform, made)]).subarray(3);
        const read = decodeRemembered(platform, bytes)!;
        expect({ ...read.picture, paths: [...read.picture.paths] }).toEqual({ ...made.picture });
        expect({ id: read.snapshotId, rest: read.rest }).toEqual({ id: made.snapshotId, rest: made.rest });
      }),
    );
  });

  it("is not believed with a single bit flipped, or cut short", () => {
    const bytes = encodeRemembered(platform, remembered(["a", "b"]));
    for (let at = 0; at < bytes.length; at += 7) {
      const flipped = Uint8Array.from(bytes);
      flipped[at]! ^= 4;
      expect(decodeRemembered(platform, flipped), `byte ${at}`).toBeNull();
      expect(decodeRemembered(platform, bytes.subarray(0, at)), `${at} bytes`).toBeNull();
    }
  });
});

describe("what a new snapshot builds on", () => {
  const rest = { digest: "d", index: "i", stages: null, skipped: "s" };
  const remembered = { snapshotId: "x", rest, picture: { tree: "t" } } as unknown as Remembered;

  it("is kept only by one with the same files, permissions and index", () => {
    const same = { ...descriptor(), ...rest, tree: "t" } as Descriptor;
    expect(holdsAll(same, remembered)).toBe(true);
    for (const [field, other] of Object.entries({
      tree: "u",
      digest: "e",
      index: null,
      stages: "x",
      skipped: null,
    }))
      expect(holdsAll({ ...same, [field]: other }, remembered), field).toBe(false);
  });

  it("is read again when another process has written it anew", async () => {
    const at = `${scratch()}/cache/tree`;
    const none = { paths: [], rows: new Float64Array(0), oids: [] };
    const folders = { directories: [], directoryRows: new Float64Array(0), directoryTrees: [] };
    const picture = { listingMark: "mark", tree: "ef".repeat(20), ...none, ...folders };
    for (const snapshotId of ["01M7G6KS0JX8JQPG438R8ZVW6J", "01M7G6KS0JX8JQPG438R8ZVW6K"]) {
      await saveRemembered(
        platform,
        at,
        { snapshotId, rest: {}, picture },
        { directory: 0o700, file: 0o600 },
      );
      expect((await loadRemembered(platform, at))?.snapshotId).toBe(snapshotId);
      expect((await loadRemembered(platform, at))?.snapshotId, "and from memory").toBe(snapshotId);
    }
    rmSync(at);
    expect(await loadRemembered(platform, at)).toBeNull();
  });
});

describe("trees", () => {
  it("that are known already are used, not made again, and change nothing", async () => {
    const made: string[] = [];
    const put = async (_type: string, content: Uint8Array) => {
      made.push(byteTextOf(content));
      return platform.digest.sha1(content);
    };
    const oid = "ab".repeat(20);
    const leaves = ["a", "d/x", "d/e/y", "f/z", "f.x", "f-x"].map((name) => ({
      path: name,
      mode: "100644",
      oid,
    }));
    const all = await buildTrees(put, leaves);
    const count = made.length;
    const known = new Map([...all.trees].filter(([name]) => name.startsWith("d")));
    const again = await buildTrees(put, leaves, known);
    expect(again.root).toBe(all.root);
    expect(made.length - count, "the root and f").toBe(2);
  });
});

let made = 0;
function descriptor(fields: Partial<Descriptor> = {}): Descriptor {
  made++;
  return {
    schema_version: 1,
    snapshot_id: `01M7G6KS0J${String(made).padStart(16, "0")}`,
    worktree_id: "wt:00000001",
    parent: null,
    created_at: new Date(made * 1000).toISOString(),
    automatic: null,
    tags: [],
    ...fields,
  } as unknown as Descriptor;
}

describe("retention", () => {
  const rules: Rules = {
    keepAutomatic: 2,
    olderThanMs: null,
    worktreeId: null,
    withManual: false,
    named: [],
  };
  const ids = (doomed: ReturnType<typeof planRetention>) => doomed.map((one) => one.descriptor.snapshot_id);

  it("takes the oldest automatic ones of each worktree, and nothing else", () => {
    const auto = Array.from({ length: 5 }, () => descriptor({ automatic: "restore" }));
    const other = Array.from({ length: 2 }, () =>
      descriptor({ automatic: "steal", worktree_id: "wt:00000002" }),
    );
    const manual = descriptor();
    const all = [...auto, ...other, manual];
    expect(ids(planRetention(all, rules, 0))).toEqual(auto.slice(0, 3).map((one) => one.snapshot_id));
    expect(ids(planRetention(all, { ...rules, worktreeId: "wt:00000002" }, 0))).toEqual([]);
  });

  it("never takes tagged ones, what was kept of removed worktrees, or the last of a worktree, but by name", () => {
    const tagged = descriptor({ automatic: "restore", tags: ["keep"] });
    const gone = descriptor({ automatic: "remove" });
    const old = descriptor({ automatic: "restore" });
    const last = descriptor();
    const all = [tagged, gone, old, last];
    const strict: Rules = { ...rules, keepAutomatic: 0, olderThanMs: 1, withManual: true };
    expect(ids(planRetention(all, strict, 1e15))).toEqual([old.snapshot_id]);
    expect(
      ids(planRetention(all, { ...strict, named: [tagged.snapshot_id, last.snapshot_id] }, 1e15)),
    ).toEqual([tagged.snapshot_id, last.snapshot_id]);
  });

  it("takes what somebody took only by age, and only when asked", () => {
    const [one, two, last] = [descriptor(), descriptor(), descriptor()];
    const aged: Rules = { ...rules, olderThanMs: 10_000 };
    const now = Date.parse(two.created_at) + 10_000;
    expect(ids(planRetention([one, two, last], aged, now))).toEqual([]);
    expect(ids(planRetention([one, two, last], { ...aged, withManual: true }, now))).toEqual([
      one.snapshot_id,
    ]);
  });
});

describe("the snapshot that somebody means", () => {
  it("is found by id, short id, tag or as the latest of the worktree", () => {
    const one = descriptor({ tags: ["first"] });
    const two = descriptor({ worktree_id: "wt:00000002" });
    const all = [one, two];
    expect(meantSnapshot("first", all, null)).toBe(one);
    expect(meantSnapshot(two.snapshot_id.toLowerCase(), all, null)).toBe(two);
    expect(meantSnapshot("latest", all, "wt:00000001")).toBe(one);
    expect(() => meantSnapshot("0000", all, null)).toThrow("could be 2 snapshots");
    const again = descriptor({ tags: ["first"] });
    expect(() => meantSnapshot("first", [...all, again], null)).toThrow('2 snapshots are tagged "first"');
    expect(() => meantSnapshot("nothing", all, null)).toThrow("no snapshot");
    expect(() => meantSnapshot("latest", [], null)).toThrow("no snapshot");
  });
});

describe("a descriptor", () => {
  it("is refused when something of it is missing or of another kind", () => {
    const whole = {
      ...{ ...descriptor(), root: "/r", tree: "ab".repeat(20), commit: "ab".repeat(20), agent_id: "agent:a" },
      ...{
        consistency_level: "quiesced",
        fencing_token: 1,
        note: null,
        digest: "x",
        includes_ignored: false,
      },
      ...{ head: null, branch: null, index: null, stages: null, skipped: null, files: 1, bytes: 1 },
      ...{ by_commit: [], left_out: [] },
    } as Descriptor;
    expect(decodeDescriptor(encodeDescriptor(whole), "x")).toEqual(whole);
    for (const [field, value] of [
      ...([
        ["tree", "../x"],
        ["tree", null],
        ["commit", "--help"],
        ["head", 7],
        ["tags", "x"],
        ["files", "1"],
      ] as const),
      ...([
        ["snapshot_id", undefined],
        ["by_commit", null],
        ["schema_version", 0],
      ] as const),
    ])
      expect(decodeDescriptor(JSON.stringify({ ...whole, [field]: value }), "x"), field).toBeNull();
    expect(decodeDescriptor("[1", "x")).toBeNull();
    expect(decodeDescriptor("null", "x")).toBeNull();
  });
});

describe("a graph", () => {
  it("shows where snapshots branch and meet", () => {
    const root = descriptor();
    const left = descriptor({ parent: root.snapshot_id });
    const right = descriptor({ parent: root.snapshot_id });
    const alone = descriptor({ parent: "01M7G6KS0JZZZZZZZZZZZZZZZZ" });
    const tip = descriptor({ parent: left.snapshot_id });
    const lanes = drawGraph([tip, alone, right, left, root]).map((line) => line.lanes);
    expect(lanes).toEqual(["*", "| *", "| *", "* |", "* /"]);
  });
});

describe("replacing what is there", () => {
  const file = (name: string, fields: Partial<KeptFile> = {}): KeptFile => ({
    ...{ path: name, kind: "file", mode: 0o644, oid: "a" },
    ...fields,
  });
  const at = (files: readonly KeptFile[], directories: readonly [string, number][] = []) => ({
    files,
    directories: new Map(directories),
  });
  const now = (files: readonly KeptFile[], directories: readonly [string, number][] = []) => ({
    files: new Map(files.map((one) => [one.path, one] as const)),
    directories: new Map(directories),
  });

  it("writes what differs, removes what is too much, and leaves repositories and the data plane alone", () => {
    const plan = planReplacement(
      now(
        [
          file("same"),
          file("content"),
          file("mode"),
          file("extra"),
          file("repo", { kind: "repository" }),
          file(".cotenant/issues/x"),
        ],
        [
          ["d", 0o755],
          ["old", 0o755],
          [".cotenant", 0o755],
          ["locked", 0o555],
        ],
      ),
      at(
        [
          file("same"),
          file("content", { oid: "b" }),
          file("mode", { mode: 0o600 }),
          file("new"),
          file("sub", { kind: "repository" }),
          file(".cotenant/y"),
        ],
        [
          ["d", 0o700],
          ["fresh", 0o755],
          ["locked", 0o555],
        ],
      ),
    );
    expect(plan).toEqual({
      write: [file("content", { oid: "b" }), file("new")],
      chmod: [file("mode", { mode: 0o600 })],
      remove: ["extra"],
      makeDirectories: [["fresh", 0o755]],
      openDirectories: [["locked", 0o555]],
      chmodDirectories: [["d", 0o700]],
      removeDirectories: ["old"],
      untouched: ["repo", "sub"],
    });
  });

  it("and comparing say the same about files", () => {
    const [one, other] = [
      now([file("a"), file("b")]).files,
      now([file("b", { kind: "symlink" }), file("c")]).files,
    ];
    expect(compareFiles(one, other).map(({ path: name, difference }) => `${difference} ${name}`)).toEqual([
      "removed a",
      "changed b",
      "added c",
    ]);
  });
});
