import { appendFileSync, linkSync, mkdirSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { LogFiles, lastSequence } from "../../testing/checker/log-files";
import { scratch } from "../support/scratch";

let control = "";
let log = "";

beforeEach(() => {
  control = scratch();
  log = join(control, "claims.jsonl");
  mkdirSync(join(control, "archive"));
});

function rotate(segment: number, first: string): void {
  linkSync(log, join(control, "archive", `claims-${String(segment).padStart(6, "0")}.jsonl`));
  writeFileSync(`${log}.next`, first);
  renameSync(`${log}.next`, log);
}

describe("reading the log as it grows", () => {
  it("tells each whole line once, through several rotations between two looks", () => {
    const files = new LogFiles(control);
    expect(files.read()).toEqual([]);
    writeFileSync(log, "one\n");
    expect(files.read()).toEqual(["one"]);
    appendFileSync(log, "two\n");
    rotate(1, "three\n");
    rotate(2, "four\n");
    appendFileSync(log, "five\n");
    expect(files.read()).toEqual(["two", "three", "four", "five"]);
    expect(files.read()).toEqual([]);
    expect(files.segments).toBe(3);
  });

  it("takes a torn end for nothing, and what is written in its place for what it is", () => {
    const files = new LogFiles(control);
    writeFileSync(log, "one\ntor");
    expect(files.read()).toEqual(["one"]);
    truncateSync(log, 4);
    appendFileSync(log, "two, with an é\n");
    expect(files.read()).toEqual(["two, with an é"]);
  });

  it("reads on in a segment whose rotation died half-way", () => {
    const files = new LogFiles(control);
    writeFileSync(log, "one\n");
    linkSync(log, join(control, "archive", "claims-000001.jsonl"));
    expect(files.read()).toEqual(["one"]);
    appendFileSync(log, "two\n");
    expect(files.read()).toEqual(["two"]);
  });
});

describe("the last sequence number", () => {
  it.each([10, 10_000, 200_000])("is that of the last whole line, with lines of %i characters", (length) => {
    const line = (sequence: number) => `${JSON.stringify({ sequence, filler: "x".repeat(length) })}\n`;
    writeFileSync(log, line(1));
    expect(lastSequence(control)).toBe(1);
    appendFileSync(log, `${line(2)}{"sequence":3,`);
    expect(lastSequence(control)).toBe(2);
  });
});
