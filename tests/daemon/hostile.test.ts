import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Session } from "../../src/coordinator/session";
import { LONGEST_FRAME } from "../../src/daemon/frames";
import { nodePlatform } from "../../src/platform/node/node";
import { Prng } from "../../testing/simulator/prng";
import { asked, key } from "../store/stage";
import { type DaemonRecordJson, RawClient } from "../support/daemon";
import { FRAME_PIECES } from "../support/frame-pieces";
import { until } from "../support/program";
import { BUILD, StageDaemon, TOKEN } from "./stage";

let daemon: StageDaemon;
const clients: RawClient[] = [];
beforeEach(() => {
  daemon = new StageDaemon(nodePlatform());
});
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  await daemon.close();
});

function connect(): RawClient {
  const client = new RawClient(daemon.socket);
  clients.push(client);
  return client;
}

function known(): RawClient {
  const client = connect();
  client.hello({ token: TOKEN } as DaemonRecordJson);
  return client;
}

/** Somebody of good will, who must not notice anything. */
async function works(): Promise<void> {
  const { party, coordinator } = daemon.client(`agent:good-${Math.random().toString(36).slice(2)}`);
  const before = performance.now();
  const session = new Session(daemon.platform, coordinator, party.actor, party.secrets);
  await session.acquire(asked("file:x"), { ttlSecs: 60 });
  await session.release([{ key: key("file:x"), leaseId: null }]);
  coordinator.close();
  expect(performance.now() - before).toBeLessThan(5_000);
}

describe("a client without the token", () => {
  it("gets nothing, and is told how to begin", async () => {
    const client = connect();
    expect(await client.ask(1, "list", {})).toMatchObject({ error: { code: -32002 } });
    client.send(2, "hello", { token: "wrong", protocol: 1, build: BUILD, clock_id: "" });
    expect(await client.answer(2)).toMatchObject({ error: { code: -32002 } });
    expect(await client.ask(3, "shutdown", {})).toMatchObject({ error: { code: -32002 } });
    await works();
  });

  it("may say no more than a greeting takes", async () => {
    const client = connect();
    client.say("x".repeat(20 << 10));
    await until("it is cut off", () => client.isClosed);
    await works();
  });

  it("is cut off when it says nothing", async () => {
    const client = connect();
    await until("it is cut off", () => client.isClosed, 10_000);
  }, 20_000);
});

describe("a client that says what makes no sense", () => {
  it.each<[string, string, number]>([
    ["no JSON", "{", -32700],
    ["a batch", "[]", -32600],
    ["another version", '{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ["no method", '{"jsonrpc":"2.0","id":1}', -32600],
    ["an unknown method", '{"jsonrpc":"2.0","id":1,"method":"__proto__"}', -32601],
    ["params that are a list", '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602],
    ["an id that is none", '{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600],
  ])("is told so: %s", async (_, text, code) => {
    const client = known();
    client.say(`${text}\n`);
    const wrong = await until(
      "there is an answer",
      () => client.heard.find((one) => "error" in one) ?? false,
    );
    expect(wrong["error"]).toMatchObject({ code });
    expect(await client.ask(9, "ping", {})).toMatchObject({ result: {} });
  });

  it("is told each field that is wrong", async () => {
    const client = known();
    client.send(0, "hello", {});
    const { error } = await client.ask(2, "hello", { token: 1, protocol: "x" });
    const { fields } = (error as { data: { fields: { field: string; problem: string }[] } }).data;
    expect(fields).toContainEqual({ field: "clock_id", problem: "is missing" });
    expect(fields.map(({ field }) => field).sort()).toEqual(["build", "clock_id", "protocol", "token"]);
  });

  it("may send a long request in the same breath as the greeting", async () => {
    for (const length of [10_000, 17_000, 70_000, 1 << 20]) {
      const client = connect();
      const hello = { token: TOKEN, protocol: 1, build: "none", clock_id: "" };
      const lines = [
        { jsonrpc: "2.0", id: 0, method: "hello", params: hello },
        { jsonrpc: "2.0", id: 1, method: "find", params: { refs: "x".repeat(length) } },
      ];
      client.say(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      expect(await client.answer(1)).toMatchObject({ error: { code: -32602 } });
      client.socket.destroy();
    }
  });

  it("may not say more at once than a frame takes", async () => {
    const client = known();
    await client.answer(0);
    client.say(Buffer.alloc(LONGEST_FRAME + 10, 120));
    await until("it is cut off", () => client.isClosed);
    await works();
  });

  it("makes ten thousand broken frames, and nothing comes of it", async () => {
    const chance = new Prng(4711, "frames");
    const client = known();
    for (let i = 0; i < 10_000; i++) {
      let text = "";
      for (let n = chance.below(8); n >= 0; n--) text += chance.pick(FRAME_PIECES);
      client.say(`${text}\n`);
      if (i % 500 === 0) await until("it keeps up", () => client.socket.writableLength < 1 << 20);
    }
    expect(await client.ask(99_999, "ping", {})).toMatchObject({ result: {} });
    await works();
  }, 60_000);
});

describe("a client that does not read", () => {
  it("is cut off, and holds nobody up", async () => {
    const client = known();
    await client.answer(0);
    client.socket.pause();
    for (let i = 0; i < 60_000; i++) client.send(i + 1, "nothing-of-that-name-".repeat(10), {});
    await works();
  }, 60_000);

  it("has its requests wait for each other, and nobody else's", async () => {
    const client = known();
    for (let i = 1; i <= 1_000; i++) client.send(i, "list", {});
    await works();
    expect(await client.answer(1_000)).toMatchObject({ result: { leases: [] } });
  });
});
