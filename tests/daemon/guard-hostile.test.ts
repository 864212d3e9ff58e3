import * as fs from "node:fs";
import * as path from "node:path";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { SEPARATOR } from "../../src/daemon/guard-files";
import { LARGEST_BODY } from "../../src/daemon/guard-http";
import { Prng } from "../../testing/simulator/prng";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { TestRepo } from "../support/repo";
import { type Asked, GuardStage, post, type RawHttp } from "./guard-stage";

const it = oneIn(3);

let stage: GuardStage;
const clients: RawHttp[] = [];
beforeEach(async () => {
  stage = new GuardStage();
  await stage.listen();
});
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  await stage.close();
});

function connect(): RawHttp {
  const client = stage.connect();
  clients.push(client);
  return client;
}

/** A tool that is none of the guard's business, anywhere. */
const HARMLESS = {
  session_id: "aaaaaaaa-1",
  hook_event_name: "PreToolUse",
  tool_name: "Read",
  tool_input: {},
};
const ANSWERED = new RegExp(`${SEPARATOR}0${SEPARATOR}${SEPARATOR}${SEPARATOR}done`);

async function ask(asked: Asked & { readonly event?: unknown }): Promise<number> {
  const client = connect();
  client.say(post(asked.event ?? HARMLESS, asked));
  await until("there is an answer", () => client.isClosed || /^HTTP\/1\.1 \d{3} /.test(client.heard));
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(client.heard)?.[1] ?? 0);
}

/** Somebody of good will, who must not notice anything. */
async function works(): Promise<void> {
  const client = connect();
  const begunMs = performance.now();
  client.say(post(HARMLESS));
  await until("there is an answer", () => ANSWERED.test(client.heard));
  expect(performance.now() - begunMs).toBeLessThan(5_000);
}

describe("whoever has no business here", () => {
  it.each<[string, Asked, number]>([
    ["no token", { headers: { Authorization: null } }, 401],
    ["another token", { headers: { Authorization: `Bearer ${"0".repeat(48)}` } }, 401],
    ["the token in another form", { headers: { Authorization: "Basic 5ec2e7" } }, 401],
    ["another method", { method: "GET" }, 405],
    ["yet another method", { method: "OPTIONS" }, 405],
    ["another host", { headers: { Host: "example.invalid" } }, 403],
    ["the host with a port", { headers: { Host: "cotenant:80" } }, 403],
    ["a page", { headers: { Origin: "http://localhost" } }, 403],
    ["a page of another site", { headers: { "Sec-Fetch-Site": "cross-site" } }, 403],
    ["another place", { path: "/" }, 404],
    ["a place above", { path: "/guard/../guard/claude/PreToolUse" }, 404],
    ["a place above, in other words", { path: "/guard/%2e%2e/claude/PreToolUse" }, 404],
    ["a question in the address", { path: "/guard/claude/PreToolUse?x" }, 404],
    ["a whole address", { path: "http://localhost/guard/claude/PreToolUse" }, 404],
    ["a harness that nobody knows", { path: "/guard/constructor/PreToolUse" }, 404],
    ["an event that nobody knows", { path: "/guard/claude/PreToolUses" }, 404],
    ["another harness's event", { path: "/guard/gemini/PreToolUse" }, 404],
    ["more than there is room for", { headers: { "Content-Length": String(LARGEST_BODY + 1) } }, 413],
    ["another program", { headers: { "Cotenant-Program": "[/usr/bin/other]" } }, 409],
  ])("is refused: %s", async (_, asked, status) => {
    expect(await ask(asked)).toBe(status);
    await works();
    expect(stage.service.status()).toMatchObject({ events: 1 });
  });

  it("is refused before it has said what it wants", async () => {
    const client = connect();
    const [head = ""] = post(HARMLESS, {
      headers: { Authorization: null, "Content-Length": "1000000" },
    }).split("\r\n\r\n");
    client.say(`${head}\r\n\r\n`);
    await until("it is cut off", () => client.isClosed);
    expect(client.heard).toMatch(/^HTTP\/1\.1 401 /);
  });
});

describe("a request that makes no sense", () => {
  it.each<[string, Asked]>([
    ["no process", { headers: { "Cotenant-Process": null } }],
    ["processes that are none", { headers: { "Cotenant-Process": "1 2 3" } }],
    ["no directory", { headers: { "Cotenant-Cwd": null } }],
    ["a directory without brackets", { headers: { "Cotenant-Cwd": "/" } }],
    ["a directory that is relative", { headers: { "Cotenant-Cwd": "[src]" } }],
    ["no limit", { headers: { "Cotenant-Limit": null } }],
    ["a limit for ever", { headers: { "Cotenant-Limit": "999999999" } }],
    ["no event", { body: "export A='b'" }],
    ["an environment that cannot be read", { env: "export A=$(id)\n" }],
    [
      "JSON that is none",
      { headers: { "Content-Type": "application/json", "Cotenant-Harness": "1" }, body: "{" },
    ],
    [
      "JSON without what it needs",
      { headers: { "Content-Type": "application/json", "Cotenant-Harness": "1" }, body: "{}" },
    ],
  ])("is refused: %s", async (_, asked) => {
    expect(await ask(asked)).toBe(400);
    await works();
  });

  it("is not answered where the process is not what it says: the program is to do it", async () => {
    const client = connect();
    client.say(post(HARMLESS, { headers: { "Cotenant-Process": `${process.pid} 1` } }));
    await until("it is cut off", () => client.isClosed);
    expect(client.heard).not.toContain("done");
    expect(stage.service.status()).toMatchObject({ events: 0, declined: 1 });
  });

  it("is answered as the program would where only the event makes none", async () => {
    for (const event of [
      "",
      "{",
      "[]",
      "null",
      '{"hook_event_name":"PreToolUse","tool_input":{"file_path":7}}',
    ]) {
      const client = connect();
      client.say(post(event));
      await until("there is an answer", () => client.heard.includes("done"));
    }
  });

  it("is cut off where it is no HTTP, ten thousand times", async () => {
    const chance = new Prng(4711, "requests");
    const pieces = [
      "POST ",
      "/guard/claude/PreToolUse",
      " HTTP/1.1",
      "\r\n",
      "Host: cotenant",
      "Content-Length: ",
      "-1",
      "\0",
      "é",
      "Transfer-Encoding: chunked",
      "ffffffff",
      ": ",
    ];
    for (let i = 0; i < 10_000; i++) {
      let text = "";
      for (let n = chance.below(9); n >= 0; n--) text += chance.pick(pieces);
      const client = stage.connect();
      client.socket.end(`${text}\r\n\r\n`);
      if (i % 100 === 0) await until("it keeps up", () => client.isClosed);
    }
    await works();
  }, 120_000);
});

describe("a client that takes its time", () => {
  it("is cut off when it says nothing, or not all, and holds nobody up", async () => {
    const [silent, slow, half] = [connect(), connect(), connect()];
    const text = post(HARMLESS);
    half.say(text.slice(0, -5));
    let at = 0;
    const drip = setInterval(() => slow.say(text[at++] ?? ""), 300);
    await works();
    await until("they are cut off", () => silent.isClosed && slow.isClosed && half.isClosed, 20_000);
    clearInterval(drip);
    expect(stage.service.status()).toMatchObject({ events: 1, under_way: 0 });
  }, 30_000);

  it("may not say more than fits, nor longer headers", async () => {
    const [headers, body] = [connect(), connect()];
    headers.say(`POST / HTTP/1.1\r\nHost: cotenant\r\nX: ${"x".repeat(20 << 10)}\r\n\r\n`);
    body.say(post("", { headers: { "Content-Length": null, "Transfer-Encoding": "chunked" }, body: "" }));
    const chunk = Buffer.alloc(1 << 20, 120);
    for (let i = 0; i < 10; i++) {
      body.say(`${chunk.length.toString(16)}\r\n`);
      body.say(chunk);
      body.say("\r\n");
    }
    await until("they are cut off", () => headers.isClosed && body.isClosed);
    expect(body.heard).toMatch(/^(?:HTTP\/1\.1 413 |$)/);
    await works();
  });

  it("may not ask again before it was answered", async () => {
    const client = connect();
    client.say(post(HARMLESS).repeat(50));
    await until("it is cut off", () => client.isClosed);
    expect(Number(stage.service.status().events)).toBeLessThan(3);
    await works();
  });

  it("may ask again afterwards, over the same connection", async () => {
    const client = connect();
    for (let i = 1; i <= 3; i++) {
      client.say(post(HARMLESS));
      await until("there is an answer", () => client.heard.split("done").length === i + 1);
    }
    expect(client.isClosed).toBe(false);
  });

  it("is one of many: whoever comes on top of them is told so, and goes without us", async () => {
    const all = Array.from({ length: 140 }, () => connect());
    const text = post(HARMLESS);
    for (const client of all) client.say(text.slice(0, -5));
    const refused = () => all.filter(({ heard }) => heard.startsWith("HTTP/1.1 503 ")).length;
    await until("some are refused", () => refused() === 12);
    for (const client of all) client.say(text.slice(-5));
    await until(
      "the others are answered",
      () => all.filter(({ heard }) => ANSWERED.test(heard)).length === 128,
    );
    await works();
  });

  it("is not answered when it has left before", async () => {
    const client = connect();
    await new Promise((resolve) => client.socket.once("connect", resolve));
    const repo = TestRepo.make();
    repo.write(".cotenant/config.toml", "# nothing\n");
    const input = { file_path: path.join(repo.root, "a.txt"), content: "" };
    // In one turn of this process, so that the request and its end wait in the socket together.
    client.say(post({ ...HARMLESS, tool_name: "Write", tool_input: input }));
    client.socket.destroy();
    await until("it was noticed", () => stage.service.status().under_way === 0);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(stage.service.status()).toMatchObject({ events: 0 });
    expect(fs.existsSync(repo.control)).toBe(false);
  });
});
