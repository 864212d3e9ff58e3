import { describe, expect, it } from "vitest";
import { descendantOf, lineageAfter } from "../../src/features/issues/lineage";
import { mergeIssueFiles } from "../../src/features/issues/merge/files";
import { mergeIssues } from "../../src/features/issues/merge/issue";
import { decodeIssue, encodeIssue, type Issue, newIssue } from "../../src/features/issues/model";
import { LARGEST_COUNT } from "../../src/kernel/bounds";
import type { Ulid } from "../../src/kernel/ids";
import { sha256 } from "../store/stage";

const AT = "2026-01-01T00:00:00.000Z";
const LATER = "2026-01-02T00:00:00.000Z";
const ID = "01M7F87SKQ7X3KZ979XRC4S87G" as Ulid;
const MARKS = { left: "ours", right: "theirs", size: 7 };
const stamp = (version: number, origin = "wt:00000001") => ({
  version,
  origin,
  lease_id: null,
  fencing_token: null,
  sequence: null,
});
const BASE = newIssue({ id: ID, title: "Log in", created_at: AT, created_by: "agent:a", stamp: stamp(1) });
const changed = (fields: Partial<Issue>, version = 2): Issue => ({
  ...BASE,
  stamp: stamp(version),
  ...fields,
});
const document = (path: string, title: string | null = null) => ({
  path,
  title,
  added_at: AT,
  added_by: "agent:a",
});

/** The one result in either order. */
function merged(left: Partial<Issue>, right: Partial<Issue>, base: Partial<Issue> = {}): Issue {
  const whole = { ...BASE, ...base };
  const of = (fields: Partial<Issue>) => changed({ ...base, ...fields });
  const one = mergeIssues(whole, of(left), of(right));
  expect(one.conflicts).toEqual([]);
  expect(mergeIssues(whole, of(right), of(left))).toEqual(one);
  expect(one.left).toEqual(one.right);
  return one.left;
}

function conflicts(
  left: Partial<Issue>,
  right: Partial<Issue>,
  base: Partial<Issue> = {},
): readonly string[] {
  const whole = { ...BASE, ...base };
  const of = (fields: Partial<Issue>) => changed({ ...base, ...fields });
  return mergeIssues(whole, of(left), of(right)).conflicts;
}

describe("fields of an issue", () => {
  it("that only one side changed are that side's", () => {
    const left = { title: "Sign in", assignee: "agent:b", extra: { points: 3 } };
    const right = { state: "done", priority: "high", resolution: "as asked", extra: { team: "x" } } as const;
    expect(merged(left, right)).toMatchObject({ ...left, ...right, extra: { points: 3, team: "x" } });
  });

  it("that both changed to the same contradict nowhere", () => {
    expect(merged({ title: "Sign in" }, { title: "Sign in", priority: "low" })).toMatchObject({
      title: "Sign in",
      priority: "low",
    });
  });

  it.each([
    ["title", { title: "A" }, { title: "B" }],
    ["state", { state: "done" }, { state: "rejected" }],
    ["priority", { priority: "low" }, { priority: "high" }],
    ["assignee", { assignee: "agent:a" }, { assignee: "agent:b" }],
    ["resolution", { resolution: "a" }, { resolution: "b" }],
    ["description", { description: "a" }, { description: "b" }],
    ["context", { context: { a: "1" } }, { context: { a: "2" } }],
    ["documents", { documents: [document("a", "A")] }, { documents: [document("a", "B")] }],
    ["points", { extra: { points: 1 } }, { extra: { points: 2 } }],
  ] as const)("that both changed to something else contradict: %s", (name, left, right) => {
    expect(conflicts(left as Partial<Issue>, right as Partial<Issue>)).toEqual([name]);
    expect(conflicts(right as Partial<Issue>, left as Partial<Issue>)).toEqual([name]);
  });

  it("say who wrote last, and who first, without ever contradicting", () => {
    const left = { updated_at: LATER, updated_by: "agent:b", created_at: LATER };
    const right = { updated_at: AT, updated_by: "agent:c", created_at: AT, created_by: "agent:z" };
    expect(merged(left, right)).toMatchObject({
      updated_at: LATER,
      updated_by: "agent:b",
      created_at: AT,
      created_by: "agent:z",
    });
    expect(merged({ updated_at: "2026-01-01T23:00:00-05:00" }, { updated_at: LATER }).updated_at).toContain(
      "-05:00",
    );
  });

  it("in lists are sets: additions and removals of both sides count", () => {
    const base = { gates: ["a", "b", "c"], files: ["x", "y"] };
    const left = { gates: ["a", "c", "d"], files: ["y"] };
    const right = { gates: ["e", "a", "b"], files: ["x", "y", "z"] };
    expect(merged(left, right, base)).toMatchObject({ gates: ["e", "a", "d"], files: ["y", "z"] });
  });

  it("in lists keep the order that one side gave them", () => {
    const base = { gates: ["a", "b", "c"] };
    expect(merged({ gates: ["c", "a", "b"] }, { title: "T" }, base).gates).toEqual(["c", "a", "b"]);
    expect(merged({ gates: ["c", "a", "b"] }, { gates: ["a", "b", "c", "d"] }, base).gates).toEqual([
      "c",
      "a",
      "b",
      "d",
    ]);
  });

  it("by name: of context and of documents, each is its own", () => {
    const base = { context: { a: "1", b: "2" }, documents: [document("a"), document("b")] };
    const left = { context: { a: "1", b: "2", c: "3" }, documents: [document("b", "B")] };
    const right = { context: { b: "2b" }, documents: [document("a"), document("b"), document("c")] };
    expect(merged(left, right, base)).toMatchObject({
      context: { b: "2b", c: "3" },
      documents: [document("b", "B"), document("c")],
    });
  });

  it("by name: removed here and changed there is for a person", () => {
    const base = { context: { a: "1" }, documents: [document("a")], extra: { tool: { x: 1 } } };
    const left = { context: {}, documents: [], extra: {} };
    const right = { context: { a: "2" }, documents: [document("a", "A")], extra: { tool: { x: 2 } } };
    expect(conflicts(left, right, base)).toEqual(["documents", "context", "tool"]);
  });

  it("of other tools merge at any depth, and a list is one value", () => {
    const base = { extra: { tool: { a: 1, deep: { b: 1 } }, list: [1] } };
    const left = { extra: { tool: { a: 2, deep: { b: 1 } }, list: [1] } };
    const right = { extra: { tool: { a: 1, deep: { b: 1, c: 2 } }, list: [1, 2] } };
    expect(merged(left, right, base).extra).toEqual({ tool: { a: 2, deep: { b: 1, c: 2 } }, list: [1, 2] });
    expect(conflicts({ extra: { list: [1, 3] } }, { extra: { list: [1, 2] } }, base)).toEqual(["list"]);
  });

  it("without a common ancestor: what only one side has filled in counts", () => {
    const left = changed({ description: "Text", gates: ["a"], context: { a: "1" } });
    const right = changed({ assignee: "agent:b", gates: ["b"], context: { b: "2" } });
    const both = mergeIssues(null, left, right);
    expect(both.conflicts).toEqual([]);
    expect(both.left).toMatchObject({ description: "Text", assignee: "agent:b", gates: ["a", "b"] });
    expect(both.left.context).toEqual({ a: "1", b: "2" });
    expect(mergeIssues(null, changed({ title: "A" }), changed({ title: "B" })).conflicts).toEqual(["title"]);
  });
});

describe("a deletion", () => {
  const gone = { deleted_at: LATER, description: "", assignee: null };
  const base = { description: "Text", assignee: "agent:a" };

  it("against nothing new is a deletion, also when both did it", () => {
    expect(merged(gone, { updated_at: LATER }, base)).toMatchObject(gone);
    expect(merged(gone, { deleted_at: AT }, base).deleted_at).toBe(AT);
  });

  it("against work on it is for a person, who finds that work whole", () => {
    const one = mergeIssues(
      { ...BASE, ...base },
      changed({ ...base, ...gone }),
      changed({ ...base, title: "New" }),
    );
    expect(one.conflicts).toEqual(["deleted_at"]);
    expect(one.left).toMatchObject({
      deleted_at: LATER,
      title: "New",
      description: "Text",
      assignee: "agent:a",
    });
    expect(one.right).toMatchObject({ deleted_at: null, title: "New", description: "Text" });
  });

  it("that one side took back is taken back", () => {
    expect(
      merged({ deleted_at: null, title: "Back" }, { updated_at: LATER }, { deleted_at: AT }),
    ).toMatchObject({
      deleted_at: null,
      title: "Back",
    });
  });
});

describe("the stamp", () => {
  const of = (left: Issue, right: Issue) => mergeIssues(BASE, left, right).left.stamp;

  it("of something new is one more than the highest, and nobody's lease", () => {
    expect(of(changed({ title: "A" }, 4), changed({ priority: "low" }, 7))).toEqual(stamp(8, "merge"));
  });

  it("of what is one side's whole content is that side's", () => {
    const left = changed({ title: "A", stamp: { ...stamp(5), lease_id: "L", fencing_token: 3 } });
    expect(of(left, BASE)).toEqual(left.stamp);
    expect(of(BASE, left)).toEqual(left.stamp);
    expect(of(left, { ...left, stamp: stamp(6) })).toEqual(stamp(6));
  });

  it("is never that of a copy which others would take for older than the one that was given up", () => {
    expect(of(changed({ title: "A" }, 2), { ...BASE, stamp: stamp(9) })).toEqual(stamp(10, "merge"));
    expect(of(changed({ title: "A" }, 2), { ...BASE, stamp: stamp(2) })).toEqual(stamp(3, "merge"));
  });

  it("stays a number that can be read", () => {
    const highest = LARGEST_COUNT;
    const { left } = mergeIssues(BASE, changed({ title: "A" }, highest), changed({ priority: "low" }, 2));
    expect(decodeIssue(encodeIssue(left))).toMatchObject({ issue: { stamp: { version: highest } } });
  });
});

describe("files", () => {
  const text = (fields: Partial<Issue>, version = 2) => encodeIssue(changed(fields, version));
  const files = (base: string | null, left: string, right: string) =>
    mergeIssueFiles(base, left, right, MARKS, sha256);
  const pick = (from: string, side: "<" | ">") =>
    from.replace(/^<{7} ours\n([\s\S]*?)^={7}\n([\s\S]*?)^>{7} theirs\n/gm, side === "<" ? "$1" : "$2");

  it("that say one side's content stay as that side wrote them, to the byte", () => {
    const mine = JSON.stringify(JSON.parse(text({ title: "A" })));
    expect(files(encodeIssue(BASE), mine, encodeIssue(BASE))).toMatchObject({ text: mine, conflicts: [] });
    expect(files(encodeIssue(BASE), encodeIssue(BASE), mine)).toMatchObject({ text: mine, conflicts: [] });
  });

  it("show both values between Git's marks, and are JSON again with either", () => {
    const base = encodeIssue({ ...BASE, context: { a: "0", z: "0" } });
    const left = text({ title: "A", context: { a: "1", z: "0" }, extra: { points: 1 } });
    const right = text({ title: "B", context: { a: "2", z: "0" }, priority: "low" });
    const found = files(base, left, right) as { text: string; conflicts: readonly string[] };
    expect(found.conflicts).toEqual(["title", "context"]);
    expect(found.text).toContain(
      '\n<<<<<<< ours\n  "title": "A",\n=======\n  "title": "B",\n>>>>>>> theirs\n',
    );
    expect(found.text).toContain(
      '\n  "context": {\n<<<<<<< ours\n    "a": "1",\n=======\n    "a": "2",\n>>>>>>> theirs\n    "z": "0"\n  },\n',
    );
    expect(decodeIssue(found.text)).toEqual({ broken: "it has unresolved merge conflicts" });
    const shared = { priority: "low", extra: { points: 1 }, stamp: stamp(3, "merge") };
    expect(decodeIssue(pick(found.text, "<"))).toMatchObject({
      issue: { title: "A", context: { a: "1" }, ...shared },
    });
    expect(decodeIssue(pick(found.text, ">"))).toMatchObject({
      issue: { title: "B", context: { a: "2" }, ...shared },
    });
  });

  it("mark lists that begin and end alike so that either is whole", () => {
    const lists = [[1], [1, 1], [1, 1, 1]].map((list) => text({ extra: { list } })) as [
      string,
      string,
      string,
    ];
    const found = files(...lists) as { text: string };
    expect(JSON.parse(pick(found.text, "<")).list).toEqual([1, 1]);
    expect(JSON.parse(pick(found.text, ">")).list).toEqual([1, 1, 1]);
  });

  it("with an unresolved common ancestor decide nothing that depends on it", () => {
    const ancestor = files(encodeIssue(BASE), text({ title: "X" }), text({ title: "Y" })) as { text: string };
    expect(
      files(ancestor.text, text({ title: "X" }, 4), text({ title: "Y", priority: "low" }, 4)),
    ).toMatchObject({
      conflicts: ["title"],
    });
    const agreed = files(ancestor.text, text({ title: "Z" }, 4), text({ title: "Z", priority: "low" }, 4));
    expect(agreed).toMatchObject({ conflicts: [], merged: { left: { title: "Z", priority: "low" } } });
  });

  const other = "01M7F87SKQ7X3KZ979XRC4S87H" as Ulid;
  it.each([
    ["not JSON", "{", /not JSON/],
    ["unresolved", "<<<<<<< a\n{}\n=======\n>>>>>>> b\n", /unresolved/],
    ["of a newer version", text({ schema_version: 2 }), /newer/],
    ["another issue", text({ id: other }), /different issues/],
    [
      "of a priority that nobody knows",
      text({ priority: "urgent" as "high" }),
      /its priority is not understood/,
    ],
    ["with a list of other things", text({ gates: [1] as never }), /its gates is not understood/],
    ["with a document without a path", text({ documents: [{}] as never }), /its documents is not understood/],
    ["with a document twice", text({ documents: [document("a"), document("a")] }), /document twice/],
    ["with a field twice", text({}).replace('"title"', '"title": "lost",\n  "title"'), /a field twice/],
    [
      "with a field twice, spelled otherwise",
      text({}).replace('"title"', '"t\\u0069tle": "",\n"title"'),
      /a field twice/,
    ],
    [
      "with more digits than a number has",
      text({}).replace('"stamp"', '"n": 12345678901234567890,\n"stamp"'),
      /digits/,
    ],
    [
      "with a number without end",
      text({}).replace('"stamp"', '"n": 1e999,\n"stamp"'),
      /not understood|digits/,
    ],
    [
      "with __proto__",
      text({}).replace('"stamp"', '"__proto__": {"a": 1},\n"stamp"'),
      /__proto__ is not understood/,
    ],
    ["huge", text({ description: "x".repeat(9_000_000) }), /too large/],
  ])("that would lose something are left to a text merge: %s", (_, odd, why) => {
    const fine = text({ title: "A" });
    expect(files(encodeIssue(BASE), odd, fine)).toMatchObject({ why: expect.stringMatching(why) });
    expect(files(encodeIssue(BASE), fine, odd)).toMatchObject({ why: expect.stringMatching(why) });
    expect(files(odd, fine, text({ priority: "low" }))).toEqual({
      why: "what both come from cannot be read",
    });
  });

  it("with a name like __proto__ below other fields keep it, and make no prototype of it", () => {
    const deep = '"tool": {"__proto__": {"isAdmin": true}, "a": 1}';
    const left = text({ title: "A" }).replace('"stamp"', `${deep},\n"stamp"`);
    const found = files(encodeIssue(BASE), left, text({ extra: { tool: { b: 2 } } })) as { text: string };
    expect(JSON.parse(found.text).tool).toEqual(JSON.parse('{"__proto__":{"isAdmin":true},"a":1,"b":2}'));
    expect(({} as Record<string, unknown>)["isAdmin"]).toBeUndefined();
  });
});

describe("a copy that the other was made from", () => {
  const writtenAfter = (before: Issue, fields: Partial<Issue>, version: number): Issue => ({
    ...before,
    ...fields,
    stamp: { ...stamp(version), lineage: lineageAfter([before], sha256) },
  });
  const first = { ...BASE, stamp: stamp(1) };
  const second = writtenAfter(first, { title: "Second" }, 2);
  const third = writtenAfter(second, { title: "Third", state: "done" }, 3);

  it("gives way, in either order, however many writes are between them", () => {
    for (const older of [first, second]) {
      const texts = [encodeIssue(older), encodeIssue(third)] as const;
      expect(mergeIssueFiles(null, texts[0], texts[1], MARKS, sha256)).toMatchObject({ text: texts[1] });
      expect(mergeIssueFiles("", texts[1], texts[0], MARKS, sha256)).toMatchObject({ text: texts[1] });
    }
  });

  it("does not, where the newer one was written without having seen it", () => {
    // A higher number, made from the first one: what the second says is not in it.
    const blind = writtenAfter(first, { title: "Blind" }, 3);
    expect(descendantOf(null, second, blind, sha256)).toBeNull();
    const merged = mergeIssueFiles(null, encodeIssue(second), encodeIssue(blind), MARKS, sha256);
    expect(merged).toMatchObject({ conflicts: ["title"] });
  });

  it("does not, where both come from something newer: then it is somebody's way back", () => {
    const fourth = writtenAfter(third, { priority: "high" }, 4);
    expect(descendantOf(third, second, fourth, sha256)).toBeNull();
    expect(descendantOf(first, second, fourth, sha256)).toBe(fourth);
  });

  it("does not, with one letter changed, or with a lineage that is none", () => {
    expect(descendantOf(null, { ...second, title: "Secand" }, third, sha256)).toBeNull();
    for (const lineage of ["", "x", "0".repeat(16_000), [] as never]) {
      const text = encodeIssue({ ...third, stamp: { ...stamp(3), lineage } });
      const reading = decodeIssue(text);
      expect("issue" in reading && reading.issue.stamp.lineage).toBeUndefined();
    }
  });

  it("is remembered through a merge, and the merge is the same in either order", () => {
    const left = writtenAfter(second, { priority: "high" }, 3);
    const right = writtenAfter(second, { assignee: "agent:b" }, 3);
    const texts = [encodeIssue(second), encodeIssue(left), encodeIssue(right)] as const;
    const merged = mergeIssueFiles(texts[0], texts[1], texts[2], MARKS, sha256);
    expect(mergeIssueFiles(texts[0], texts[2], texts[1], MARKS, sha256)).toEqual(merged);
    const whole = (merged as { merged: { left: Issue } }).merged.left;
    for (const older of [left, right, second, first])
      expect(descendantOf(null, older, whole, sha256)).toBe(whole);
  });
});
