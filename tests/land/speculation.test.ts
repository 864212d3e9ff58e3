import { describe, expect, it } from "vitest";
import { type Rejection, Speculation, type Verdict } from "../../src/features/land/speculation";
import type { Ulid } from "../../src/kernel/ids";

const ids = (text: string) => text.split("") as Ulid[];
const REJECTION: Rejection = {
  why: "checks",
  message: "m",
  hint: "h",
  paths: [],
  output: "",
  outputFile: null,
};
const passed: Verdict = { kind: "passed" };
const pending: Verdict = { kind: "pending" };
const rejected: Verdict = { kind: "rejected", rejection: REJECTION };

/** Builds every entry as `<onto><id>`, so that a commit's name says on what it stands. */
function build(train: Speculation, queue: readonly Ulid[], verdict: Verdict = pending): string {
  const step = train.next(queue);
  if (step.do !== "build") return step.do;
  train.add({ entryId: step.entryId, commit: `${step.onto}${step.entryId}`, verdict });
  return `${step.onto}${step.entryId}`;
}

describe("which entries stand on which", () => {
  it("each on top of those before it, and no more than may be checked at once", () => {
    const train = new Speculation("0", 3);
    const queue = ids("abcd");
    expect([1, 2, 3, 4].map(() => build(train, queue))).toEqual(["0a", "0ab", "0abc", "wait"]);
  });

  it("lands strictly in order, whoever passes first", () => {
    const train = new Speculation("0", 2);
    const queue = ids("ab");
    build(train, queue);
    build(train, queue);
    train.judge("b" as Ulid, "0ab", passed);
    expect(train.next(queue).do).toBe("wait");
    train.judge("a" as Ulid, "0a", passed);
    expect(train.next(queue)).toMatchObject({ do: "land", slot: { commit: "0a" } });
    train.landed();
    // It stands on what has landed: nothing has to be built or checked again.
    expect(train.next(ids("b"))).toMatchObject({ do: "land", slot: { commit: "0ab", base: "0a" } });
  });

  it("what stood on one that failed is built anew without it", () => {
    const train = new Speculation("0", 3);
    const queue = ids("abc");
    for (let n = 0; n < 3; n++) build(train, queue);
    train.judge("b" as Ulid, "0ab", passed);
    train.judge("a" as Ulid, "0a", rejected);
    expect(train.next(queue)).toMatchObject({ do: "park", rejection: { why: "checks" } });
    train.left();
    expect(train.slots).toEqual([]);
    expect([build(train, ids("bc")), build(train, ids("bc"))]).toEqual(["0b", "0bc"]);
  });

  it("a failure counts only once everything below it has landed", () => {
    const train = new Speculation("0", 2);
    const queue = ids("ab");
    build(train, queue);
    build(train, queue);
    train.judge("b" as Ulid, "0ab", rejected);
    expect(train.next(queue).do).toBe("wait");
    train.judge("a" as Ulid, "0a", rejected);
    expect(train.next(queue)).toMatchObject({ do: "park", slot: { entryId: "a" } });
    train.left();
    // It was the fault of the first: the second is tried again without it.
    expect(build(train, ids("b"))).toBe("0b");
  });

  it("one that came to nothing is not stood on, and those behind it stay when it leaves", () => {
    const train = new Speculation("0", 3);
    build(train, ids("abc"));
    train.add({ entryId: "b" as Ulid, commit: null, verdict: rejected });
    expect(build(train, ids("abc"))).toBe("0ac");
    train.judge("a" as Ulid, "0a", passed);
    train.landed();
    expect(train.next(ids("bc"))).toMatchObject({ do: "park", slot: { entryId: "b" } });
    train.left();
    train.judge("c" as Ulid, "0ac", passed);
    expect(train.next(ids("c"))).toMatchObject({ do: "land", slot: { commit: "0ac" } });
  });

  it("what the target has already is dropped in its turn", () => {
    const train = new Speculation("0", 1);
    train.add({ entryId: "a" as Ulid, commit: null, verdict: { kind: "contained" } });
    expect(train.next(ids("ab"))).toMatchObject({ do: "drop", slot: { entryId: "a" } });
  });

  it("a verdict on what was given up meanwhile is nobody's", () => {
    const train = new Speculation("0", 1);
    build(train, ids("a"));
    train.restart("1");
    build(train, ids("a"));
    train.judge("a" as Ulid, "0a", passed);
    expect(train.next(ids("a")).do).toBe("wait");
    train.judge("a" as Ulid, "1a", passed);
    expect(train.next(ids("a"))).toMatchObject({ do: "land", slot: { commit: "1a" } });
  });

  it("ends where nothing waits", () => {
    expect(new Speculation("0", 4).next([])).toEqual({ do: "end" });
  });
});
