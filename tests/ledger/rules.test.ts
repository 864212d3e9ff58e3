import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeIssue, type Issue, newIssue } from "../../src/features/issues/model";
import { reconciledLines } from "../../src/features/ledger/commands/sync-output";
import { isFitName } from "../../src/features/ledger/commit";
import { mergeIssueTexts, mergeLines } from "../../src/features/ledger/data/merge";
import { parseDataPath } from "../../src/features/ledger/data/paths";
import { isRefName } from "../../src/features/ledger/open";
import {
  type LedgerPlace,
  ledgerPlace,
  networkWarning,
  repositoryName,
} from "../../src/features/ledger/place";
import { readPushAnswer } from "../../src/features/ledger/push-answer";
import { type ClaimRecord, claimMessage, readClaim, subjectOf } from "../../src/features/ledger/record";
import { backoffMs, freeAtMs, isBeatDue, judge, tombstone } from "../../src/features/ledger/rules";
import { decodeState, encodeState, FRESH } from "../../src/features/ledger/state";
import { withoutPassword } from "../../src/features/ledger/transport";
import { whoHadIt, whoHasIt } from "../../src/features/ledger/words";
import type { AgentId, Ulid, WorktreeId } from "../../src/kernel/ids";
import type { Lease } from "../../src/kernel/lease";
import { nodePlatform } from "../../src/platform/node/node";
import type { Platform } from "../../src/platform/platform";
import { ROOT } from "../house/source";
import { oneIn } from "../support/one-in";
import { scratch } from "../support/scratch";

const it = oneIn(4);

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const ISSUE = "01ARZ3NDEKTSV4RRFFQ69G5FAV" as Ulid;
const OURS = "01ARZ3NDEKTSV4RRFFQ69G5FAA" as Ulid;
const THEIRS = "01ARZ3NDEKTSV4RRFFQ69G5FAB" as Ulid;
const T0 = Date.parse("2026-01-01T00:00:00Z");
const RULES = { skewMs: 30_000, timeoutMs: 7_200_000, ttlMs: 3_600_000 };

const record: ClaimRecord = {
  issueId: ISSUE,
  isHeld: true,
  leaseId: "01ARZ3NDEKTSV4RRFFQ69G5FAC" as Ulid,
  agentId: "agent:ann" as AgentId,
  worktreeId: "wt:12345678" as WorktreeId,
  cloneId: THEIRS,
  host: "vm",
  token: 7,
  acquiredAtMs: T0,
  beatAtMs: T0,
  expiresAtMs: T0 + 3_600_000,
  ended: null,
  issue: { version: 3, state: "in_progress", isDeleted: false },
  reason: "it is urgent",
  stoleFrom: [
    { leaseId: "01ARZ3NDEKTSV4RRFFQ69G5FAD" as Ulid, agentId: "agent:bob" as AgentId, why: "forced" },
  ],
  written: ["5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"],
};

describe("a claim's record", () => {
  it("comes back as it was written, held or ended", () => {
    for (const one of [
      record,
      { ...record, expiresAtMs: null, issue: null },
      tombstone(record, { how: "stale", by: "human:eve" as AgentId, atMs: T0 + 1 }, null),
    ])
      expect(readClaim(ISSUE, claimMessage(one, subjectOf(one)))).toEqual({ record: one });
  });

  it("is never taken for one when it is not: whatever stands there, it is told and not thrown", () => {
    const message = claimMessage(record, "x");
    fc.assert(
      fc.property(fc.nat(message.length - 1), fc.string({ maxLength: 8 }), (at, bit) => {
        const reading = readClaim(ISSUE, message.slice(0, at) + bit + message.slice(at + bit.length + 1));
        if ("record" in reading) expect(reading.record.issueId).toBe(ISSUE);
        else expect(typeof reading.broken).toBe("string");
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ["nothing", ""],
    ["a list", "[]"],
    ["null", "null"],
    ["another issue's", JSON.stringify({ schema_version: 1, issue_id: OURS })],
    [
      "a token that is none",
      claimMessage(record, "x").replace('"fencing_token":7', '"fencing_token":9007199254740991'),
    ],
    ["a negative token", claimMessage(record, "x").replace('"fencing_token":7', '"fencing_token":-1')],
    ["no agent", claimMessage(record, "x").replace('"agent:ann"', '"nobody"')],
    ["a time that is none", claimMessage(record, "x").replace(/"beat_at":"[^"]+"/, '"beat_at":"yesterday"')],
    ["something huge", `${"x".repeat(70_000)}\n{}`],
  ])("%s is broken, and not of a newer program", (_, message) => {
    expect(readClaim(ISSUE, message)).toMatchObject({ isNewer: false });
  });

  it("of a newer program says so", () => {
    expect(readClaim(ISSUE, '{"schema_version":2}')).toMatchObject({ isNewer: true });
  });

  it("makes no object with a prototype of its own choosing", () => {
    const reading = readClaim(
      ISSUE,
      claimMessage(record, "x").replace("{", '{"__proto__":{"isHeld":false},'),
    );
    expect(reading).toEqual({ record });
    expect(({} as { isHeld?: boolean }).isHeld).toBeUndefined();
  });
});

describe("who may take a claim", () => {
  const at = (ms: number, one: ClaimRecord | null = record) => judge(one, OURS, T0 + ms, RULES).kind;

  it("nobody's is free; another's is held until its expiry and the clocks' difference have passed", () => {
    expect(at(0, null)).toBe("free");
    expect(at(0, { ...record, isHeld: false })).toBe("free");
    expect(at(3_600_000)).toBe("held");
    expect(at(3_630_000)).toBe("held");
    expect(at(3_630_001)).toBe("lapsed");
    expect(freeAtMs(record, RULES)).toBe(T0 + 3_630_000);
  });

  it("our own clone's is for our own store to judge, however old", () => {
    expect(at(9e9, { ...record, cloneId: OURS })).toBe("ours");
  });

  it("without expiry only the timeout ends it, and without a timeout nothing does", () => {
    const endless = { ...record, expiresAtMs: null };
    expect(at(7_230_000, endless)).toBe("held");
    expect(at(7_230_001, endless)).toBe("lapsed");
    expect(judge(endless, OURS, T0 + 9e12, { ...RULES, timeoutMs: null }).kind).toBe("held");
    expect(freeAtMs(endless, { ...RULES, timeoutMs: null })).toBeNull();
  });

  it("a sign of life is due every third, before the expiry, and when a clock went back", () => {
    const HOUR = 3_600_000;
    const due = (ms: number) =>
      isBeatDue({ pushedAtMs: T0, expiresAtMs: T0 + HOUR }, T0 + HOUR + Math.max(0, ms), T0 + ms, RULES);
    expect([0, 1_199_999, 1_200_000, 2_500_000, -1].map(due)).toEqual([false, false, true, true, true]);
    const forever = { pushedAtMs: T0, expiresAtMs: null };
    expect(isBeatDue(forever, null, T0 + 2_400_000, RULES)).toBe(true);
    expect(isBeatDue(forever, null, T0 + 9e12, { ...RULES, timeoutMs: null })).toBe(false);
  });

  it("is due at once when the claim now ends at quite another time than others know", () => {
    const HOUR = 3_600_000;
    const ends = (before: number | null, now: number | null) =>
      isBeatDue(
        { pushedAtMs: T0, expiresAtMs: before === null ? null : T0 + before * HOUR },
        now === null ? null : T0 + now * HOUR,
        T0,
        RULES,
      );
    expect([
      ends(1, 1),
      ends(1, 1.2),
      ends(1, 8),
      ends(8, 1),
      ends(1, null),
      ends(null, 1),
      ends(null, null),
    ]).toEqual([false, false, true, true, true, true, false]);
  });

  it("waits 100 ms, doubling up to 5 s, give or take a fifth", () => {
    expect([0, 1, 2, 3, 4, 5, 6, 50].map((n) => backoffMs(n, 0.5))).toEqual([
      100, 200, 400, 800, 1600, 3200, 5000, 5000,
    ]);
    expect([backoffMs(0, 0), backoffMs(0, 1)]).toEqual([80, 120]);
  });
});

describe("what git push said", () => {
  const answer = (stdout: string, stderr = "", status = 1) =>
    readPushAnswer({ status, stdout: new TextEncoder().encode(stdout), stderr });
  const REF = "refs/cotenant/claims/X";
  const told = (line: string) => answer(`To hub\n${line}\nDone\n`).of(REF, "oid").kind;

  it.each([
    ["*\tabc:refs/cotenant/claims/X\t[new reference]", "done"],
    [" \tabc:refs/cotenant/claims/X\t1..2", "done"],
    ["=\tabc:refs/cotenant/claims/X\t[up to date]", "done"],
    ["!\tabc:refs/cotenant/claims/X\t[rejected] (stale info)", "rejected"],
    ["!\tabc:refs/cotenant/claims/X\t[remote rejected] (failed to update ref)", "rejected"],
    ["!\tabc:refs/cotenant/claims/X\t[remote rejected] (pre-receive hook declined)", "rejected"],
    ["!\tabc:refs/cotenant/claims/X\t[remote failure] (remote failed to report status)", "unclear"],
    ["*\tabc:refs/cotenant/claims/Y\t[new reference]", "unclear"],
  ])("%j is %s", (line, kind) => {
    expect(told(line)).toBe(kind);
  });

  it("what failed before anything was sent is told apart from what may have arrived", () => {
    expect(answer("", "fatal: unable to connect to 127.0.0.1: Connection refused").isUnsent).toBe(true);
    expect(answer("", "fatal: Authentication failed for 'https://localhost/'").isUnsent).toBe(true);
    expect(answer("", "fatal: the remote end hung up unexpectedly").isUnsent).toBe(false);
    expect(answer("", "error: RPC failed; curl 52 Empty reply from server").isUnsent).toBe(false);
    expect(answer("", "").isUnsent).toBe(false);
  });
});

describe("names", () => {
  it.each(["a..b", "x.lock", "/x", "a//b", "x.", "@{u}", ".x", "a/.b", "-x", "@", "a b", "refs/a..b"])(
    "%j is none of a ref",
    (name) => {
      expect(isRefName(name)).toBe(false);
    },
  );

  it.each([
    ["git@host:team/repo.git", "repo", false],
    ["https://user:pw@localhost/a/b.git/", "b", false],
    ["/srv/git/C:odd.git", "odd", false],
    ["C:\\repos\\thing.git", "thing", false],
    ["https://localhost/a%20b?.git", "a_20b_", true],
    ["../..", "_", true],
    ["", "repository", false],
    [`https://localhost/${"x".repeat(200)}.git`, "x".repeat(60), true],
  ])("of %j is %j", (url, name, isChanged) => {
    expect(repositoryName(url)).toEqual({ name, isChanged });
  });

  it("of one directory in every spelling that Git takes is one, and of two directories two", async () => {
    const room = scratch("spellings");
    const made = (name: string, ...more: string[]) =>
      execFileSync("git", ["init", "--quiet", ...more, join(room, name)]);
    const placeOf = async (spelling: string) => {
      const question = { platform: nodePlatform(), env: {}, home: "/h", override: null, root: room };
      return (await ledgerPlace({ ...question, url: spelling.replace("ROOM", room) })).directory;
    };
    const places = async (...spellings: string[]) => new Set(await Promise.all(spellings.map(placeOf)));
    const bare = ["ROOM/a", "ROOM/a.git", "ROOM/a.git/", "file://ROOM/a", "./a", "a.git"];
    const plain = ["ROOM/w", "ROOM/w/.git", "w/.git/"];
    for (const there of [false, true]) {
      if (there) made("a.git", "--bare");
      if (there) made("w");
      expect((await places(...bare)).size, `${there}`).toBe(1);
      expect((await places(...plain)).size, `${there}`).toBe(1);
    }
    const [away] = await places("ROOM/a");
    expect(await placeOf("ROOM/a.git")).toBe(away);
    // A clone beside its remote.
    made("a");
    expect((await places("ROOM/a", "ROOM/a.git")).size).toBe(2);
    expect((await places("ROOM/a", "ROOM/a/.git")).size).toBe(1);
    expect((await places("https://localhost/a", "https://localhost/a.git")).size).toBe(2);
  });

  it("a place on a network file system is warned of, with the way out", async () => {
    const on = (name: string | null) =>
      networkWarning(
        { files: { networkFileSystem: async () => name } } as unknown as Platform,
        { directory: "/far/away" } as LedgerPlace,
      );
    expect(await on(null)).toBeNull();
    expect(await on("nfs")).toMatch(/nfs.*XDG_DATA_HOME.*global_path_override/);
  });

  it("no password stays in an address that is shown", () => {
    expect(withoutPassword("https://ann:sesame@localhost/x")).not.toMatch(/ann|sesame/);
    expect(withoutPassword("git@host:x.git")).toBe("git@host:x.git");
  });

  it.each([
    [`.cotenant/issues/${ISSUE}/issue.json`, true],
    [`.cotenant/issues/${ISSUE.toLowerCase()}/issue.json`, false],
    [`.cotenant/issues/${ISSUE}/other.json`, false],
    [`.cotenant/issues/${ISSUE}/x/issue.json`, false],
    [`.cotenant/gates/results/${ISSUE}.jsonl`, true],
    [".cotenant/gates/registry.json", false],
    [".cotenant/events/local.jsonl", true],
    [".cotenant/config.toml", false],
    ["../.cotenant/events/local.jsonl", false],
  ])("%s is data: %s", (path, isData) => {
    expect(parseDataPath(path) !== null).toBe(isData);
  });

  it.each([".cotenant/a", ".cotenant/issues/x/y.jsonl"])("%s may stand in a tree", (path) => {
    expect(isFitName(path)).toBe(true);
  });

  it.each([
    ".cotenant/../x",
    ".cotenant/.git/config",
    ".cotenant/a b",
    ".cotenant/a\nM 100644 inline x",
    "x",
    ".cotenant/x.lock",
    ".cotenant//x",
    ".cotenant",
  ])("%j may not", (path) => {
    expect(isFitName(path)).toBe(false);
  });
});

it.each([
  ["somebody has it", record, "cotenant claim acquire"],
  ["somebody had it", { ...record, isHeld: false }, "claim it again: cotenant claim acquire"],
  ["it is gone", null, "cotenant claim next"],
])("a conflict is told with what to do next: %s", (why, there, next) => {
  const conflict = { issueId: ISSUE, agentId: "agent:a", record: there, why };
  const lines = reconciledLines({ confirmed: [], conflicts: [conflict], withdrawn: [], pending: [] });
  expect(lines).toEqual([
    expect.stringContaining(why),
    expect.stringMatching(new RegExp(`^  next: .*${next}`)),
  ]);
});

describe("the state file", () => {
  it("comes back as it was written", () => {
    const state = {
      ...FRESH,
      lastPullAt: "2026-01-01T00:00:00.000Z",
      ledgerHead: "a".repeat(40),
      isValid: false,
      offlineClaims: [
        {
          issueId: ISSUE,
          leaseId: OURS,
          agentId: "agent:a",
          token: 3,
          claimedAt: "2026-01-01T00:00:00.000Z",
          expiresAt: null,
          clone: "/c",
        },
      ],
    };
    expect(decodeState(encodeState(state), "f")).toEqual({ state, warning: null });
  });

  it("whatever stands in it, it is read, started over, or of a newer program", () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        try {
          expect(decodeState(text, "f").state.offlineClaims.length).toBeLessThanOrEqual(1_000);
        } catch (error) {
          expect(error).toMatchObject({ code: "E_SCHEMA_NEWER" });
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("merging data", () => {
  const issueArb = fc.record({
    title: fc.constantFrom("a", "b", "c"),
    priority: fc.constantFrom("low", "high", "critical"),
    state: fc.constantFrom("ready", "in_progress", "done"),
    assignee: fc.constantFrom(null, "agent:x", "agent:y"),
    description: fc.constantFrom("", "one\n\ntwo", "one\n\nthree"),
    version: fc.integer({ min: 2, max: 5 }),
    updated: fc.integer({ min: 1, max: 9 }),
  });
  type Part = typeof issueArb extends fc.Arbitrary<infer T> ? T : never;
  const text = ({ version, updated, ...fields }: Part) =>
    encodeIssue(
      newIssue({
        ...(fields as Partial<Issue>),
        id: ISSUE,
        title: fields.title,
        created_at: "2026-01-01T00:00:00.000Z",
        created_by: "agent:x",
        updated_at: `2026-01-0${updated}T00:00:00.000Z`,
        updated_by: "agent:x",
        stamp: { version, origin: "", lease_id: null, fencing_token: null, sequence: null },
      }),
    );
  const base = text({
    title: "a",
    priority: "low",
    state: "ready",
    assignee: null,
    description: "",
    version: 1,
    updated: 1,
  });

  it("is the same whoever merges, loses nothing, and comes to rest", () => {
    fc.assert(
      fc.property(issueArb, issueArb, (mine, yours) => {
        const [here, there] = [text(mine), text(yours)];
        const one = mergeIssueTexts(base, here, there, sha256);
        const other = mergeIssueTexts(base, there, here, sha256);
        if ("why" in one || "why" in other) throw new Error("neither is broken");
        expect(other.text).toBe(one.text);
        // Every value that a side changed stands, or is in the comment.
        const merged = JSON.parse(one.text) as Record<string, unknown>;
        for (const side of [mine, yours])
          for (const field of ["title", "priority", "state", "assignee"] as const) {
            const wanted = side[field];
            const isChange = wanted !== (JSON.parse(base) as Record<string, unknown>)[field];
            if (isChange && merged[field] !== wanted) expect(one.comment).toContain(String(wanted));
          }
        // Who merges again, having it, changes nothing.
        expect(mergeIssueTexts(one.text, one.text, one.text, sha256)).toMatchObject({ text: one.text });
        expect(mergeIssueTexts(base, here, one.text, sha256)).toMatchObject({ text: one.text });
        expect(mergeIssueTexts(base, one.text, there, sha256)).toMatchObject({ text: one.text });
      }),
      { numRuns: 1_500 },
    );
  });

  it("what somebody goes on working on is not deleted, and the other is told so", () => {
    const edited = text({
      title: "b",
      priority: "low",
      state: "ready",
      assignee: null,
      description: "",
      version: 2,
      updated: 2,
    });
    const deleted = encodeIssue({
      ...(JSON.parse(edited) as Issue),
      title: "a",
      extra: {},
      deleted_at: "2026-01-09T00:00:00.000Z",
      updated_at: "2026-01-09T00:00:00.000Z",
      stamp: { version: 3, origin: "", lease_id: null, fencing_token: null, sequence: null },
    });
    for (const [one, other] of [
      [edited, deleted],
      [deleted, edited],
    ] as const) {
      const merged = mergeIssueTexts(base, one, other, sha256);
      if ("why" in merged) throw new Error(merged.why);
      expect(JSON.parse(merged.text)).toMatchObject({ title: "b", deleted_at: null });
      expect(merged.comment).toContain("deleted_at");
    }
    // Where nobody worked on it, it is deleted.
    const gone = mergeIssueTexts(base, base, deleted, sha256);
    expect(gone).toMatchObject({ text: deleted, contradictions: [] });
  });

  it("an older copy is no change", () => {
    const newer = text({
      title: "b",
      priority: "low",
      state: "ready",
      assignee: null,
      description: "",
      version: 4,
      updated: 2,
    });
    const newest = text({
      title: "c",
      priority: "low",
      state: "ready",
      assignee: null,
      description: "",
      version: 5,
      updated: 3,
    });
    expect(mergeIssueTexts(newer, base, newest, sha256)).toMatchObject({ text: newest });
    expect(mergeIssueTexts(newer, newest, base, sha256)).toMatchObject({ text: newest });
  });

  it("lines of both, each once, in one order for all", () => {
    const line = fc.constantFrom("a", "b", "c", "d", "e");
    fc.assert(
      fc.property(fc.uniqueArray(line), fc.uniqueArray(line), (ours, theirs) => {
        const file = (lines: readonly string[]) => lines.map((one) => `${one}\n`).join("");
        const merged = mergeLines(file(ours), file(theirs));
        const all = merged.text.split("\n").filter(Boolean);
        expect(new Set(all)).toEqual(new Set([...ours, ...theirs]));
        expect(all).toHaveLength(new Set(all).size);
        expect(all.slice(0, theirs.length)).toEqual(theirs);
        expect(new Set([...ours, ...merged.missingHere.map((one) => one.trim())])).toEqual(new Set(all));
      }),
    );
  });
});

describe("why a claim does not go on", () => {
  const ended = (how: "released" | "stale" | "evicted") => ({ how, by: "agent:eve" as AgentId, atMs: T0 });
  const over = (how: "released" | "stale" | "evicted") => ({ ...record, isHeld: false, ended: ended(how) });
  const since = (ms: number) => ({ fencingToken: 3, acquiredAt: { wallMs: T0 + ms } }) as unknown as Lease;

  it.each([
    ["taken over by force", record, "agent:ann on vm took it over: it is urgent"],
    ["held by another", { ...record, stoleFrom: [] }, "agent:ann on vm has it now"],
    ["ended by somebody", over("evicted"), "it was ended by agent:eve: it is urgent"],
    [
      "released as stale",
      over("stale"),
      "it was released as stale by agent:eve, at 2026-01-01T00:00:00.000Z",
    ],
    ["given back", over("released"), "it was given back by agent:eve, at 2026-01-01T00:00:00.000Z"],
  ] as const)("one that was %s", (_, one, words) => {
    expect(whoHasIt(one)).toBe(words);
  });

  it("by somebody who had it before, and not meanwhile", () => {
    expect(whoHadIt(over("released"), since(-1))).toBe("agent:ann on vm had it meanwhile");
    expect(whoHadIt(over("released"), since(1))).toBe(
      "agent:ann on vm had it until 2026-01-01T00:00:00.000Z, which was not known here: its token 7 is not below 3",
    );
  });
});

describe("docs/FORMATS.md", () => {
  const page = readFileSync(join(ROOT, "docs/FORMATS.md"), "utf8");
  const example = (name: string) =>
    JSON.parse(new RegExp(`^\`\`\`json ${name}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(page)![1]!);

  it("shows a record and a state as they are read and written", () => {
    const shown = example("claim-record") as { issue_id: Ulid };
    const reading = readClaim(shown.issue_id, JSON.stringify(shown));
    if (!("record" in reading)) throw new Error(reading.broken);
    expect(JSON.parse(claimMessage(reading.record, "x").split("\n").at(-2)!)).toEqual(shown);
    const state = example("ledger-state");
    expect(JSON.parse(encodeState(decodeState(JSON.stringify(state), "f").state))).toEqual(state);
  });
});
