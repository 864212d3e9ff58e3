import { describe, expect, it } from "vitest";
import type { Entry } from "../../support/harness/journal";
import { check, tenuresIn } from "./check";

const grant = (id: string, session: string, ended: string[] = []) =>
  `${JSON.stringify({
    event_type: "claim.acquired",
    payload: {
      leases: [{ lease_id: id, key: "file:a", session_id: session }],
      ended: ended.map((one) => ({ lease_id: one, key: "file:a", cause: "dead" })),
    },
  })}\n`;
const release = (id: string) =>
  `${JSON.stringify({ event_type: "claim.released", payload: { leases: [], ended: [{ lease_id: id, key: "file:a" }] } })}\n`;
const write = (agent: string, log: string): Entry[] =>
  (["begin", "end"] as const).map((phase) => ({
    agent: `claude:${agent}`,
    file: "a",
    phase,
    log: log.length,
  }));

describe("the check of who wrote under which lease", () => {
  const first = grant("1", "ann");
  const freed = first + release("1");
  const second = freed + grant("2", "bob");
  const stolen = first + grant("2", "bob", ["1"]);

  it("is content with writes under a lease, and with one after the other", () => {
    expect(check([...write("ann", first), ...write("bob", second)], tenuresIn(second))).toEqual([]);
    expect(check([...write("ann", first), ...write("bob", stolen)], tenuresIn(stolen))).toEqual([]);
    // Killed in the middle of it.
    expect(check([write("ann", first)[0]!, ...write("bob", stolen)], tenuresIn(stolen))).toEqual([]);
    expect(tenuresIn(stolen).endings.get("dead")).toBe(1);
  });

  it.each([
    ["by somebody who holds nothing", [...write("bob", first)], first, /wrote a, which ann held/],
    ["after the lease was given back", [...write("ann", freed)], freed, /which nobody held/],
    [
      "without a change of the lease",
      [...write("ann", first), ...write("bob", first)],
      second,
      /no lease changed hands/,
    ],
    [
      "in the middle of another's",
      [write("ann", first)[0]!, ...write("bob", first)],
      first,
      /while claude:ann was writing it/,
    ],
    [
      "that lost its lease meanwhile",
      [write("ann", first)[0]!, write("ann", stolen)[1]!],
      stolen,
      /lost a to bob while it was writing/,
    ],
  ])("notices a write %s", (_, entries, log, what) => {
    expect(check(entries, tenuresIn(log)).join("\n")).toMatch(what);
  });
});
