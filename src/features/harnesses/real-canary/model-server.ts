import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Conversation, type Script } from "./conversation";
import { anthropic } from "./wire/anthropic";
import { chat } from "./wire/chat";
import { gemini } from "./wire/gemini";
import { responses } from "./wire/responses";
import { type Json, sendJson, type Wire } from "./wire/wire";

const WIRES: readonly Wire[] = [anthropic, responses, chat, gemini];

const MOST_MISUNDERSTOOD = 3;

/** Where harnesses find a scripted model. */
export interface ModelServer {
  readonly port: number;
  /** Lets the harness that mentions `mention` in its prompt play a script. */
  open(script: Script): { readonly conversation: Conversation; readonly mention: string };
  /** The first requests that it could make nothing of, such as those of a protocol that has changed. */
  readonly misunderstood: readonly string[];
  close(): void;
}

/** Which script a prompt asks for. The last one counts: a subagent's prompt may quote its parent's. */
export class Conversations {
  readonly #all = new Map<string, Conversation>();

  open(script: Script): { readonly conversation: Conversation; readonly mention: string } {
    const name = `script-${this.#all.size + 1}`;
    const conversation = new Conversation(script);
    this.#all.set(name, conversation);
    return { conversation, mention: `Please play ${name}.` };
  }

  of(said: readonly string[]): Conversation | null {
    const name = [...said.join("\n").matchAll(/play (script-\d+)\./g)].at(-1)?.[1];
    return name === undefined ? null : (this.#all.get(name) ?? null);
  }

  hangUp(why: string): void {
    for (const conversation of this.#all.values()) conversation.hangUp(why);
  }
}

/** One server for the four protocols that harnesses speak with their models; the path of a request tells them apart. */
export async function startModelServer(): Promise<ModelServer> {
  const conversations = new Conversations();
  const misunderstood: string[] = [];
  const server = createServer((request, response) => {
    response.on("finish", () => {
      if (response.statusCode >= 400 && misunderstood.length < MOST_MISUNDERSTOOD)
        misunderstood.push(`${request.method} ${request.url}`);
    });
    answer(conversations, request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error));
    });
  });
  await listen(server);
  return {
    port: (server.address() as AddressInfo).port,
    open: (script) => conversations.open(script),
    misunderstood,
    close() {
      conversations.hangUp("the stage is cleared");
      server.close();
      server.closeAllConnections();
    },
  };
}

export function listen(server: Pick<Server, "listen" | "once">): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve());
  });
}

export async function bodyOf(request: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function answer(
  conversations: Conversations,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const raw = (await bodyOf(request)).toString("utf8");
  const path = (request.url ?? "").split("?")[0] ?? "";
  const wire = request.method === "POST" ? WIRES.find((one) => one.matches(path)) : undefined;
  if (wire === undefined) return answerAside(path, response);
  const body: Json = JSON.parse(raw);
  const { said, results, tools } = wire.hear(body);
  const conversation = tools.length === 0 ? null : conversations.of(said);
  // Titles, summaries and the like: no part of any script.
  if (conversation === null) return wire.say({ words: "a title" }, { body, path }, response);
  const turn = await conversation.turnAfter(results, said);
  if (!response.destroyed) wire.say(turn, { body, path }, response);
}

/** What harnesses ask beside: which models there are, how many tokens a text has. */
function answerAside(path: string, response: ServerResponse): void {
  if (path.endsWith("/count_tokens")) sendJson(response, { input_tokens: 10 });
  else if (path.endsWith(":countTokens")) sendJson(response, { totalTokens: 10 });
  else if (path.endsWith("/models")) {
    const model = { id: "scripted", object: "model", type: "model", created: 0, owned_by: "nobody" };
    sendJson(response, { object: "list", data: [model] });
  } else {
    response.writeHead(404, { "content-type": "application/json" });
    response.end('{"error":{"message":"there is no such thing here"}}');
  }
}
