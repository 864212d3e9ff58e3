import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergeIssueFiles } from "../../src/features/issues/merge/files";
import { type MergedIssue, mergeIssues } from "../../src/features/issues/merge/issue";
import { isEqual } from "../../src/features/issues/merge/values";
import {
  decodeIssue,
  encodeIssue,
  ISSUE_STATES,
  type Issue,
  newIssue,
  PRIORITIES,
} from "../../src/features/issues/model";
import { encodeSetLine, readOrSet, type SetLine } from "../../src/features/issues/or-set";
import type { Ulid } from "../../src/kernel/ids";
import { propertyRuns, propertySeed } from "../kernel/property";
import { sha256 } from "../store/stage";

/** Each makes and merges whole issues: a fifth of what properties of the kernel get. */
const RUNS = Math.ceil(propertyRuns() / 5);
const SEED = propertySeed();
const SETTINGS = { numRuns: RUNS, seed: SEED };
const TIME = { timeout: 180_000 + RUNS * 10 };
const ID = "01M7F87SKQ7X3KZ979XRC4S87G" as Ulid;
const AT = "2026-01-01T00:00:00.000Z";
const MARKS = { left: "ours", right: "theirs", size: 7 };

/** Few of everything, so that two sides often mean the same. */
const name = fc.constantFrom("a", "b", "c", "d", "__proto__x");
const words = fc.constantFrom("one", "two", "three", "four", "", " x", "two\nlines", "- [ ] a\n- [ ] b");
const minute = fc.integer({ min: 0, max: 5 }).map((at) => `2026-01-01T00:0${at}:00.000Z`);
const json = fc.oneof(
  fc.integer({ min: 0, max: 2 }),
  name,
  fc.dictionary(name, fc.integer({ min: 0, max: 2 })),
);

type Change = (issue: Issue) => Issue;
const field = <F extends keyof Issue>(of: F, value: fc.Arbitrary<Issue[F]>): fc.Arbitrary<Change> =>
  value.map((to) => (issue) => ({ ...issue, [of]: to }));
const without = <T>(record: Readonly<Record<string, T>>, gone: string) =>
  Object.fromEntries(Object.entries(record).filter(([key]) => key !== gone));

const paragraphs = (issue: Issue, edit: (all: string[]) => void): Issue => {
  const all = issue.description.split("\n\n");
  edit(all);
  return { ...issue, description: all.join("\n\n") };
};

const onText = fc
  .record({ at: fc.nat(5), text: words, how: fc.constantFrom("set", "insert", "remove") })
  .map(({ at, text, how }): Change => {
    const count = how === "insert" ? 0 : 1;
    return (issue) =>
      paragraphs(issue, (all) => {
        all.splice(at % (all.length + 1), count, ...(how === "remove" ? [] : [text]));
      });
  });

const onList = fc
  .record({ of: fc.constantFrom("gates", "files"), item: name, at: fc.nat(3), isAddition: fc.boolean() })
  .map(
    ({ of, item, at, isAddition }): Change =>
      (issue) => {
        const rest = issue[of as "gates"].filter((one) => one !== item);
        return { ...issue, [of]: isAddition ? [...rest.slice(0, at), item, ...rest.slice(at)] : rest };
      },
  );

const onNames = fc.record({ key: name, value: words, isAddition: fc.boolean() }).map(
  ({ key, value, isAddition }): Change =>
    (issue) => {
      const rest = without(issue.context, key);
      return { ...issue, context: isAddition ? { ...rest, [key]: value } : rest };
    },
);

const onDocuments = fc
  .record({ path: name, title: fc.option(words), at: minute, isAddition: fc.boolean() })
  .map(
    ({ path, title, at, isAddition }): Change =>
      (issue) => {
        const rest = issue.documents.filter((one) => one.path !== path);
        const added = { path, title, added_at: at, added_by: "agent:a" };
        return { ...issue, documents: isAddition ? [...rest, added] : rest };
      },
  );

const onExtra = fc.record({ key: fc.constantFrom("tool", "points"), value: fc.option(json) }).map(
  ({ key, value }): Change =>
    (issue) => {
      const rest = without(issue.extra, key);
      return { ...issue, extra: value === null ? rest : { ...rest, [key]: value } };
    },
);

const change = fc.oneof(
  field("title", words),
  field("state", fc.constantFrom(...ISSUE_STATES)),
  field("priority", fc.constantFrom(...PRIORITIES)),
  field("assignee", fc.option(name)),
  field("resolution", fc.option(words)),
  { arbitrary: onText, weight: 4 },
  { arbitrary: onList, weight: 3 },
  onNames,
  onDocuments,
  onExtra,
);

interface Branch {
  readonly changes: readonly Change[];
  readonly updated_at: string;
  readonly isDeleted: boolean;
  readonly isTombstone: boolean;
}

const branch: fc.Arbitrary<Branch> = fc.record({
  changes: fc.array(change, { maxLength: 6 }),
  updated_at: minute,
  isDeleted: fc.integer({ min: 0, max: 11 }).map((at) => at === 0),
  isTombstone: fc.boolean(),
});

/** As our writes do it: each is a new version. */
function follow(base: Issue, { changes, updated_at, isDeleted, isTombstone }: Branch, origin: string): Issue {
  let issue = base;
  for (const next of changes) issue = next(issue);
  if (isDeleted) issue = { ...issue, deleted_at: updated_at, ...(isTombstone ? { description: "" } : {}) };
  const version = base.stamp.version + changes.length + (isDeleted ? 1 : 0);
  if (version === base.stamp.version) return base;
  return { ...issue, updated_at, updated_by: origin, stamp: { ...base.stamp, version, origin } };
}

const EMPTY = newIssue({
  id: ID,
  title: "Log in",
  created_at: AT,
  created_by: "agent:a",
  stamp: { version: 1, origin: "wt:0", lease_id: null, fencing_token: null, sequence: null },
});
const baseIssue = fc
  .array(change, { maxLength: 12 })
  .map((changes) => changes.reduce((issue, next) => next(issue), EMPTY));
const scene = fc.record({ base: baseIssue, left: branch, right: branch }).map(({ base, left, right }) => ({
  base,
  left: follow(base, left, "wt:1"),
  right: follow(base, right, "wt:2"),
}));

const linesOf = (text: string) => text.split("\n").filter((line) => line.trim() !== "");
const contentOf = ({ stamp: _, ...content }: Issue) => content;

/** Deleted here and worked on there: whoever decides against the deletion has all of the work. */
function expectLivingKept(
  { base, left, right }: Record<"base" | "left" | "right", Issue>,
  merged: MergedIssue,
): void {
  const [living, result] = left.deleted_at === null ? [left, merged.left] : [right, merged.right];
  expect(result.deleted_at).toBe(null);
  for (const of of ["title", "state", "priority", "assignee", "resolution"] as const)
    if (!isEqual(living[of], base[of])) expect(result[of], of).toEqual(living[of]);
  const was = new Set(linesOf(base.description));
  for (const line of linesOf(living.description))
    if (!was.has(line)) expect(linesOf(result.description)).toContain(line);
  for (const of of ["gates", "files"] as const)
    for (const item of living[of]) if (!base[of].includes(item)) expect(result[of]).toContain(item);
}

describe("issues that two branches changed in any way", () => {
  it("merge to the same in either order, also as files", TIME, () => {
    fc.assert(
      fc.property(scene, ({ base, left, right }) => {
        const [one, other] = [mergeIssues(base, left, right), mergeIssues(base, right, left)];
        expect(one).toEqual({ left: other.right, right: other.left, conflicts: other.conflicts });
        const texts = [base, left, right].map(encodeIssue) as [string, string, string];
        const [here, there] = [
          mergeIssueFiles(texts[0], texts[1], texts[2], MARKS, sha256),
          mergeIssueFiles(texts[0], texts[2], texts[1], MARKS, sha256),
        ];
        if (!("text" in here) || !("text" in there)) throw new Error("merged as text");
        if (here.conflicts.length === 0) expect(here.text).toBe(there.text);
        expect(here.conflicts).toEqual(there.conflicts);
      }),
      SETTINGS,
    );
  });

  it("lose nothing that one side wrote alone, and bring nothing back that one side removed", TIME, () => {
    fc.assert(
      fc.property(scene, ({ base, left, right }) => {
        const merged = mergeIssues(base, left, right);
        if (merged.conflicts.includes("deleted_at")) return expectLivingKept({ base, left, right }, merged);
        for (const of of Object.keys(base) as (keyof Issue)[]) {
          if (["stamp", "updated_at", "updated_by"].includes(of)) continue;
          if (isEqual(left[of], base[of])) expect(merged.right[of], of).toEqual(right[of]);
          if (isEqual(right[of], base[of])) expect(merged.left[of], of).toEqual(left[of]);
          if (isEqual(left[of], base[of]) || isEqual(right[of], base[of]))
            expect(merged.left[of], of).toEqual(merged.right[of]);
        }
        for (const of of ["gates", "files"] as const) {
          const all = new Set([...base[of], ...left[of], ...right[of]]);
          for (const item of all) {
            const [was, mine, yours] = [base, left, right].map((issue) => issue[of].includes(item));
            expect(merged.left[of].includes(item), `${of} ${item}`).toBe(was ? mine && yours : mine || yours);
          }
          expect(new Set(merged.left[of]).size).toBe(merged.left[of].length);
        }
        for (const [side, result] of [
          [left, merged.left],
          [right, merged.right],
        ] as const) {
          const was = new Set(linesOf(base.description));
          const has = new Set(linesOf(result.description));
          for (const line of linesOf(side.description)) if (!was.has(line)) expect(has).toContain(line);
          for (const [key, value] of Object.entries(side.context))
            if (base.context[key] !== value) expect(result.context[key]).toBe(value);
        }
        expect(merged.left.stamp.version).toBeGreaterThanOrEqual(
          Math.max(left.stamp.version, right.stamp.version),
        );
      }),
      SETTINGS,
    );
  });

  it("change nothing when only one of them did, to the byte", TIME, () => {
    fc.assert(
      fc.property(scene, ({ base, left }) => {
        const [from, mine] = [encodeIssue(base), encodeIssue(left)];
        for (const [one, other] of [
          [mine, from],
          [from, mine],
          [mine, mine],
        ] as const)
          expect(mergeIssueFiles(from, one, other, MARKS, sha256)).toMatchObject({
            text: mine,
            conflicts: [],
          });
      }),
      SETTINGS,
    );
  });

  it("can be merged again: what was merged has both sides in it already", TIME, () => {
    fc.assert(
      fc.property(scene, ({ base, left, right }) => {
        const merged = mergeIssues(base, left, right);
        fc.pre(merged.conflicts.length === 0);
        // As after `git merge`: the other side is the common ancestor now.
        expect(mergeIssues(right, merged.left, right).left).toEqual(merged.left);
        expect(mergeIssues(left, left, merged.left).left).toEqual(merged.left);
      }),
      SETTINGS,
    );
  });

  it(
    "come to the same when three branches meet in another order, but for what texts move and remove",
    TIME,
    () => {
      const three = fc.record({ base: baseIssue, a: branch, b: branch, c: branch });
      let compared = 0;
      fc.assert(
        fc.property(three, (given) => {
          const { base } = given;
          const [a, b, c] = [given.a, given.b, given.c].map((one, at) => follow(base, one, `wt:${at}`)) as [
            Issue,
            Issue,
            Issue,
          ];
          const [ab, bc] = [mergeIssues(base, a, b), mergeIssues(base, b, c)];
          const [first, second] = [mergeIssues(base, ab.left, c), mergeIssues(base, a, bc.left)];
          if ([ab, bc, first, second].some(({ conflicts }) => conflicts.length > 0)) return;
          compared++;
          const plain = (issue: Issue) => ({
            ...contentOf(issue),
            gates: [...issue.gates].sort(),
            files: [...issue.files].sort(),
            documents: [...issue.documents].sort((x, y) => (x.path < y.path ? -1 : 1)),
            description: "",
          });
          expect(plain(first.left)).toEqual(plain(second.left));
          // No three-way merge of texts is associative in what it moves and removes; what was new is in both.
          const was = new Set(linesOf(base.description));
          const news = ({ description }: Issue) =>
            new Set(linesOf(description).filter((line) => !was.has(line)));
          expect(news(first.left)).toEqual(news(second.left));
        }),
        SETTINGS,
      );
      expect(compared).toBeGreaterThan(RUNS / 50);
    },
  );

  it(
    "that contradict make a file which is JSON again, whichever value each conflict is resolved to",
    TIME,
    () => {
      let conflicts = 0;
      fc.assert(
        fc.property(scene, fc.infiniteStream(fc.boolean()), ({ base, left, right }, choice) => {
          const merged = mergeIssueFiles(
            encodeIssue(base),
            encodeIssue(left),
            encodeIssue(right),
            MARKS,
            sha256,
          );
          if (!("text" in merged) || merged.conflicts.length === 0) return;
          conflicts++;
          expect(decodeIssue(merged.text)).toEqual({ broken: "it has unresolved merge conflicts" });
          const block = /^<{7} ours\n([\s\S]*?)^={7}\n([\s\S]*?)^>{7} theirs\n/gm;
          expect(merged.text.replace(block, "$1")).toBe(encodeIssue(merged.merged.left));
          expect(merged.text.replace(block, "$2")).toBe(encodeIssue(merged.merged.right));
          const mixed = merged.text.replace(block, (_, mine: string, yours: string) =>
            choice.next().value ? mine : yours,
          );
          expect(decodeIssue(mixed)).toMatchObject({ issue: { id: ID } });
        }),
        SETTINGS,
      );
      expect(conflicts).toBeGreaterThan(RUNS / 50);
    },
  );
});

describe("labels and dependencies", () => {
  type Step = { readonly value: string; readonly isAddition: boolean };
  const steps = fc.array(fc.record({ value: name, isAddition: fc.boolean() }), { maxLength: 8 });
  const tag = (number: number) => `01M7F87SKQ${String(number).padStart(16, "0")}` as Ulid;

  /** What a branch appends, and the set as it sees it. */
  function write(lines: readonly string[], todo: readonly Step[], first: number): string[] {
    const all = [...lines];
    for (const [at, { value, isAddition }] of todo.entries()) {
      const seen = readOrSet(all.join("")).tags.get(value);
      const said = { value, at: AT, by: "agent:a" };
      const line: SetLine | null = isAddition
        ? { op: "add", tag: tag(first + at), ...said }
        : seen === undefined
          ? null
          : { op: "remove", tags: seen, ...said };
      if (line !== null) all.push(encodeSetLine(line));
    }
    return all;
  }

  it("of two branches are the union that an OR-set promises, in whatever order lines end up", TIME, () => {
    fc.assert(
      fc.property(steps, steps, steps, fc.integer(), (before, mine, yours, shuffle) => {
        const base = write([], before, 0);
        const [left, right] = [write(base, mine, 100), write(base, yours, 200)];
        const union = [...base, ...left.slice(base.length), ...right.slice(base.length)];
        const turned = union.map(
          (_, at) => union[(((at + shuffle) % union.length) + union.length) % union.length]!,
        );
        const merged = readOrSet(union.join(""));
        expect(readOrSet(turned.join(""))).toEqual(merged);
        expect(readOrSet([...turned, ...union].reverse().join(""))).toEqual(merged);
        const [was, one, other] = [base, left, right].map((lines) => readOrSet(lines.join("")).tags);
        const added = (side: typeof one, value: string) =>
          (side!.get(value) ?? []).some((held) => !(was!.get(value) ?? []).includes(held));
        const removed = (side: typeof one, value: string) =>
          (was!.get(value) ?? []).every((held) => !(side!.get(value) ?? []).includes(held));
        for (const value of ["a", "b", "c", "d", "__proto__x"]) {
          const hasNew = added(one, value) || added(other, value);
          const keepsOld = was!.has(value) && !removed(one, value) && !removed(other, value);
          if (hasNew) expect(merged.values, value).toContain(value);
          else if (!keepsOld && (was!.get(value)?.length ?? 0) <= 1)
            expect(merged.values, value).not.toContain(value);
          if (keepsOld && one!.has(value) && other!.has(value) && was!.get(value)!.length === 1)
            expect(merged.values, value).toContain(value);
        }
      }),
      SETTINGS,
    );
  });
});
