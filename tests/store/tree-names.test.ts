import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WorktreeId } from "../../src/kernel/ids";
import { type LeaseKey, parseKey } from "../../src/kernel/keys";
import { isRefusal } from "../../src/kernel/refusal";
import { layoutOf, modesFor } from "../../src/store/layout";
import { isMeta, isOurs, TreeNames } from "../../src/store/tree-names";
import { propertyRuns, propertySeed } from "../kernel/property";
import { CONTROL, key, range, sha256 } from "./stage";

const names = new TreeNames(layoutOf(CONTROL), { sha256 });
const RUNS = { numRuns: Math.min(propertyRuns(), 5_000), seed: propertySeed() };

/** Names that look like ours, that some file system would not take, or that differ in little. */
const awkward = fc.constantFrom(
  "meta.json",
  "meta@wt-00000001.json",
  "META.JSON",
  "meta.json.new",
  "meta",
  "metadata",
  "%6deta.json",
  "%",
  "%25",
  "%h",
  "%deep",
  "%u0041",
  "...",
  "a.",
  "a ",
  "a",
  "A",
  "ß",
  "ss",
  "é",
  "e\u0301",
  "con",
  "a:b",
  'a"b',
  "a\\b",
  "x".repeat(255),
  "ü".repeat(120),
  "x".repeat(240),
  "😀",
  "index",
  "applied",
  "reach",
);
const segment = fc.oneof(awkward, fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }));
const path = fc.array(segment, { minLength: 1, maxLength: 5 }).map((segments) => segments.join("/"));
const anyKey: fc.Arbitrary<LeaseKey> = fc
  .oneof(
    path.map((p) => `file:${p}`),
    path.map((p) => `dir:${p}`),
    segment.map((s) => `resource:${s}`),
    path.map((p) => `ref:refs/heads/${p}`),
    fc.constantFrom("dir:.", "scope:config", "worktree:wt:00000001", "issue:01ARZ3NDEKTSV4RRFFQ69G5FAV"),
  )
  .map((text) => parseKey(text))
  .filter((parsed): parsed is LeaseKey => !isRefusal(parsed));
const worktree = fc.constantFrom<(WorktreeId | null)[]>(
  null,
  "wt:00000001" as WorktreeId,
  "wt:00000002" as WorktreeId,
);

describe("where a lease has its file", () => {
  it("is nowhere else's place: no two different ones share a file", () => {
    fc.assert(
      fc.property(anyKey, worktree, anyKey, worktree, (a, wtA, b, wtB) => {
        if (a === b && wtA === wtB) return;
        expect(names.meta(a, wtA)).not.toBe(names.meta(b, wtB));
      }),
      RUNS,
    );
    const all = ["a", "A", "%41", "%", "%25", "meta.json", "%6deta.json", "x".repeat(250), "x".repeat(251)];
    const files = all.map((s) => names.meta(key(`file:${s}`), null));
    expect(new Set(files).size).toBe(all.length);
  });

  it("is never mistaken for a directory of the tree, nor the other way round", () => {
    fc.assert(
      fc.property(anyKey, (k) => {
        const below = names.directory(k).slice(`${CONTROL}/index/`.length).split("/");
        for (const name of below) expect(isOurs(name), name).toBe(false);
        expect(isMeta(names.meta(k, null).split("/").at(-1)!)).toBe(true);
      }),
      RUNS,
    );
  });

  it("is a name that every file system takes", () => {
    fc.assert(
      fc.property(anyKey, worktree, (k, wt) => {
        const file = names.meta(k, wt);
        expect(new TextEncoder().encode(file).length).toBeLessThan(1_000);
        for (const name of file.split("/").slice(1)) {
          expect(new TextEncoder().encode(name).length).toBeLessThanOrEqual(251);
          expect(name).not.toMatch(/^\.{1,2}$|[\0-\x1f\x7f\\:*?"<>|]|[. ]$|^$/);
        }
      }),
      RUNS,
    );
  });

  it("of resources and refs does not depend on the file system's idea of case", () => {
    const folded = (text: string) => text.normalize("NFKD").toUpperCase().toLowerCase();
    const named = anyKey.filter((k) => k.startsWith("resource:") || k.startsWith("ref:"));
    fc.assert(
      fc.property(named, named, (a, b) => {
        if (a !== b) expect(folded(names.meta(a, null))).not.toBe(folded(names.meta(b, null)));
      }),
      RUNS,
    );
    for (const [a, b] of [
      ["GPU", "gpu"],
      ["straße", "strasse"],
      ["É", "é"],
      ["ﬁ", "fi"],
    ])
      expect(folded(names.meta(key(`resource:${a}`), null))).not.toBe(
        folded(names.meta(key(`resource:${b}`), null)),
      );
  });

  it("stays where it is when the repository moves", () => {
    const deep = key(`file:${range(300).join("/")}`);
    const moved = new TreeNames(layoutOf(`/somewhere/${"else/".repeat(60)}`), { sha256 });
    const relative = (place: TreeNames) => place.meta(deep, null).split("/index/")[1];
    expect(relative(moved)).toBe(relative(names));
  });

  it("is readable where it can be", () => {
    const place = (text: string) => names.meta(key(text), null).slice(`${CONTROL}/index/`.length);
    expect(place("file:src/Büro/a b.ts")).toBe("file/src/Büro/a b.ts/meta.json");
    expect(place("dir:.")).toBe("dir/meta.json");
    expect(place("resource:gpu 1")).toBe("resource/gpu 1/meta.json");
    expect(place("ref:refs/heads/topic/x")).toBe("ref/refs/heads/topic/x/meta.json");
    expect(place("worktree:wt:00000001")).toBe("worktree/wt%3a00000001/meta.json");
  });
});

describe("modes", () => {
  it.each([
    [null, 0o600, 0o700],
    ["umask", 0o600, 0o700],
    ["false", 0o600, 0o700],
    ["group", 0o660, 0o2770],
    ["true", 0o660, 0o2770],
    ["1", 0o660, 0o2770],
    ["all", 0o664, 0o2775],
    ["everybody", 0o664, 0o2775],
    ["0640", 0o640, 0o2750],
    ["0660", 0o660, 0o2770],
    ["0600", 0o600, 0o2700],
    ["0777", 0o666, 0o2777],
    ["nonsense", 0o600, 0o700],
  ])("for core.sharedRepository = %s", (value, file, directory) => {
    expect(modesFor(value)).toEqual({ file, directory });
  });
});
