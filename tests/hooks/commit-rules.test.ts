import { describe, expect, it } from "vitest";
import {
  type CommitQuestion,
  type Committer,
  judgeCommit,
  keepsLines,
  structuralChanges,
} from "../../src/features/hooks/commit-rules";
import type { Lease } from "../../src/kernel/lease";

const HERE = "wt:11111111";
const THERE = "wt:22222222";
const lease = (of: Partial<Record<keyof Lease, unknown>>): Lease =>
  ({ leaseId: "L", key: "file:a.txt", reach: "repository", worktreeId: HERE, ...of }) as unknown as Lease;
const committer = (agentId: string, sessionId: string, worktreeId: string): Committer =>
  ({ agentId, sessionId, worktreeId }) as unknown as Committer;
const judged = (held: Lease, who: Committer | null) =>
  judgeCommit({
    changes: [{ path: "a.txt", key: "file:a.txt" }],
    issues: [],
    committer: who,
    worktreeId: who?.worktreeId ?? HERE,
    leases: [held],
  } as unknown as CommitQuestion).map(({ code }) => code);

describe("a held file", () => {
  const held = lease({ agentId: "agent:child", sessionId: "s1" });

  it("is committed by its holder, and by the session that its holder is a subagent of, in the same worktree only", () => {
    expect(judged(held, committer("agent:child", "s9", HERE))).toEqual([]);
    expect(judged(held, committer("agent:parent", "s1", HERE))).toEqual([]);
    expect(judged(held, committer("agent:parent", "s1", THERE))).toEqual(["E_LOCK_CONFLICT"]);
    expect(judged(held, committer("agent:parent", "s2", HERE))).toEqual(["E_LOCK_CONFLICT"]);
    expect(judged(held, null)).toEqual(["E_LOCK_CONFLICT"]);
  });

  it("is not everybody's because nobody gave their session a name", () => {
    const unnamed = lease({ agentId: "agent:child", sessionId: "default" });
    expect(judged(unnamed, committer("agent:parent", "default", HERE))).toEqual(["E_LOCK_CONFLICT"]);
  });
});

describe("comments", () => {
  const path = ".cotenant/issues/01M7F87SKQ7X3KZ979XRC4S87G/comments.jsonl";
  const texts = new Map([
    ["none", ""],
    ["one", "1\n"],
    ["two", "2\n1\n"],
    ["other", "1, said otherwise\n2\n"],
  ]);
  const read = async (oids: readonly string[]) => new Map(oids.map((oid) => [oid, texts.get(oid)!]));
  const isStructural = async (before: string | null, oid: string | null, mode = "100644") => {
    const status = before === null ? "added" : oid === null ? "deleted" : "changed";
    return (
      (await structuralChanges([{ path, status, before, oid, mode: oid === null ? null : mode }], read))
        .length === 1
    );
  };

  it("are added by anybody; to delete or to rewrite one is to change the issue", async () => {
    expect(await isStructural(null, "one")).toBe(false);
    expect(await isStructural("one", "two")).toBe(false);
    expect(await isStructural("none", null)).toBe(false);
    expect(await isStructural("two", "one")).toBe(true);
    expect(await isStructural("one", "other")).toBe(true);
    expect(await isStructural("one", null)).toBe(true);
    for (const mode of ["100755", "120000", "160000"])
      for (const before of [null, "one"])
        expect(await isStructural(before, "two", mode), `${before}, ${mode}`).toBe(true);
  });

  it("keep their lines in whatever order", () => {
    expect(keepsLines("a\nb\n", "b\nc\na")).toBe(true);
    expect(keepsLines("a\nb\n", "b\nc\n")).toBe(false);
  });
});
