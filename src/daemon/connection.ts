import * as net from "node:net";
import type { Policy } from "../kernel/policy";
import { FrameReader } from "./frames";
import { type DaemonRecord, PROTOCOL } from "./place";
import { errorFromWire } from "./rpc";
import { toWire } from "./wire";

/** There is no answer, and there will be none. Whether the request was carried out, nobody here knows. */
export class NoAnswer extends Error {}

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Who a client is: what it runs, its clock, and what its claims go by. Empty where it only looks. */
export interface Greeting {
  readonly build: string;
  readonly clockId: string;
  readonly policy?: Policy;
  readonly ledger?: string | null;
}

export const ONLOOKER: Greeting = { build: "", clockId: "" };

type OnNotice = (method: string, params: Record<string, unknown>) => void;

/** Says hello at once. Requests need not wait for the answer: without it they are refused. */
export function connectTo(
  { socket, token }: Pick<DaemonRecord, "socket" | "token">,
  greeting: Greeting,
  withinMs: number,
  onNotice: OnNotice = () => {},
): DaemonConnection {
  const connection = new DaemonConnection(socket, onNotice);
  const hello = toWire({ token, protocol: PROTOCOL, ...greeting }) as object;
  connection.call("hello", hello, withinMs).catch(() => {});
  return connection;
}

/** A client's side of the socket. */
export class DaemonConnection {
  readonly #socket: net.Socket;
  readonly #reader = new FrameReader();
  readonly #pending = new Map<number, Pending>();
  readonly #onNotice: OnNotice;
  #next = 1;
  #heardMs = performance.now();
  #failure: Error | null = null;
  #end: () => void = () => {};
  /** Resolves when nothing more will be heard. */
  readonly ended = new Promise<void>((resolve) => {
    this.#end = resolve;
  });

  constructor(socketPath: string, onNotice: OnNotice) {
    this.#onNotice = onNotice;
    this.#socket = net.connect(socketPath);
    this.#socket.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.once("close", () => this.#fail(new NoAnswer("the daemon has closed the connection")));
  }

  get isOpen(): boolean {
    return this.#failure === null;
  }

  /** `params` may be JSON already. Sends at once; requests before the socket is connected go with it. Rejects with `NoAnswer` when the time is up. */
  call(method: string, params: object | string, withinMs: number): Promise<unknown> {
    if (this.#failure !== null) return Promise.reject(new NoAnswer(this.#failure.message));
    const id = this.#next++;
    const text = typeof params === "string" ? params : JSON.stringify(params);
    this.#socket.write(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${text}}\n`);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(() => reject(new NoAnswer(`no answer to ${method}`))), withinMs);
      const settle = (then: () => void) => {
        clearTimeout(timer);
        this.#pending.delete(id);
        this.#rest();
        then();
      };
      this.#pending.set(id, {
        resolve: (result) => settle(() => resolve(result)),
        reject: (error) => settle(() => reject(error)),
      });
      this.#socket.ref();
    });
  }

  /**
   * The same for what may take its time: as long as the other side shows that it is there. One that is stopped or stuck says
   * nothing within `silenceMs`, and then nobody waits for it.
   */
  async callPatiently(method: string, params: string, silenceMs: number, withinMs: number): Promise<unknown> {
    const answer = this.call(method, params, withinMs);
    answer.catch(() => {});
    const begunMs = performance.now();
    const timer = setInterval(() => {
      const nowMs = performance.now();
      if (nowMs - Math.max(this.#heardMs, begunMs) > silenceMs) {
        this.#fail(new NoAnswer(`no answer to ${method}`));
        this.#socket.destroy();
      } else if (nowMs - begunMs > silenceMs / 2) this.call("ping", {}, silenceMs).catch(() => {});
    }, silenceMs / 4);
    timer.unref();
    try {
      return await answer;
    } finally {
      clearInterval(timer);
    }
  }

  close(): void {
    this.#fail(new NoAnswer("closed"));
    this.#socket.destroy();
  }

  /** With nothing to wait for, an open connection keeps no process alive. */
  #rest(): void {
    if (this.#pending.size === 0) this.#socket.unref();
  }

  #take(chunk: Buffer): void {
    this.#heardMs = performance.now();
    try {
      for (const text of this.#reader.push(chunk)) this.#hear(JSON.parse(text) as Record<string, unknown>);
    } catch (error) {
      this.#fail(error as Error);
      this.#socket.destroy();
    }
  }

  #hear(message: Record<string, unknown>): void {
    if (typeof message["method"] === "string") {
      this.#onNotice(message["method"], (message["params"] ?? {}) as Record<string, unknown>);
      return;
    }
    const pending = this.#pending.get(message["id"] as number);
    if (message["error"] !== undefined) pending?.reject(errorFromWire(message["error"]));
    else pending?.resolve(message["result"]);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#end();
    for (const { reject } of [...this.#pending.values()]) reject(new NoAnswer(error.message));
  }
}
