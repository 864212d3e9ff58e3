import { expect, it } from "vitest";
import { encodeLine } from "../../src/store/envelope";
import { seal } from "../../src/store/sealed";
import { addToLog, CONTROL, codeOf, decode, enter, LOG, logLines, quietWorld, sha256 } from "./stage";

const digest = { sha256 };

/** A line of version 2 in the form we know, and one in a form that we do not. */
function newerLines(world: ReturnType<typeof quietWorld>): [string, string][] {
  const last = logLines(world).at(-1)!;
  const { text } = encodeLine(
    digest,
    { type: "claim.acquired", actor: last["actor"] as never, payload: {} },
    { sequence: Number(last["sequence"]) + 1, wallMs: world.wallMs, synced: 0, prev: String(last["sum"]) },
  );
  const body = text.replace('"schema_version":1', '"schema_version":2').replace(/,"sum":"[0-9a-f]*"}\n$/, "");
  const known = `${body},"sum":"${sha256(`${body}}`).slice(0, 32)}"}\n`;
  return [
    ["in a form that looks familiar", known],
    ["in a form of its own", `${JSON.stringify({ schema_version: 2, at: 5, who: ["x"], crc: 7 })}\n`],
  ];
}

it("a line of a newer schema is refused and untouched, whatever its form", async () => {
  for (const cut of [false, true]) {
    const forms = newerLines(await oneGrant());
    for (const [form, line] of forms) {
      const world = await oneGrant();
      addToLog(world, line);
      const before = decode(world.disk.peek(LOG));
      if (cut) world.powerCut();
      const b = enter(world, "agent:b");
      expect(await codeOf(b.acquire("resource:two")), form).toBe("E_SCHEMA_NEWER");
      expect(await codeOf(b.coordinator.gc({ actor: b.actor })), form).toBe("E_SCHEMA_NEWER");
      expect(decode(world.disk.peek(LOG)), form).toBe(before);
      expect(world.disk.paths().filter((path) => path.includes("/torn-"))).toEqual([]);
    }
  }
});

it("an index of a newer schema is refused by writers, untouched, and passed over by readers", async () => {
  const world = await oneGrant();
  const path = `${CONTROL}/index/applied`;
  const { value } = JSON.parse(decode(world.disk.peek(path))!);
  world.disk.install(path, seal(digest, { ...value, schema_version: 2 }));
  const before = world.disk.paths().map((p) => [p, decode(world.disk.peek(p))]);
  const b = enter(world, "agent:b");
  expect((await b.coordinator.list()).length).toBe(1);
  expect(await codeOf(b.coordinator.gc({ actor: b.actor }))).toBe("E_SCHEMA_NEWER");
  const isLock = (p: unknown) => String(p).endsWith("claims.lock");
  expect(
    world.disk
      .paths()
      .map((p) => [p, decode(world.disk.peek(p))])
      .filter(([p]) => !isLock(p)),
  ).toEqual(before.filter(([p]) => !isLock(p)));
});

it("an event of a kind that this version does not know is passed over and kept", async () => {
  const world = await oneGrant();
  const last = logLines(world).at(-1)!;
  const { text } = encodeLine(
    digest,
    { type: "publish.intended", actor: last["actor"] as never, payload: { ref: "refs/heads/x" } },
    { sequence: Number(last["sequence"]) + 1, wallMs: world.wallMs, synced: 0, prev: String(last["sum"]) },
  );
  // Decoders are strict about its actor.
  const line = logLines(world).at(-1)!["actor"] as Record<string, unknown>;
  expect(Object.keys(line)).toEqual(["agent_id", "session_id", "worktree_id", "host", "pid"]);
  addToLog(world, fixActor(text, line));
  const b = enter(world, "agent:b");
  await b.acquire("resource:two");
  expect(logLines(world).map((l) => l?.["event_type"])).toEqual([
    "log.checkpoint",
    "claim.acquired",
    "publish.intended",
    "claim.acquired",
  ]);
});

async function oneGrant() {
  const world = quietWorld();
  await enter(world, "agent:a").acquire("resource:one");
  return world;
}

/** `encodeLine` takes our own form of an actor; the log's is another. */
function fixActor(text: string, actor: Record<string, unknown>): string {
  const record = JSON.parse(text) as Record<string, unknown>;
  delete record["sum"];
  const body = JSON.stringify({ ...record, actor });
  return `${body.slice(0, -1)},"sum":"${sha256(body).slice(0, 32)}"}\n`;
}
