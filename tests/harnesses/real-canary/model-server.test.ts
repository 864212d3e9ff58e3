import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Conversation, Hangup, type Script } from "../../../src/features/harnesses/real-canary/conversation";
import { type ModelServer, startModelServer } from "../../../src/features/harnesses/real-canary/model-server";

const TOOL = { tool: "poke", input: { where: "x.txt" } };

/** How a harness asks for the first turn, and for the one after `result`. */
const ASKING = {
  "v1/messages": (prompt: string, result: string | null) => ({
    model: "m",
    tools: [{ name: "poke" }],
    messages: [
      { role: "user", content: prompt },
      ...(result === null ? [] : [{ role: "user", content: [{ type: "tool_result", content: result }] }]),
    ],
  }),
  "v1/responses": (prompt: string, result: string | null) => ({
    model: "m",
    tools: [{ name: "poke" }],
    input: [
      { role: "user", content: [{ text: prompt }] },
      ...(result === null ? [] : [{ type: "function_call_output", output: result }]),
    ],
  }),
  "v1/chat/completions": (prompt: string, result: string | null) => ({
    model: "m",
    tools: [{ type: "function", function: { name: "poke" } }],
    messages: [
      { role: "user", content: prompt },
      ...(result === null ? [] : [{ role: "tool", content: result }]),
    ],
  }),
  "v1beta/models/m:generateContent": (prompt: string, result: string | null) => ({
    tools: [{ functionDeclarations: [{ name: "poke" }] }],
    contents: [
      { role: "user", parts: [{ text: prompt }] },
      ...(result === null ? [] : [{ role: "user", parts: [{ functionResponse: { response: result } }] }]),
    ],
  }),
} as const;

describe("the scripted model", () => {
  let server: ModelServer;
  beforeAll(async () => {
    server = await startModelServer();
  });
  afterAll(() => server.close());

  const post = async (path: string, body: object) => {
    const response = await fetch(`http://127.0.0.1:${server.port}/${path}`, {
      method: "POST",
      body: JSON.stringify(body),
    });
    return response.text();
  };

  it.each(Object.entries(ASKING))("speaks %s: a tool, its result, the last words", async (path, ask) => {
    let told = "";
    const script: Script = async (talk) => {
      told = await talk.use(TOOL);
      return "all is done";
    };
    const { mention } = server.open(script);
    const first = await post(path, ask(mention, null));
    expect(first).toContain("poke");
    // A harness that lost the answer asks again.
    expect(await post(path, ask(mention, null))).toContain("x.txt");
    expect(await post(path, ask(mention, "poked"))).toContain("all is done");
    expect(told).toContain("poked");
  });

  it("keeps requests without tools, for titles and the like, out of the script", async () => {
    const { mention } = server.open(async () => "the script's words");
    const body = { model: "m", messages: [{ role: "user", content: mention }] };
    expect(await post("v1/messages", body)).not.toContain("the script's words");
  });

  it("knows what was asked of it in a protocol that it does not know, and whether a script was asked for", async () => {
    const { conversation, mention } = server.open(async () => "done");
    expect(conversation.isAsked).toBe(false);
    await post("v9/thoughts", { prompt: mention });
    await post("v1/messages", { model: "m" });
    expect([conversation.isAsked, server.misunderstood]).toEqual([
      false,
      ["POST /v9/thoughts", "POST /v1/messages"],
    ]);
    await post("v1/messages", ASKING["v1/messages"](mention, null));
    expect(conversation.isAsked).toBe(true);
  });

  it("tells a script whose program has ended, so that nobody waits for ever", async () => {
    const conversation = new Conversation(async (talk) => talk.use(TOOL));
    conversation.hangUp("exit 0");
    await expect(conversation.ended).rejects.toThrow(Hangup);
  });
});
