import { describe, expect, it } from "vitest";
import { decodeIssue, encodeIssue, newIssue } from "../../src/features/issues/model";
import { stampFromFact } from "../../src/features/issues/stamps";
import { type ClaimRecord, claimMessage, readClaim } from "../../src/features/ledger/record";
import { decodeState } from "../../src/features/ledger/state";
import { decodeTokens } from "../../src/features/ledger/tokens";
import {
  highestWithinReach,
  isCount,
  isWithinReach,
  LARGEST_COUNT,
  LATEST_MS,
  TOKEN_REACH,
  timeMsOf,
} from "../../src/kernel/bounds";
import type { AgentId, Ulid, WorktreeId } from "../../src/kernel/ids";
import { checkToken } from "../../src/kernel/policy";
import { count, timeMs } from "../../src/store/wire";

const ISSUE = "01ARZ3NDEKTSV4RRFFQ69G5FAV" as Ulid;
const LEASE = "01ARZ3NDEKTSV4RRFFQ69G5FAC" as Ulid;

/** As JSON has them: also numbers that are none to us. */
const GOOD_NUMBERS = ["1", String(LARGEST_COUNT - 1), String(LARGEST_COUNT)];
const BAD_NUMBERS = [
  "-1",
  "-9007199254740991",
  String(LARGEST_COUNT + 1),
  String(2 ** 51),
  "9007199254740991",
  "9007199254740993",
  "1e400",
  "-1e400",
  "1.5",
];
const GOOD_TIMES = ["1970-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"];
const BAD_TIMES = [
  "1969-12-31T23:59:59.999Z",
  "+010000-01-01T00:00:00.000Z",
  "+275760-09-13T00:00:00.000Z",
  "+275761-01-01T00:00:00.000Z",
  "-000001-01-01T00:00:00.000Z",
  "NaN",
  "Infinity",
  "",
];

const record: ClaimRecord = {
  issueId: ISSUE,
  isHeld: false,
  leaseId: LEASE,
  agentId: "agent:ann" as AgentId,
  worktreeId: "wt:12345678" as WorktreeId,
  cloneId: LEASE,
  host: "vm",
  token: 7,
  acquiredAtMs: 1_000,
  beatAtMs: 2_000,
  expiresAtMs: 3_000,
  ended: { how: "released", by: "agent:ann" as AgentId, atMs: 4_000 },
  issue: { version: 5, state: "ready", isDeleted: false },
  reason: null,
  stoleFrom: [],
  written: [],
};

const claim = (from: string | RegExp, to: string) => {
  const message = claimMessage(record, "x");
  expect(message).toMatch(from);
  return "record" in readClaim(ISSUE, message.replace(from, to));
};

const issue = (field: string, number: string) => {
  const stamp = { version: 3, origin: "", lease_id: null, fencing_token: 3, sequence: 3 };
  const text = encodeIssue(newIssue({ id: ISSUE, title: "x", created_at: "", created_by: "", stamp }));
  return "issue" in decodeIssue(text.replace(`"${field}": 3`, `"${field}": ${number}`));
};

const accepts = (act: () => unknown) => {
  try {
    act();
    return true;
  } catch {
    return false;
  }
};

/** Every place where a number comes in from another machine or from a committed file, and the log itself. */
const NUMBERS: Readonly<Record<string, (json: string) => boolean>> = {
  "the log": (json) => accepts(() => count(JSON.parse(`{"n":${json}}`), "n")),
  "a claim's token": (json) => claim('"fencing_token":7', `"fencing_token":${json}`),
  "a claim's version of the issue": (json) => claim('"version":5', `"version":${json}`),
  "a stamp's version": (json) => issue("version", json),
  "a stamp's token": (json) => issue("fencing_token", json),
  "a stamp's sequence": (json) => issue("sequence", json),
  "a version in the log": (json) =>
    stampFromFact({ version: JSON.parse(json), digest: "x", state: "ready" }) !== null,
  "the branch's highest token": (json) =>
    decodeTokens(new TextEncoder().encode(`{"highest_token":${json}}`)) !== null,
};

const TIMES: Readonly<Record<string, (text: string) => boolean>> = {
  "the log": (text) => accepts(() => timeMs({ at: text }, "at")),
  "a claim's grant": (text) => claim(/"acquired_at":"[^"]+"/, `"acquired_at":"${text}"`),
  "a claim's beat": (text) => claim(/"beat_at":"[^"]+"/, `"beat_at":"${text}"`),
  "a claim's expiry": (text) => claim(/"expires_at":"[^"]+"/, `"expires_at":"${text}"`),
  "a claim's end": (text) => claim(/"at":"[^"]+"/, `"at":"${text}"`),
  "the state file": (text) =>
    decodeState(JSON.stringify({ schema_version: 1, last_pull_at: text }), "state.json").state.lastPullAt !==
    null,
};

describe("what comes in is within bounds at every door, or stays out", () => {
  it.each(Object.entries(NUMBERS))("numbers: %s", (_, isIn) => {
    expect(GOOD_NUMBERS.filter((json) => !isIn(json))).toEqual([]);
    expect(BAD_NUMBERS.filter(isIn)).toEqual([]);
  });

  it.each(Object.entries(TIMES))("times: %s", (_, isIn) => {
    expect(GOOD_TIMES.filter((text) => !isIn(text))).toEqual([]);
    expect(BAD_TIMES.filter(isIn)).toEqual([]);
  });

  it("what is accepted has a text that RFC 3339 knows", () => {
    expect(new Date(LATEST_MS).toISOString()).toBe("9999-12-31T23:59:59.999Z");
    expect(timeMsOf(new Date(LATEST_MS).toISOString())).toBe(LATEST_MS);
  });
});

describe("a token from elsewhere", () => {
  it("is believed up to 2^32 above the highest known", () => {
    for (const known of [0, 41]) {
      expect(isWithinReach(known + TOKEN_REACH, known)).toBe(true);
      expect(isWithinReach(known + TOKEN_REACH + 1, known)).toBe(false);
      expect(checkToken(known + 1, known + TOKEN_REACH)).toBeNull();
      expect(checkToken(known + 1, known + TOKEN_REACH + 1)).toMatchObject({ code: "E_LIMIT" });
    }
    for (const token of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, LARGEST_COUNT + 1])
      expect([isWithinReach(token, LARGEST_COUNT), isCount(token)]).toEqual([false, false]);
  });

  it("counts for the highest only if others lead up to it", () => {
    expect(highestWithinReach([2 ** 49, 5, TOKEN_REACH], 3)).toBe(TOKEN_REACH);
    expect(highestWithinReach([2 * TOKEN_REACH, TOKEN_REACH], 3)).toBe(2 * TOKEN_REACH);
    expect(highestWithinReach([2 ** 51, -4], 3)).toBe(3);
  });

  it("and no grant is above what can be read again, nor the number after it", () => {
    const next = LARGEST_COUNT - 2;
    expect(checkToken(next, 0, 2)).toBeNull();
    expect(checkToken(next, 0, 3)).toMatchObject({ code: "E_LIMIT" });
    expect(checkToken(next, LARGEST_COUNT)).toMatchObject({ code: "E_LIMIT" });
    expect(isCount(next - 1 + 2 + 1)).toBe(true);
  });
});
