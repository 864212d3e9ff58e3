import { describe, expect, it } from "vitest";
import { Books } from "../../src/demo/books";
import { draw, type Picture } from "../../src/demo/view";

const STATES = ["up", "starting", "stopped", "dead", "gone", "up", "up", "up"] as const;

function picture(agents: number): Picture {
  return {
    seed: 7,
    elapsedMs: 5_000,
    lengthMs: 20_000,
    phase: "at work",
    agents: Array.from({ length: agents }, (_, i) => ({
      name: `agent${i}`,
      pid: 10_000 + i,
      state: STATES[i % STATES.length]!,
      doing: "waits",
      about: "file:src/ui/button.tsx, file:src/ui/menu.tsx, file:docs/guide.md",
    })),
    leases: Array.from({ length: 20 }, (_, i) => ({
      label: `file:src/ui/part-${i}.tsx`,
      token: 100 + i,
      who: "ann",
      isDead: i === 0,
    })),
    counts: new Books().counts,
    checked: 123_456,
    violations: [],
    events: Array.from(
      { length: 30 },
      (_, i) => `   ${i}.0 s  something long happened to somebody, for a reason`,
    ),
  };
}

const plain = (_style: string, text: string) => text;

describe("the live view", () => {
  it.each([
    [80, 24, 8],
    [120, 40, 8],
    [120, 40, 32],
    [40, 12, 8],
    [20, 6, 2],
    [9, 4, 2],
  ])("stays within %i columns and %i rows with %i agents", (columns, rows, agents) => {
    const lines = draw(picture(agents), { columns, rows }, plain);
    expect(lines.length).toBeLessThan(rows);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(columns);
    expect(lines.join("\n")).not.toMatch(/[\x00-\x09\x0b-\x1f]/);
  });

  it("shows everybody and everything that matters in 80 by 24", () => {
    const text = draw(picture(8), { columns: 80, rows: 24 }, plain).join("\n");
    for (let i = 0; i < 8; i++) expect(text).toContain(`agent${i}`);
    for (const word of ["seed 7", "granted 0", "fenced off 0", "123,456 checks, no violation", "#100 ann ×"])
      expect(text).toContain(word);
    expect(text).toContain("29.0 s");
  });

  it("shows a violation where everybody looks", () => {
    const violated = { ...picture(8), violations: ["fencing tokens rise: file:a got #1\nafter #2"] };
    const text = draw(violated, { columns: 80, rows: 24 }, plain).join("\n");
    expect(text).toContain("1 violated: fencing tokens rise: file:a got #1 / after #2");
  });
});
