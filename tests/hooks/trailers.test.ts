import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  carried,
  parseTrailers,
  type Trailers,
  trailerLines,
  withoutTrailers,
} from "../../src/features/hooks/trailers";

const word = fc.stringMatching(/^[A-Za-z0-9:]{1,20}$/).filter((text) => text !== "none");
const token = fc.nat({ max: 2 ** 40 });
const issue = fc
  .record({ issueId: word, lease: fc.option(fc.record({ leaseId: word, token })) })
  .map(({ issueId, lease }) => ({ issueId, leaseId: lease?.leaseId ?? null, token: lease?.token ?? null }));
const trailers = fc.record({
  agentId: fc.option(word),
  worktreeId: fc.option(word),
  issues: fc.array(issue, { maxLength: 4 }),
  leases: fc.array(fc.record({ leaseId: word, token }), { maxLength: 20 }),
});
const text = fc.string({ unit: "binary" }).filter((one) => !one.includes("Cotenant-"));

describe("trailers", () => {
  it("are read as they were written, whatever stands before them", () => {
    fc.assert(
      fc.property(trailers, text, (said, message) => {
        const lines = trailerLines(said);
        const read = parseTrailers([message, "", ...lines, ""].join("\n"));
        if (lines.length === 0) return;
        expect(read).toMatchObject(said);
        expect(withoutTrailers([message, ...lines].join("\n"))).toBe(message);
        // As `git merge --squash` shows the messages of its commits.
        expect(parseTrailers(lines.map((line) => `    ${line}`).join("\n"))).toEqual(
          parseTrailers(lines.join("\n")),
        );
      }),
    );
  });

  it("of several messages are all there, each lease with its own token", () => {
    fc.assert(
      fc.property(fc.array(trailers, { maxLength: 4 }), (all) => {
        const read = parseTrailers(all.map((one) => trailerLines(one).join("\n")).join("\n\nsubject\n\n"));
        expect(read.issues).toEqual(all.flatMap(({ issues }) => issues));
        expect(read.leases).toEqual(all.flatMap(({ leases }) => leases));
      }),
    );
  });

  it("survive any text, and nothing is made of what has no value", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("Issue", "Lease", "Token", "Agent", "x"), { maxLength: 9 }),
        (names) => {
          const read = parseTrailers(names.map((name) => `Cotenant-${name}:`).join("\n"));
          expect(read.leases).toEqual([]);
          expect(read.issues.every(({ leaseId, token: one }) => leaseId === null && one === null)).toBe(true);
        },
      ),
    );
    expect(parseTrailers("Cotenant-Token: 5\nCotenant-Lease: L\nsaid\nCotenant-Token: 7").leases).toEqual([
      { leaseId: "L", token: 7 },
    ]);
  });

  it("are carried from what a commit is made of: each once, a claim that was given back before none", () => {
    const none: Trailers = {
      agentId: "agent:b",
      worktreeId: "wt:2",
      issues: [{ issueId: "X", leaseId: null, token: null }],
    };
    const earlier = parseTrailers(
      "Cotenant-Lease: F\nCotenant-Token: 3\nCotenant-Issue: X\nCotenant-Lease: L\nCotenant-Token: 4\nCotenant-Issue: Y\nCotenant-Lease: M\nCotenant-Token: 5\nCotenant-Agent: agent:a",
    );
    expect(carried(earlier, none, (id) => id === "X")).toEqual({
      agentId: "agent:b",
      worktreeId: "wt:2",
      issues: [{ issueId: "X", leaseId: "L", token: 4 }],
      leases: [{ leaseId: "F", token: 3 }],
    });
    const again = { ...none, issues: [{ issueId: "X", leaseId: "L", token: 4 }], leases: earlier.leases };
    expect(carried(earlier, again, (id) => id === "X").issues).toHaveLength(1);
    expect(carried(earlier, again, (id) => id === "X").leases).toHaveLength(1);
  });
});
