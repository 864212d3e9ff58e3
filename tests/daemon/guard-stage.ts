import * as fs from "node:fs";
import * as net from "node:net";
import * as path from "node:path";
import { SEPARATOR, SHELL_TYPE, SOCKET_HOST } from "../../src/daemon/guard-files";
import { GuardHttp } from "../../src/daemon/guard-http";
import { GuardService } from "../../src/daemon/guard-service";
import { nodePlatform } from "../../src/platform/node/node";

export const TOKEN = "5ec2e7".repeat(8);
export const PROGRAM = "/opt/cotenant/bin/cotenant";

/** The daemon's answers to hooks over a real socket, in this process. */
export class GuardStage {
  /** Sockets have short names, and scratch folders do not. */
  readonly socket = path.join(fs.mkdtempSync("/tmp/ct-"), "g");
  readonly service = new GuardService({
    platform: nodePlatform(),
    program: PROGRAM,
    isCurrent: () => true,
    onUse: () => {},
  });
  readonly #http = new GuardHttp({
    token: TOKEN,
    host: SOCKET_HOST,
    type: "text/plain",
    handle: (post) => this.service.handle(post),
  });

  listen(): Promise<void> {
    return this.#http.listen(this.socket);
  }

  async close(): Promise<void> {
    await this.#http.close();
    fs.rmSync(path.dirname(this.socket), { recursive: true, force: true });
  }

  connect(): RawHttp {
    return new RawHttp(net.connect(this.socket));
  }
}

/** Somebody who says what they like. */
export class RawHttp {
  readonly socket: net.Socket;
  heard = "";
  isClosed = false;

  constructor(socket: net.Socket) {
    this.socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      this.heard += text;
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.isClosed = true;
    });
  }

  say(text: string | Uint8Array): void {
    this.socket.write(text);
  }
}

export type Headers = Readonly<Record<string, string | null>>;

/** A request as a hook makes it, but for what is told otherwise. Null leaves a header out. */
export function post(event: unknown, { path: to, method = "POST", ...more }: Asked = {}): string {
  const { headers = {}, env = "" } = more;
  const body = more.body ?? `${env}${SEPARATOR}${typeof event === "string" ? event : JSON.stringify(event)}`;
  const all: Record<string, string | null> = {
    Host: SOCKET_HOST,
    Authorization: `Bearer ${TOKEN}`,
    "Content-Type": SHELL_TYPE,
    "Content-Length": String(Buffer.byteLength(body)),
    "Cotenant-Process": `${process.pid} ${process.ppid}`,
    "Cotenant-Cwd": "[/]",
    "Cotenant-Limit": "20",
    "Cotenant-Program": `[${PROGRAM}]`,
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]));
  return [`${method} ${to ?? "/guard/claude/PreToolUse"} HTTP/1.1`, ...lines, "", body].join("\r\n");
}

export interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Headers;
  readonly env?: string;
  readonly body?: string;
}
