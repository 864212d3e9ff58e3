import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../house/source";
import { mentionsIn, problemWith, testsIn } from "./named-tests";

const THREATS = readFileSync(join(ROOT, "docs/THREATS.md"), "utf8");

describe("THREATS", () => {
  const threats = THREATS.split(/^## /m).slice(1);

  it("names a test against each", () => {
    expect(threats.length).toBeGreaterThan(5);
    const bare = threats.filter((threat) => testsIn(threat).length === 0);
    expect(bare.map((threat) => threat.split("\n")[0])).toEqual([]);
  });

  it("names only tests that exist", () => {
    expect(
      testsIn(THREATS)
        .map(problemWith)
        .filter((wrong) => wrong !== null),
    ).toEqual([]);
    expect(mentionsIn(THREATS)).toBe(testsIn(THREATS).length);
  });
});
