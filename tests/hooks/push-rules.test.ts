import { describe, expect, it } from "vitest";
import { FileJudge } from "../../src/features/hooks/push-files";
import {
  type HeldClaim,
  issueObjections,
  type PushedCommit,
  type PushedEdit,
  takenOverBy,
} from "../../src/features/hooks/push-rules";
import { parseTrailers } from "../../src/features/hooks/trailers";
import type { LoggedLease, LogWitness } from "../../src/features/hooks/witness";
import { trusted } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import type { Lease } from "../../src/kernel/lease";

const NOW = 1_800_000_000_000;
const MINUTE = 60_000;
const leaseOf = (key: string, change: Partial<LoggedLease> = {}): LoggedLease => ({
  leaseId: trusted("L"),
  key: trusted(key),
  token: 17,
  agentId: "agent:a",
  worktreeId: trusted("wt:11111111"),
  reach: "repository",
  isBound: false,
  grantedAtMs: NOW - 10 * MINUTE,
  endsAtMs: NOW + 10 * MINUTE,
  ...change,
});
const witnessOf = (...leases: LoggedLease[]): LogWitness => ({
  lease: (id) => leases.find(({ leaseId }) => leaseId === id) ?? null,
  written: (_, digest) => (digest === "written" ? "issue" : digest === "decided" ? "gate" : null),
  paths: leases.filter(({ key }) => /^(?:file|dir):/.test(key)),
});
const commitOf = (message: string, change: Partial<PushedCommit> = {}): PushedCommit => ({
  oid: "c".repeat(40),
  tree: "t",
  parents: ["p"],
  authoredAtMs: NOW,
  committedAtMs: NOW,
  message,
  trailers: parseTrailers(message),
  changes: [],
  sides: [],
  edits: [],
  ...change,
});

describe("a pushed change of an issue", () => {
  const edit: PushedEdit = {
    issueId: "X",
    paths: ["x"],
    issue: null,
    isCreation: false,
    digest: "d",
    isMerged: false,
  };
  const judged = (
    {
      leaseId = "L",
      token = 17 as number | string,
      agent = "agent:a",
      ...rest
    }: Record<string, unknown> = {},
    change: Partial<PushedEdit> = {},
  ) => {
    const {
      held,
      mode = "at_commit",
      lease = leaseOf("issue:X"),
      at,
      pusher = null,
      above = [],
    } = rest as Record<string, never>;
    const message =
      leaseId === null
        ? ""
        : `Cotenant-Issue: X\nCotenant-Lease: ${leaseId}\nCotenant-Token: ${token}\nCotenant-Agent: ${agent}`;
    const commit = commitOf(message, {
      edits: [{ ...edit, ...change }],
      ...(at === undefined ? {} : { authoredAtMs: at, committedAtMs: at }),
    });
    const known = {
      witness: witnessOf(lease),
      held: new Map<string, HeldClaim>(held === undefined ? [] : [["X", held]]),
    };
    const takenOver = takenOverBy(known, [commit, ...(above as PushedCommit[])]);
    return issueObjections({ ...known, mode, pusher, takenOver, hasHooks: true }, commit).map(
      ({ code }) => code,
    );
  };

  it("rests on its claim, with the very token of it", () => {
    expect(judged()).toEqual([]);
    expect(judged({ leaseId: null })).toEqual(["E_LEASE_REQUIRED"]);
    expect(judged({ leaseId: "M" })).toEqual(["E_LEASE_REQUIRED"]);
    const both = "M\nCotenant-Token: 3\nCotenant-Issue: X\nCotenant-Lease: L";
    expect(judged({ leaseId: both }), "beside one of another repository").toEqual([]);
    expect(judged({ leaseId: both, token: 18 })).toEqual(["E_FENCING_MISMATCH"]);
    for (const token of [16, 18, "none", "x"]) expect(judged({ token })).toEqual(["E_FENCING_MISMATCH"]);
    expect(judged({ lease: leaseOf("issue:Y") })).toEqual(["E_LEASE_REQUIRED"]);
    expect(judged({ at: NOW + 20 * MINUTE })).toEqual(["E_LOCK_EXPIRED"]);
    expect(judged({ at: NOW - 20 * MINUTE })).toEqual(["E_LOCK_EXPIRED"]);
  });

  it("needs none where cotenant wrote it, it is new, or two sides of a merge come to it", () => {
    expect(judged({ leaseId: null }, { digest: "written" })).toEqual([]);
    expect(judged({ leaseId: null }, { isCreation: true })).toEqual([]);
    expect(judged({ leaseId: null }, { isMerged: true })).toEqual([]);
  });

  it("is refused while somebody else has the claim, also where the commit says nobody's name", () => {
    const held = { agentId: "agent:b", leaseId: "N" };
    expect(judged({ held })).toEqual(["E_LOCK_CONFLICT"]);
    expect(judged({ held, leaseId: null }, { digest: "written" })).toEqual(["E_LOCK_CONFLICT"]);
    expect(judged({ held, leaseId: null }, { digest: "decided" }), "a word on a gate").toEqual([]);
    expect(judged({ held: { agentId: "agent:a", leaseId: "N" }, agent: "agent:c" })).toEqual([]);
    expect(judged({ held: { agentId: "agent:b", leaseId: "L" } })).toEqual([]);
  });

  it("is pushed by whoever has taken over the claim, or below a commit of theirs", () => {
    const held = { agentId: "agent:b", leaseId: "N" };
    const on = (message: string, parent: string) =>
      commitOf(message, { oid: parent.replaceAll("c", "d"), parents: [parent] });
    const child = (message: string) => [on(message, "c".repeat(40))];
    expect(judged({ held, pusher: "agent:b" })).toEqual([]);
    expect(judged({ held, pusher: "agent:c" })).toEqual(["E_LOCK_CONFLICT"]);
    expect(judged({ held, above: child("Cotenant-Agent: agent:b") })).toEqual([]);
    expect(
      judged({ held, above: child("Cotenant-Issue: X\nCotenant-Lease: N\nCotenant-Token: 18") }),
    ).toEqual([]);
    expect(judged({ held, above: child("Cotenant-Agent: agent:c") })).toEqual(["E_LOCK_CONFLICT"]);
    expect(judged({ held, above: [on("Cotenant-Agent: agent:b", "e".repeat(40))] }), "beside it").toEqual([
      "E_LOCK_CONFLICT",
    ]);
  });

  it("with still_held wants a claim of the same agent, be it a new one", () => {
    expect(judged({ mode: "still_held" })).toEqual(["E_LEASE_REQUIRED"]);
    expect(judged({ mode: "still_held", held: { agentId: "agent:a", leaseId: "N" } })).toEqual([]);
  });
});

describe("a pushed change of a file", () => {
  const changes = [
    { path: "lib/x", status: "changed", oid: "1", before: "0", mode: "100644", befores: ["0"] },
  ] as const;
  const judged = (
    message: string,
    {
      known = [] as LoggedLease[],
      held = [] as LoggedLease[],
      mode = "at_commit",
      pusher = null as string | null,
    } = {},
    change: Partial<PushedCommit> = {},
  ) =>
    new FileJudge({
      witness: witnessOf(...known),
      held: held as unknown as Lease[],
      keyOf: (path) => `file:${path}` as LeaseKey,
      violations: new Map(),
      mode: mode as "at_commit",
      pusher,
      hasHooks: true,
    })
      .objections(commitOf(message, { changes, ...change }))
      .map(({ code }) => code);
  const theirs = leaseOf("dir:lib", { agentId: "agent:b" });
  const named = (token: number) => `Cotenant-Lease: L\nCotenant-Token: ${token}`;

  it("is refused while somebody else holds it, or where somebody else held it then", () => {
    expect(judged("")).toEqual([]);
    expect(judged("", { held: [theirs] })).toEqual(["E_LOCK_CONFLICT"]);
    expect(judged("", { known: [theirs] })).toEqual(["E_LOCK_CONFLICT"]);
    expect(judged("", { known: [leaseOf("file:lib/y")], held: [leaseOf("file:lib/y")] })).toEqual([]);
    expect(judged("Cotenant-Agent: agent:a", { known: [theirs] })).toEqual(["E_LOCK_CONFLICT"]);
    expect(judged("", { known: [theirs], pusher: "agent:a" })).toEqual(["E_LOCK_CONFLICT"]);
  });

  it("is its holder's, by name, by lease, or by who pushes what names nobody", () => {
    expect(judged("Cotenant-Agent: agent:b", { known: [theirs], held: [theirs] })).toEqual([]);
    expect(judged(named(17), { known: [theirs], held: [theirs] })).toEqual([]);
    expect(judged("", { known: [theirs], held: [theirs], pusher: "agent:b" })).toEqual([]);
  });

  it("is nobody's before the lease and after it, at either of the commit's times", () => {
    const later = NOW + 11 * MINUTE;
    expect(judged("", { known: [theirs] }, { committedAtMs: later })).toEqual([]);
    expect(judged("", { known: [theirs] }, { authoredAtMs: NOW - 11 * MINUTE })).toEqual([]);
    // Of a process that died nobody knows when.
    expect(judged("", { known: [{ ...theirs, isBound: true }] })).toEqual([]);
  });

  it("names leases with their very tokens, and those of other repositories say nothing", () => {
    const mine = leaseOf("file:lib/x");
    for (const token of [16, 18])
      expect(judged(named(token), { known: [mine] })).toEqual(["E_FENCING_MISMATCH"]);
    expect(judged(named(1), { known: [] })).toEqual([]);
  });

  it("with still_held wants what it was committed under to be held, or taken again", () => {
    const mine = leaseOf("file:lib/x");
    const again = leaseOf("dir:lib", { leaseId: trusted("N"), token: 20 });
    const message = `${named(17)}\nCotenant-Agent: agent:a`;
    expect(judged(message, { known: [mine], mode: "still_held" })).toEqual(["E_LEASE_REQUIRED"]);
    expect(judged(message, { known: [mine], held: [again], mode: "still_held" })).toEqual([]);
    expect(judged("", { known: [mine], pusher: "agent:a", mode: "still_held" })).toEqual([]);
  });
});
