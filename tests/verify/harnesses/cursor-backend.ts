import { createServer as createServer1, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createServer2, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { gunzipSync } from "node:zlib";
import type { Conversation, ToolCall } from "../../../src/features/harnesses/real-canary/conversation";
import {
  bodyOf,
  Conversations,
  listen,
  type ModelServer,
} from "../../../src/features/harnesses/real-canary/model-server";
import type { Json } from "../../../src/features/harnesses/real-canary/wire/wire";
import { cursorMessageTypes, type MessageType } from "./cursor-types";

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** A run that its client believes dead is given up; it wants to hear something this often. */
const HEARTBEAT_MS = 5_000;
/** Flags of an envelope of the Connect protocol. */
const COMPRESSED = 1;
const LAST = 2;

/**
 * Cursor's backend, as far as its local agent needs it. The model's side of a run is a stream of messages: the backend
 * asks the client to run a tool and hears what came of it, until the turn is over.
 */
export async function startCursorBackend(sdk: string): Promise<ModelServer> {
  const conversations = new Conversations();
  const backend = new Backend(cursorMessageTypes(sdk), conversations);
  const onRequest = (request: Request, response: Response) => {
    backend.answer(request, response).catch(() => response.end());
  };
  const [plain, multiplexed] = [createServer1(onRequest), createServer2(onRequest)];
  const sockets = new Set<Socket>();
  // The client speaks HTTP/2 without TLS for runs and HTTP/1.1 for the rest, to the same address.
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.once("data", (first: Buffer) => {
      socket.pause();
      socket.unshift(first);
      const isMultiplexed = first.toString("latin1").startsWith("PRI * HTTP/2");
      (isMultiplexed ? multiplexed : plain).emit("connection", socket);
      process.nextTick(() => socket.resume());
    });
  });
  await listen(server as Json);
  return {
    port: (server.address() as AddressInfo).port,
    open: (script) => conversations.open(script),
    misunderstood: [],
    close() {
      conversations.hangUp("the stage is cleared");
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

class Backend {
  readonly #types: (name: string) => MessageType;
  readonly #conversations: Conversations;
  /** Runs whose client sends its messages one by one, by the id that it gave. */
  readonly #runs = new Map<string, Run>();
  readonly #early = new Map<string, Uint8Array[]>();

  constructor(types: (name: string) => MessageType, conversations: Conversations) {
    this.#types = types;
    this.#conversations = conversations;
  }

  async answer(request: Request, response: Response): Promise<void> {
    const path = (request.url ?? "").split("?")[0] ?? "";
    const type = String(request.headers["content-type"] ?? "");
    if (path.endsWith("AgentService/Run")) {
      const run = this.#start(response, type);
      for await (const body of envelopes(request as AsyncIterable<Buffer>)) run.take(body);
      return;
    }
    const raw = await bodyOf(request as AsyncIterable<Buffer>);
    if (path.endsWith("AgentService/RunSSE")) {
      const { requestId } = this.#types("aiserver.v1.BidiRequestId").fromBinary(raw.subarray(5));
      const run = this.#start(response, type);
      this.#runs.set(requestId, run);
      for (const body of this.#early.get(requestId) ?? []) run.take(body);
      return;
    }
    if (path.endsWith("BidiService/BidiAppend")) {
      this.#append(raw);
      return send(response, "application/proto", new Uint8Array());
    }
    answerAside(path, type, response);
  }

  #start(response: Response, type: string): Run {
    response.writeHead(200, { "content-type": type });
    return new Run(this.#types, this.#conversations, response);
  }

  #append(raw: Uint8Array): void {
    const { requestId, data, dataBinary } = this.#types("aiserver.v1.BidiAppendRequest").fromBinary(raw);
    const id: string = requestId.requestId;
    const body: Uint8Array = data ? Buffer.from(data, "hex") : dataBinary;
    const run = this.#runs.get(id);
    if (run !== undefined) run.take(body);
    else this.#early.set(id, [...(this.#early.get(id) ?? []), body]);
  }
}

/** One turn of an agent: from its prompt to its last words. */
class Run {
  readonly #types: (name: string) => MessageType;
  readonly #conversations: Conversations;
  readonly #response: Response;
  readonly #waiting = new Map<number, (result: Json) => void>();
  /** What a command has printed so far. */
  readonly #printed = new Map<number, Json[]>();
  #asked = 0;
  #hasStarted = false;

  constructor(types: (name: string) => MessageType, conversations: Conversations, response: Response) {
    this.#types = types;
    this.#conversations = conversations;
    this.#response = response;
  }

  take(body: Uint8Array): void {
    const { message } = this.#types("agent.v1.AgentClientMessage").fromBinary(body);
    if (message.case === "runRequest" && !this.#hasStarted) {
      this.#hasStarted = true;
      this.#play(message.value).catch(() => this.#finish());
    } else if (message.case === "execClientMessage") {
      this.#takeResult(message.value);
    } else if (message.case === "execClientControlMessage") {
      const { throw: thrown } = message.value.toJson();
      if (thrown !== undefined) this.#waiting.get(thrown.id)?.({ thrown });
    }
  }

  #takeResult(message: Json): void {
    const result = message.toJson();
    const waiting = this.#waiting.get(message.id);
    const { shellStream } = result;
    if (shellStream === undefined) {
      waiting?.(result);
      return;
    }
    const printed = this.#printed.get(message.id) ?? [];
    this.#printed.set(message.id, [...printed, shellStream]);
    const { exit, rejected, permissionDenied, backgrounded } = shellStream;
    if (exit ?? rejected ?? permissionDenied ?? backgrounded)
      waiting?.({ ...result, shellStream: this.#printed.get(message.id) });
  }

  async #play(request: Json): Promise<void> {
    const prompt: string = request.action?.action?.value?.userMessage?.text ?? "";
    const said = prompt === "" ? [JSON.stringify(request.toJson())] : [prompt];
    const conversation = this.#conversations.of(said);
    const beat = setInterval(() => this.#update("heartbeat", {}), HEARTBEAT_MS);
    try {
      const words = conversation === null ? "done" : await this.#follow(conversation, request);
      this.#update("textDelta", { text: words });
      this.#update("turnEnded", {});
    } finally {
      clearInterval(beat);
      this.#finish();
    }
  }

  async #follow(conversation: Conversation, { conversationId }: Json): Promise<string> {
    const results: string[] = [];
    for (;;) {
      const turn = await conversation.turnAfter(results);
      if ("words" in turn) return turn.words;
      const run = turn.calls.map((call) => this.#runTool(call, conversationId));
      results.push(...(await Promise.all(run)).map((result) => JSON.stringify(result)));
    }
  }

  #runTool({ tool, input }: ToolCall, conversationId: string): Promise<Json> {
    const id = ++this.#asked;
    const isShell = /shell/i.test(tool);
    const value = { toolCallId: `call_${id}`, ...(isShell ? { conversationId } : {}), ...(input as object) };
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#send("execServerMessage", {
        id,
        execId: `exec-${id}`,
        message: { case: tool, value },
        acceptHookAdditionalContexts: true,
      });
    });
  }

  #update(what: string, value: Json): void {
    this.#send("interactionUpdate", { message: { case: what, value } });
  }

  #send(what: string, value: Json): void {
    const Message = this.#types("agent.v1.AgentServerMessage");
    (this.#response as ServerResponse).write(
      envelope(0, new Message({ message: { case: what, value } }).toBinary()),
    );
  }

  #finish(): void {
    (this.#response as ServerResponse).end(envelope(LAST, Buffer.from("{}")));
  }
}

function envelope(flags: number, bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

async function* envelopes(chunks: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const flags = rest[0]!;
      const body = rest.subarray(5, 5 + rest.readUInt32BE(1));
      rest = rest.subarray(5 + body.length);
      if ((flags & LAST) === 0) yield (flags & COMPRESSED) === 0 ? body : gunzipSync(body);
    }
  }
}

/** Signing in, the list of models, and whatever else the client asks: nothing is the answer to most of it. */
function answerAside(path: string, type: string, response: Response): void {
  if (type.includes("connect+")) send(response, type, envelope(LAST, Buffer.from("{}")));
  else if (type.includes("proto")) send(response, type, new Uint8Array());
  else send(response, "application/json", Buffer.from(JSON.stringify(documentAt(path))));
}

function documentAt(path: string): object {
  if (path.endsWith("exchange_user_api_key"))
    return { accessToken: unsignedToken(), refreshToken: unsignedToken() };
  if (!path.endsWith("/v1/models")) return {};
  const model = { id: "scripted", displayName: "scripted", variants: [] };
  return { items: [model], models: [model] };
}

function send(response: Response, type: string, bytes: Uint8Array): void {
  response.writeHead(200, { "content-type": type });
  (response as ServerResponse).end(bytes);
}

/** In the form of a session's token, valid for a long time and signed by nobody. */
function unsignedToken(): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part({ sub: "auth0|scripted", exp: 4_102_444_800, iat: 1, type: "session" })}.x`;
}
