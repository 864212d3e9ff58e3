import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as http from "node:http";
import type * as net from "node:net";
import * as path from "node:path";
import { needTool } from "../house/need-tool";
import { afterEveryTest } from "./after-tests";
import { FaultyProxy as AnyProxy, ended, gitDaemon, onFreePort } from "./network";
import { scratch } from "./scratch";

const open: (() => Promise<void> | void)[] = [];
afterEveryTest(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** A repository that several machines push to, served in all the ways Git knows. */
export class Hub {
  readonly path: string;
  readonly room: string;

  constructor(objectFormat: "sha1" | "sha256" = "sha1", room = scratch("cotenant-hub")) {
    this.room = room;
    this.path = path.join(this.room, "hub.git");
    execFileSync("git", ["init", "--quiet", "--bare", `--object-format=${objectFormat}`, this.path]);
    this.git("config", "http.receivepack", "true");
  }

  git(...args: string[]): string {
    return execFileSync("git", args, { cwd: this.path, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  refs(prefix = "refs/"): Record<string, string> {
    const text = this.git("for-each-ref", "--format=%(refname) %(objectname)", prefix);
    return Object.fromEntries(
      text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => line.split(" ") as [string, string]),
    );
  }

  head(branch: string): string {
    return this.git("rev-parse", `refs/heads/${branch}`).trim();
  }

  claim(id: string, prefix = "refs/cotenant/claims/"): Record<string, unknown> {
    return recordIn(this.git("log", "-1", "--format=%B", `${prefix}${id}`));
  }

  /** Every record that a claim ever had, oldest first: the ledger's own history. */
  history(id: string): Record<string, unknown>[] {
    const text = this.git("log", "--reverse", "--format=%B%x00", `refs/cotenant/claims/${id}`);
    return text
      .split("\0")
      .filter((message) => message.trim() !== "")
      .map(recordIn);
  }

  subjects(id: string): string[] {
    return this.git("log", "--reverse", "--format=%s", `refs/cotenant/claims/${id}`).trim().split("\n");
  }

  issue(id: string, branch = "cotenant-sync"): Record<string, unknown> {
    return JSON.parse(this.git("show", `${branch}:.cotenant/issues/${id}/issue.json`));
  }

  /** A hook of the server. */
  hook(name: string, script: string): void {
    const file = path.join(this.path, "hooks", name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  /** `git://`, by Git's own daemon. Answers its port. */
  async daemon(): Promise<number> {
    const { port, close } = await gitDaemon(this.room);
    open.push(close);
    return port;
  }

  /** Smart HTTP, by Git's own CGI. `login`: the only pair that is let in. */
  async http(login: string | null = null): Promise<number> {
    const server = http.createServer((request, response) => this.#cgi(request, response, login));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    open.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return (server.address() as net.AddressInfo).port;
  }

  #cgi(request: http.IncomingMessage, response: http.ServerResponse, login: string | null): void {
    const given = Buffer.from(
      (request.headers.authorization ?? "").replace(/^Basic /, ""),
      "base64",
    ).toString();
    if (login !== null && given !== login) {
      response.writeHead(401, { "WWW-Authenticate": 'Basic realm="hub"' }).end();
      return;
    }
    const { pathname, search } = new URL(request.url ?? "/", "http://localhost");
    const child = spawn("git", ["http-backend"], {
      env: {
        ...process.env,
        GIT_PROJECT_ROOT: this.room,
        GIT_HTTP_EXPORT_ALL: "1",
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        CONTENT_LENGTH: request.headers["content-length"] ?? "",
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
        GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
        REMOTE_USER: "somebody",
        REMOTE_ADDR: "127.0.0.1",
      },
      stdio: ["pipe", "pipe", "ignore"],
    });
    child.stdin.on("error", () => {});
    request.pipe(child.stdin);
    let head = Buffer.alloc(0);
    let isBody = false;
    child.stdout.on("data", (chunk: Buffer) => {
      if (isBody) return void response.write(chunk);
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\r\n\r\n");
      if (end === -1) return;
      isBody = true;
      const headers: Record<string, string> = {};
      for (const line of head.subarray(0, end).toString().split("\r\n")) {
        const colon = line.indexOf(":");
        headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
      }
      const { status = "200", ...rest } = headers;
      response.writeHead(Number.parseInt(status, 10), rest);
      response.write(head.subarray(end + 4));
    });
    child.stdout.on("end", () => response.end());
  }

  /** SSH, by Debian's server as this user. */
  async ssh(): Promise<{ port: number; command: string; user: string }> {
    needTool("/usr/sbin/sshd");
    const room = path.join(this.room, "ssh");
    fs.mkdirSync(room, { mode: 0o700 });
    const key = (name: string) => {
      execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", path.join(room, name)]);
      return path.join(room, name);
    };
    const [host, own] = [key("host"), key("own")];
    fs.copyFileSync(`${own}.pub`, path.join(room, "authorized"));
    fs.mkdirSync("/run/sshd", { recursive: true });
    const settings = [
      "ListenAddress 127.0.0.1",
      `HostKey ${host}`,
      `AuthorizedKeysFile ${path.join(room, "authorized")}`,
      "StrictModes no",
      "UsePAM no",
      "PasswordAuthentication no",
      "PermitRootLogin yes",
      `PidFile ${path.join(room, "pid")}`,
    ];
    fs.writeFileSync(path.join(room, "sshd_config"), `${settings.join("\n")}\n`);
    const args = ["-D", "-e", "-f", path.join(room, "sshd_config")];
    const { port, child } = await onFreePort("Server listening", (port) =>
      spawn("/usr/sbin/sshd", [...args, "-p", String(port)], { stdio: ["ignore", "ignore", "pipe"] }),
    );
    open.push(() => ended(child));
    const known = path.join(room, "known");
    fs.writeFileSync(known, `[127.0.0.1]:${port} ${fs.readFileSync(`${host}.pub`, "utf8")}`);
    const command = `ssh -F none -i ${own} -o IdentitiesOnly=yes -o UserKnownHostsFile=${known} -p ${port}`;
    return { port, command, user: execFileSync("id", ["-un"], { encoding: "utf8" }).trim() };
  }
}

function recordIn(message: string): Record<string, unknown> {
  return JSON.parse(message.trimEnd().split("\n").at(-1)!);
}

/** The same proxy, closed after the test. */
export const FaultyProxy = {
  async to(target: number): Promise<AnyProxy> {
    const proxy = await AnyProxy.to(target);
    open.push(() => proxy.close());
    return proxy;
  },
};
