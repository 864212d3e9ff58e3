import { timingSafeEqual } from "node:crypto";
import * as http from "node:http";
import type { Socket } from "node:net";
import { SAFE, WaitingClient } from "./waiting-client";

/** An answer, whole. */
export interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export interface GuardPost {
  readonly harness: string;
  readonly event: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  /** Of the other side's end of the connection, where it has one. */
  readonly remotePort: number | null;
}

/**
 * Answers at once; or with work, which is done as long as its client waits. Whatever work throws, the client hears nothing more,
 * and goes without us.
 */
export type Handling = Reply | ((client: WaitingClient) => Promise<Reply>);

/** One way in. */
export interface Door {
  readonly token: string;
  /** What requests must name as their host. */
  readonly host: string;
  /** Of answers that take their time. */
  readonly type: string;
  handle(post: GuardPost): Handling;
}

const MOST_CONNECTIONS = 512;
/** Connections on which nobody has shown the token yet; the oldest makes room for whoever comes. */
const MOST_STRANGERS = 128;
/** At the same time, over all connections. Whoever comes on top goes without us. */
const MOST_AT_ONCE = 128;
const MOST_HEADERS = 16 << 10;
/** Of one event. Larger ones are the program's. */
export const LARGEST_BODY = 8 << 20;
/** Of all that are being read. */
const MOST_BYTES = 64 << 20;
const HEADERS_WITHIN_MS = 5_000;
const REQUEST_WITHIN_MS = 10_000;
/** Node's own check of all connections, for later requests of one. More often, and an idle daemon wakes for nothing. */
const CHECK_EVERY_MS = 30_000;
/** When the daemon ends: a hook that waits for a file goes on without it. */
const LAST_ANSWERS_MS = 1_000;

const PATH = /^\/guard\/([a-z]{1,20})\/([A-Za-z][A-Za-z._]{0,40})$/;

/** HTTP for hooks, over a socket or loopback. Nobody who is slow, silent or hostile costs others more than a descriptor. */
export class GuardHttp {
  readonly #server: http.Server;
  readonly #clients = new Set<WaitingClient>();
  readonly #strangers = new Set<Socket>();
  #bytes = 0;
  #underWay = 0;

  constructor(private readonly door: Door) {
    this.#server = http.createServer({
      maxHeaderSize: MOST_HEADERS,
      headersTimeout: HEADERS_WITHIN_MS,
      requestTimeout: REQUEST_WITHIN_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      // Whoever keeps a connection closes it: one that we close as the next request comes would be a failure.
      keepAliveTimeout: 0,
      requireHostHeader: true,
    });
    this.#server.maxConnections = MOST_CONNECTIONS;
    this.#server.on("connection", (socket) => this.#meet(socket));
    this.#server.on("request", (request, response) => this.#welcome(request, response));
    this.#server.on("clientError", (_, socket) => socket.destroy());
    // Nobody is asked to go on before it is known who they are.
    this.#server.on("checkContinue", (request, response) => this.#welcome(request, response));
    this.#server.on("upgrade", (_, socket) => socket.destroy());
  }

  listen(where: string | { readonly host: string; readonly port: number }): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      const then = () => {
        this.#server.off("error", reject);
        this.#server.on("error", () => {});
        resolve();
      };
      if (typeof where === "string") this.#server.listen(where, then);
      else this.#server.listen(where.port, where.host, then);
    });
  }

  get waiting(): number {
    return this.#underWay;
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeIdleConnections();
    const deadline = performance.now() + LAST_ANSWERS_MS;
    while (this.#clients.size > 0 && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 5));
    this.#server.closeAllConnections();
  }

  /** Whoever may ask does so at once. */
  #meet(socket: Socket): void {
    this.#strangers.add(socket);
    expectRequest(socket);
    socket.once("close", () => this.#strangers.delete(socket));
    const [oldest] = this.#strangers;
    if (this.#strangers.size > MOST_STRANGERS) oldest?.destroy();
  }

  #welcome(request: http.IncomingMessage, response: http.ServerResponse): void {
    request.on("error", () => {});
    response.on("error", () => {});
    const { socket } = request as { socket: Occupied & Expected };
    request.once("end", () => clearTimeout(socket[FIRST]));
    const objection = this.#objectionTo(request);
    // One after the other: nobody who waits for answers sends more.
    if (socket[BUSY] === true) socket.destroy();
    else if (objection !== null) refuse(response, ...objection);
    else this.#accept(request, response, socket);
  }

  #accept(request: http.IncomingMessage, response: http.ServerResponse, socket: Occupied): void {
    this.#strangers.delete(socket);
    socket[BUSY] = true;
    this.#underWay++;
    response.once("close", () => {
      socket[BUSY] = false;
      this.#underWay--;
    });
    if (request.headers.expect !== undefined) response.writeContinue();
    this.#read(request, (body) => {
      if (body === null) refuse(response, 413, "too much for one event");
      else this.#handle(request, response, body);
    });
  }

  #handle({ url, headers, socket }: http.IncomingMessage, response: http.ServerResponse, body: Buffer): void {
    const [, harness = "", event = ""] = PATH.exec(url ?? "") ?? [];
    let handling: Handling;
    try {
      handling = this.door.handle({ harness, event, headers, body, remotePort: socket.remotePort ?? null });
    } catch (error) {
      refuse(response, 500, (error as Error).message);
      return;
    }
    if (typeof handling === "function") void this.#work(response, handling);
    else reply(response, handling);
  }

  #objectionTo({ method, url, headers }: http.IncomingMessage): [status: number, why: string] | null {
    if (method !== "POST") return [405, "only POST is answered"];
    if (headers.host !== this.door.host) return [403, "this is not the host that you mean"];
    // Browsers send them, and no hook does.
    if (headers.origin !== undefined || headers["sec-fetch-site"] !== undefined)
      return [403, "pages are not answered"];
    if (!isSameSecret(headers.authorization ?? "", `Bearer ${this.door.token}`))
      return [401, "wrong or missing token; run: cotenant agent install claude --via http"];
    if (!PATH.test(url ?? "")) return [404, "there is nothing of that name"];
    if (Number(headers["content-length"] ?? 0) > LARGEST_BODY) return [413, "too much for one event"];
    if (this.#underWay >= MOST_AT_ONCE) return [503, "too many at once"];
    return null;
  }

  #read(request: http.IncomingMessage, then: (body: Buffer | null) => void): void {
    const parts: Buffer[] = [];
    let size = 0;
    let isOver = false;
    const finish = (body: Buffer | null) => {
      if (isOver) return;
      isOver = true;
      this.#bytes -= size;
      parts.length = 0;
      then(body);
    };
    request.on("data", (part: Buffer) => {
      if (isOver) return;
      size += part.length;
      this.#bytes += part.length;
      parts.push(part);
      if (size > LARGEST_BODY || this.#bytes > MOST_BYTES) finish(null);
    });
    request.once("end", () => finish(Buffer.concat(parts)));
    request.once("close", () => {
      if (isOver) return;
      isOver = true;
      this.#bytes -= size;
    });
  }

  async #work(response: http.ServerResponse, work: (client: WaitingClient) => Promise<Reply>): Promise<void> {
    const client = new WaitingClient(response, this.door.type);
    this.#clients.add(client);
    try {
      // What it says now is whether anybody is there: a request may have waited in the socket for an hour.
      if (!(await client.greet())) return;
      const { body } = await work(client);
      client.finish(body);
    } catch {
      response.destroy();
    } finally {
      this.#clients.delete(client);
      client.close();
    }
  }
}

const FIRST = Symbol("until its first request is read");
type Expected = http.IncomingMessage["socket"] & { [FIRST]?: NodeJS.Timeout };

/** Whoever connects has something to say, and says all of it soon. */
function expectRequest(socket: Expected): void {
  const timer = setTimeout(() => socket.destroy(), REQUEST_WITHIN_MS);
  socket[FIRST] = timer;
  socket.once("close", () => clearTimeout(timer));
}

const BUSY = Symbol("busy");
type Occupied = http.IncomingMessage["socket"] & { [BUSY]?: boolean };

function reply(response: http.ServerResponse, { status, type, body }: Reply): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, { ...SAFE, "content-type": type, "content-length": bytes.length });
  if (bytes.length === 0) response.end();
  else response.end(bytes);
}

/** Nobody who is refused says anything more on that connection. */
function refuse(response: http.ServerResponse, status: number, why: string): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const body = Buffer.from(`${why}\n`);
  response.writeHead(status, {
    ...SAFE,
    "content-type": "text/plain",
    "content-length": body.length,
    connection: "close",
  });
  response.end(body, () => response.socket?.destroySoon());
}

/** In a time that tells nothing of where they differ. */
export function isSameSecret(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
