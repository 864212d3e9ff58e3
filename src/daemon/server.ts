import * as net from "node:net";
import { FrameReader, FrameTooLong, frame, LONGEST_FRAME } from "./frames";
import { errorToWire, idIn, type RequestId, RPC_ERRORS, RpcError, type RpcRequest, readRequest } from "./rpc";

/** What is behind the socket. */
export interface Handler {
  /** Somebody has come; answers what they say, until they go. */
  connected(peer: Peer): Conversation;
}

export interface Conversation {
  /** The answer; what it throws becomes an error. */
  answer(request: RpcRequest): Promise<unknown>;
  closed(): void;
}

export interface Peer {
  /** Says something that was not asked for. False when the other side does not keep up, and was cut off. */
  tell(method: string, params: object): boolean;
  /** From now on it may say as much as a request takes. */
  admit(): void;
  close(): void;
}

const MOST_CONNECTIONS = 1_024;
/** Of one connection, at the same time. What comes on top of it stays in the socket. */
const MOST_IN_FLIGHT = 64;
/** Before it has shown the token. */
const FIRST_FRAME = 16 << 10;
const SHOW_TOKEN_WITHIN_MS = 5_000;
/** What one connection has not read yet. */
const MOST_UNREAD = 8 << 20;

/** Newline-delimited JSON-RPC over a socket. Nobody who is slow, silent or hostile costs others more than a descriptor. */
export class RpcServer {
  readonly #handler: Handler;
  readonly #server: net.Server;
  readonly #open = new Set<Connection>();
  #answered = 0;

  constructor(handler: Handler) {
    this.#handler = handler;
    this.#server = net.createServer((socket) => this.#welcome(socket));
    this.#server.maxConnections = MOST_CONNECTIONS;
  }

  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(path, () => {
        this.#server.off("error", reject);
        this.#server.on("error", () => {});
        resolve();
      });
    });
  }

  get connections(): number {
    return this.#open.size;
  }

  /** Requests since it listens. */
  get answered(): number {
    return this.#answered;
  }

  /** Takes nobody new, answers what was asked, and closes. */
  async close(withinMs: number): Promise<void> {
    this.#server.close();
    const deadline = Date.now() + withinMs;
    while ([...this.#open].some(({ isBusy }) => isBusy) && Date.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 5));
    for (const connection of this.#open) connection.end();
  }

  #welcome(socket: net.Socket): void {
    const connection = new Connection(socket, this.#handler, {
      answered: () => this.#answered++,
      closed: () => this.#open.delete(connection),
    });
    this.#open.add(connection);
  }
}

class Connection implements Peer {
  readonly #socket: net.Socket;
  readonly #conversation: Conversation;
  readonly #reader = new FrameReader(FIRST_FRAME);
  readonly #patience: NodeJS.Timeout;
  /** Frames that wait until others of this connection are answered. */
  readonly #waiting: string[] = [];
  #inFlight = 0;

  readonly #on: { answered(): void; closed(): void };

  constructor(socket: net.Socket, handler: Handler, on: { answered(): void; closed(): void }) {
    this.#socket = socket;
    this.#on = on;
    this.#conversation = handler.connected(this);
    this.#patience = setTimeout(() => socket.destroy(), SHOW_TOKEN_WITHIN_MS);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      clearTimeout(this.#patience);
      this.#waiting.length = 0;
      on.closed();
      this.#conversation.closed();
    });
  }

  get isBusy(): boolean {
    return this.#inFlight > 0;
  }

  admit(): void {
    clearTimeout(this.#patience);
    this.#reader.longest = LONGEST_FRAME;
  }

  tell(method: string, params: object): boolean {
    return this.#send({ jsonrpc: "2.0", method, params });
  }

  close(): void {
    this.#socket.destroy();
  }

  end(): void {
    this.#socket.end();
    this.#socket.unref();
  }

  #take(chunk: Buffer): void {
    try {
      for (const text of this.#reader.push(chunk)) {
        this.#waiting.push(text);
        // At once: once the greeting is read, what comes with it may be longer.
        this.#goOn();
      }
    } catch (error) {
      if (!(error instanceof FrameTooLong)) throw error;
      this.#fail(null, new RpcError(RPC_ERRORS.invalidRequest, error.message));
      this.#socket.destroySoon();
      return;
    }
    this.#goOn();
  }

  #goOn(): void {
    while (this.#inFlight < MOST_IN_FLIGHT && this.#waiting.length > 0)
      void this.#answer(this.#waiting.shift()!);
    if (this.#waiting.length > 0) this.#socket.pause();
    else this.#socket.resume();
  }

  async #answer(text: string): Promise<void> {
    this.#inFlight++;
    let request: RpcRequest | null = null;
    try {
      request = readRequest(text);
      const result = await this.#conversation.answer(request);
      if (!request.isNotice) this.#send({ jsonrpc: "2.0", id: request.id, result: result ?? null });
    } catch (error) {
      if (request?.isNotice !== true) this.#fail(request?.id ?? idIn(text), error);
    } finally {
      this.#inFlight--;
      this.#on.answered();
      this.#goOn();
    }
  }

  #fail(id: RequestId, error: unknown): void {
    this.#send({ jsonrpc: "2.0", id, error: errorToWire(error) });
  }

  #send(message: object): boolean {
    if (this.#socket.destroyed) return false;
    this.#socket.write(frame(message));
    if (this.#socket.writableLength <= MOST_UNREAD) return true;
    this.#socket.destroy();
    return false;
  }
}
