import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  agentType,
  foldCrockford,
  makeUlid,
  parseAgentId,
  parseSessionId,
  parseUlid,
  parseWorktreeId,
  printable,
  ulidTimeMs,
} from "../../src/kernel/ids";
import { isRefusal } from "../../src/kernel/refusal";

const accepted = (value: unknown) => !isRefusal(value);

describe("ULIDs", () => {
  test("carry their time, parse as themselves and sort by time", () => {
    const time = fc.integer({ min: 0, max: 2 ** 48 - 1 });
    const randomness = fc.uint8Array({ minLength: 10, maxLength: 10 });
    fc.assert(
      fc.property(time, time, randomness, (a, b, bytes) => {
        const first = makeUlid(a, bytes);
        expect(parseUlid(first)).toBe(first);
        expect(parseUlid(first.toLowerCase())).toBe(first);
        expect(ulidTimeMs(first)).toBe(a);
        if (a !== b) expect(first < makeUlid(b, bytes)).toBe(a < b);
      }),
      { numRuns: 1000 },
    );
  });

  test("use every bit of the randomness", () => {
    expect(makeUlid(0, new Uint8Array(10).fill(255))).toBe("0000000000ZZZZZZZZZZZZZZZZ");
    expect(makeUlid(1, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 1))).toBe("00000000010000000000000001");
    expect(() => makeUlid(0, new Uint8Array(9))).toThrow();
  });

  test("read what people mistake", () => {
    expect(foldCrockford("oIl0")).toBe("0110");
  });
});

describe("agent ids", () => {
  test.each(["agent:a", "human:eve@example.com", "ci:build_1.2+x", "admin:root", `agent:${"a".repeat(100)}`])(
    "%s",
    (text) => {
      const id = parseAgentId(text);
      if (isRefusal(id)) throw new Error(id.message);
      expect(text.startsWith(`${agentType(id)}:`)).toBe(true);
    },
  );

  test.each([
    "",
    "a",
    "agent:",
    "robot:a",
    "Agent:a",
    "agent:-a",
    "agent:a b",
    "agent:a/b",
    "agent:a:b",
    "agent:é",
    "agent:a\n",
    `agent:${"a".repeat(101)}`,
  ])("%j is none", (text) => expect(accepted(parseAgentId(text))).toBe(false));
});

describe("session and worktree ids", () => {
  test.each(["default", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "a.b_c:d@e+f-g", "a".repeat(128)])(
    "session %s",
    (text) => expect(accepted(parseSessionId(text))).toBe(true),
  );
  test.each(["", "-a", "a b", "../x", "a/b", "a\u0000", "a".repeat(129)])("no session: %j", (text) =>
    expect(accepted(parseSessionId(text))).toBe(false),
  );
  test.each(["wt:1a2b3c4d"])("worktree %s", (text) => expect(accepted(parseWorktreeId(text))).toBe(true));
  test.each(["", "wt:", "wt:1A2B3C4D", "1a2b3c4d", "wt:1a2b3c4d\n"])("no worktree: %j", (text) =>
    expect(accepted(parseWorktreeId(text))).toBe(false),
  );
});

test("printable text has no controls, no direction marks, and an end", () => {
  expect(printable("a\u001b[1mb\u202ec\ud800")).toBe("a\ufffd[1mb\ufffdc\ufffd");
  expect(printable("x".repeat(500))).toBe(`${"x".repeat(120)}…`);
  expect(printable("abc", 2)).toBe("ab…");
});
