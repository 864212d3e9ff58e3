import { type ChildProcess, spawn } from "node:child_process";
import * as net from "node:net";

/** What a network does to a connection. */
export interface Weather {
  /** Nobody is there. */
  down?: boolean;
  /** Bytes are held back for so long. */
  delayMs?: number;
  /** The connection ends after so many bytes from the client. */
  cutAfter?: number;
  /** Of a push: everything reaches the server, and nothing of its answer comes back. */
  losesAnswer?: boolean;
  /** After a push whose answer is lost nobody is there any more. */
  thenDown?: boolean;
  /** Nothing is ever sent on. */
  silent?: boolean;
}

/** A proxy on loopback between the machines and a server, with weather that changes. */
export class FaultyProxy {
  weather: Weather = {};
  /** Connections that were made. */
  connections = 0;
  /** Pushes whose answer was lost. */
  lost = 0;
  readonly port: number;
  close: () => void = () => {};
  readonly #sockets = new Set<net.Socket>();

  private constructor(port: number) {
    this.port = port;
  }

  static async to(target: number): Promise<FaultyProxy> {
    const server = net.createServer({ allowHalfOpen: false });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const proxy = new FaultyProxy((server.address() as net.AddressInfo).port);
    server.on("connection", (client) => proxy.#serve(client, target));
    proxy.close = () => {
      for (const socket of proxy.#sockets) socket.destroy();
      server.close();
    };
    return proxy;
  }

  #serve(client: net.Socket, target: number): void {
    const { weather } = this;
    this.connections++;
    this.#sockets.add(client);
    client.on("close", () => this.#sockets.delete(client));
    client.on("error", () => {});
    if (weather.down === true) return void client.destroy();
    if (weather.silent === true) return;
    const server = net.connect(target, "127.0.0.1");
    this.#sockets.add(server);
    server.on("close", () => this.#sockets.delete(server));
    server.on("error", () => client.destroy());
    client.on("close", () => server.destroy());
    let sent = 0;
    let isPush = false;
    let isAnswered = false;
    const later = (act: () => void) =>
      weather.delayMs === undefined ? act() : setTimeout(act, weather.delayMs);
    client.on("data", (chunk: Buffer) => {
      isPush ||= chunk.includes("git-receive-pack");
      // What follows the server's list of refs is the push itself.
      if (isPush && isAnswered && weather.losesAnswer === true) this.#lose(client, server);
      sent += chunk.length;
      if (weather.cutAfter !== undefined && sent > weather.cutAfter) {
        server.end(chunk.subarray(0, Math.max(0, chunk.length - (sent - weather.cutAfter))));
        return void client.destroy();
      }
      later(() => server.write(chunk));
    });
    server.on("data", (chunk: Buffer) => {
      isAnswered = true;
      later(() => client.write(chunk));
    });
    server.on("end", () => later(() => client.end()));
  }

  #lose(client: net.Socket, server: net.Socket): void {
    if (server.listenerCount("data") === 0) return;
    this.lost++;
    if (this.weather.thenDown === true) this.weather = { down: true };
    server.removeAllListeners("data").removeAllListeners("end");
    client.removeAllListeners("close");
    // It has to be read, or the server would wait for us.
    server.resume();
    server.on("end", () => client.destroy());
    server.on("close", () => client.destroy());
  }
}

/** `git://` for every repository in a directory, by Git's own daemon. */
export async function gitDaemon(room: string): Promise<{ port: number; close: () => Promise<void> }> {
  const args = ["daemon", "--verbose", "--reuseaddr", "--export-all", "--enable=receive-pack"];
  const { port, child } = await onFreePort("Ready to rumble", (port) =>
    spawn("git", [...args, "--listen=127.0.0.1", `--port=${port}`, `--base-path=${room}`, room], {
      stdio: ["ignore", "ignore", "pipe"],
    }),
  );
  return { port, close: () => ended(child) };
}

/** A server, once it has said on standard error that it listens. */
export async function onFreePort(
  ready: string,
  start: (port: number) => ChildProcess,
): Promise<{ port: number; child: ChildProcess }> {
  // Somebody else may take the port between our look and its start.
  for (let tries = 0; tries < 5; tries++) {
    const port = await freePort();
    const child = start(port);
    if (await says(child, ready)) return { port, child };
  }
  throw new Error(`nobody says "${ready}", on any port`);
}

/** Whether a server says so before it ends. */
function says(server: ChildProcess, ready: string): Promise<boolean> {
  return new Promise((resolve) => {
    let said = "";
    server.once("close", () => resolve(false));
    server.stderr!.on("data", (chunk: Buffer) => {
      if (said.length < 10_000) said += chunk;
      if (said.includes(ready)) resolve(true);
    });
  });
}

async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const over = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 3_000);
  await over;
  clearTimeout(timer);
}
