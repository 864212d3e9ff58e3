import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { AgentId, SessionId } from "../../src/kernel/ids";
import { type LeaseKey, MAX_PATH_BYTES, parseKey } from "../../src/kernel/keys";
import type { Lease } from "../../src/kernel/lease";
import { LIMITS } from "../../src/kernel/policy";
import { isRefusal } from "../../src/kernel/refusal";
import { CLAIM_EVENTS } from "../../src/kernel/view";
import { AppliedFile, decodeApplied } from "../../src/store/applied";
import { claimEventOf, claimPayload, decodeLine, encodeLine } from "../../src/store/envelope";
import { layoutOf, PRIVATE } from "../../src/store/layout";
import { TicketQueue } from "../../src/store/queue";
import { seal, unseal } from "../../src/store/sealed";
import { SessionSecrets } from "../../src/store/secrets";
import { endedFromWire, endedToWire, leaseFromWire, leaseToWire, WireError } from "../../src/store/wire";
import { actor, at, ended, holder, lease, otherLease } from "./samples";
import { CONTROL, decode, encode, enter, quietWorld, range, sha256 } from "./stage";

const digest = { sha256 };
const layout = layoutOf(CONTROL);

/** Compares with the file in testing/corpora/formats; TEST_GOLDEN=write makes it anew. */
function golden(name: string, actual: string): string {
  const path = join(import.meta.dirname, "../../testing/corpora", "formats", name);
  if (process.env["TEST_GOLDEN"] === "write") writeFileSync(path, actual);
  const kept = readFileSync(path, "utf8");
  expect(actual, `${name} has changed: a new format needs a new schema version`).toBe(kept);
  return kept;
}

/** Every single flipped bit; a file with one of them must not pass for whole. */
function* flips(bytes: Uint8Array): Generator<Uint8Array> {
  for (const i of range(bytes.length)) {
    const flipped = bytes.slice();
    flipped[i]! ^= 1 << (i % 8);
    yield flipped;
  }
}

describe("the log", () => {
  const lines = CLAIM_EVENTS.map((type, i) => ({
    type,
    leases: type === "claim.released" || type === "claim.evicted" ? [] : [lease, otherLease],
    ended: ["claim.released", "claim.evicted", "claim.transferred"].includes(type) ? [ended] : [],
    reason: i % 2 === 0 ? "because" : null,
  }));

  const text = () => {
    let prev = "";
    let whole = "";
    for (const [i, event] of lines.entries()) {
      const ids = { requestId: i % 2 === 0 ? "01KDVDNA03YW26MSR5DMWESBAF" : null, operationId: "01KDVDNA04" };
      const line = encodeLine(
        digest,
        { type: event.type, actor, payload: claimPayload(event, ids) },
        { sequence: i + 1, wallMs: at(i).wallMs, synced: i, prev },
      );
      prev = line.sum;
      whole += line.text;
    }
    return whole;
  };

  it("has the lines it has always had", () => {
    const kept = golden("claims.jsonl", text()).trimEnd().split("\n");
    for (const [i, event] of lines.entries()) {
      const line = decodeLine(digest, kept[i]!)!;
      expect(line).toMatchObject({ schemaVersion: 1, sequence: i + 1, type: event.type, actor, synced: i });
      expect(claimEventOf(line)).toEqual(event);
    }
  });

  it("shows every flipped bit", () => {
    const [line] = text().split("\n");
    const decoder = new TextDecoder();
    for (const flipped of flips(encode(line!)))
      expect(decodeLine(digest, decoder.decode(flipped))).toBe(null);
  });

  it.each([
    ["nothing", ""],
    ["something else", "hello"],
    ["a line without its end", text().slice(0, 100)],
    ["a sealed line that is no JSON", sealed("{broken")],
    ["a sealed line that is no object", sealed("[1")],
    ["a sealed line without its fields", sealed('{"schema_version":1')],
  ])("takes %s for damage", (_, line) => {
    expect(decodeLine(digest, line)).toBe(null);
  });

  function sealed(body: string): string {
    return `${body},"sum":"${sha256(`${body}}`).slice(0, 32)}"}`;
  }
});

describe("a lease's file", () => {
  it.each([
    ["lease.json", lease],
    ["lease-other.json", otherLease],
  ])("%s is what it has always been", (name, sample) => {
    const bytes = seal(digest, leaseToWire(sample));
    expect(bytes.length % 512).toBe(0);
    const kept = golden(name, decode(bytes)!);
    expect(leaseFromWire(unseal(digest, encode(kept)))).toEqual(sample);
  });

  it("shows every flipped bit but those of its padding", () => {
    const bytes = seal(digest, leaseToWire(lease));
    const end = decode(bytes)!.trimEnd().length;
    for (const flipped of flips(bytes.slice(0, encode(decode(bytes)!.slice(0, end)).length)))
      expect(unseal(digest, flipped)).toBe(null);
    for (const cut of [0, 1, 100, 511, bytes.length - 600])
      expect(unseal(digest, bytes.slice(0, cut))).toBe(null);
  });

  it("never becomes shorter when it is written in place", () => {
    const long = seal(digest, { text: "x".repeat(2_000) });
    const short = seal(digest, { text: "x" }, long.length);
    expect(short.length).toBe(long.length);
    expect(unseal(digest, short)).toEqual({ text: "x" });
  });
});

describe("what is read of a lease", () => {
  const wire = JSON.parse(JSON.stringify(leaseToWire(lease))) as Record<string, unknown>;
  const without = Object.keys(wire).filter(
    (name) => !["branch", "secret_hash", "reason", "note"].includes(name),
  );

  it.each(without)("must have %s", (name) => {
    const { [name]: _, ...rest } = wire;
    expect(() => leaseFromWire(rest)).toThrow(WireError);
  });

  it.each([
    ["fencing_token", -1],
    ["fencing_token", 1.5],
    ["fencing_token", "17"],
    ["ttl_secs", null],
    ["bind", "forever"],
    ["reach", "everywhere"],
    ["expires_at", "soon"],
    ["holder", []],
    ["stole_from", {}],
    // Names that become parts of paths: nothing in them may lead elsewhere.
    ["key", "../x:y"],
    ["key", "file:a\nwt:00000001"],
    ["key", "no kind"],
    ["worktree_id", "wt:../../x"],
    ["lease_id", "../../x"],
  ])("must not have %s = %j", (name, value) => {
    expect(() => leaseFromWire({ ...wire, [name]: value })).toThrow(WireError);
  });

  it("goes through unharmed, and so does an ending", () => {
    for (const sample of [lease, otherLease]) expect(leaseFromWire(leaseToWire(sample))).toEqual(sample);
    expect(endedFromWire(endedToWire(ended))).toEqual(ended);
    for (const value of [
      null,
      [],
      1,
      { ...endedToWire(ended), cause: "x" },
      { ...endedToWire(ended), key: 1 },
    ])
      expect(() => endedFromWire(value)).toThrow(WireError);
  });
});

describe("other files are what they have always been:", () => {
  it("applied", async () => {
    const world = quietWorld();
    world.disk.makePath(`${CONTROL}/index`);
    const { files } = world.attach("p").platform;
    const applied = {
      bootId: holder.bootId,
      head: {
        segment: 3,
        offset: 4711,
        sequence: 99,
        sum: "0123456789abcdef0123456789abcdef",
        nextToken: 18 as never,
        checkpointEnd: 300,
      },
      inode: 123456,
      size: 5_822,
      mtimeMs: 1767323045678.123,
      census: { build: "0a1b2c3d4e5f", capacity: 256 },
    };
    await new AppliedFile(files, digest, layout, PRIVATE).write(applied);
    const kept = golden("applied.json", decode(world.disk.peek(layout.applied))!);
    expect(decodeApplied(digest, encode(kept))).toEqual(applied);
    for (const flipped of flips(encode(kept.trimEnd()))) expect(decodeApplied(digest, flipped)).toBe(null);
  });

  it("a ticket", async () => {
    const world = quietWorld();
    world.disk.makePath(`${CONTROL}/queue`);
    const { platform } = world.attach("p");
    const ticket = {
      number: 7,
      agentId: lease.agentId,
      sessionId: lease.sessionId,
      worktreeId: lease.worktreeId,
      keys: [{ key: lease.key, reach: "repository" as const }],
      holder,
      joinedAt: at(0),
      expiresAt: at(300),
      freeSince: at(10),
    };
    await new TicketQueue(platform, layout, PRIVATE).write(ticket);
    golden("ticket.json", decode(world.disk.peek(`${CONTROL}/queue/0000000007.json`))!);
  });

  it("secrets", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.secrets.add({
      secret: "q8Zt0000000000000000000000000000000000000000",
      madeAtMs: at(0).wallMs,
      worktreeId: lease.worktreeId,
      leases: [{ leaseId: lease.leaseId, key: lease.key, reach: "repository" }],
    });
    const kept = golden("secrets.jsonl", decode(world.disk.peek(a.secrets.path))!);
    world.disk.install(a.secrets.path, encode(kept));
    const again = new SessionSecrets(a.platform, a.store.layout, a.actor, async () => {});
    expect(await again.possessions()).toMatchObject([{ leaseId: lease.leaseId, key: lease.key }]);
  });

  it("an ending", () => {
    const value = { ...endedToWire(ended), ended_at: new Date(at(5).wallMs).toISOString() };
    golden("ended.json", decode(seal(digest, value))!);
  });
});

it("no record is larger than 64 KiB, whatever its parts are", () => {
  const agent = `agent:${"x".repeat(100)}` as AgentId;
  // Control characters take six bytes each in JSON, quotes and backslashes two.
  const text = "\u0001".repeat(LIMITS.textLength);
  const longest: Lease = {
    ...lease,
    key: parseKey(`file:${'"/'.repeat(MAX_PATH_BYTES / 2 - 1)}"`) as LeaseKey,
    agentId: agent,
    sessionId: "s".repeat(128) as SessionId,
    branch: "\u0001".repeat(4_096),
    reason: text,
    note: text,
    stopIdleAt: at(0),
    stoleFrom: range(LIMITS.stoleFrom).map(() => ({
      leaseId: lease.leaseId,
      agentId: agent,
      why: "stop_idle",
    })),
  };
  expect(isRefusal(longest.key)).toBe(false);
  expect(seal(digest, leaseToWire(longest)).length).toBeLessThan(64 * 1024);
});
