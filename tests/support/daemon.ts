import * as fs from "node:fs";
import * as net from "node:net";
import * as path from "node:path";
import { hookPlace } from "../../src/daemon/hook-place";
import { NodeLocks } from "../../src/platform/node/locks";
import { startTimeOf } from "../../src/platform/node/processes";
import { afterEveryTest } from "./after-tests";
import { until } from "./program";
import type { TestRepo } from "./repo";

const started = new Set<TestRepo>();
afterEveryTest(() => {
  for (const repo of started) {
    const pid = recordOf(repo)?.pid;
    if (pid !== undefined && startTimeOf(pid) === recordOf(repo)!.start_time) process.kill(pid, "SIGKILL");
  }
  started.clear();
});

export interface DaemonRecordJson {
  readonly pid: number;
  readonly start_time: string;
  readonly socket: string;
  readonly token: string;
  readonly build: string;
}

export function recordFile(repo: TestRepo): string {
  return `${repo.root}/.git/cotenant/daemon/${process.getuid!()}.json`;
}

/** What a daemon leaves for hooks. */
export function hookFile(repo: TestRepo, ending: "sh" | "curl" | "json" | "http" | "tried"): string {
  const { HOME: home = null } = process.env;
  return `${hookPlace(repo.control, { env: process.env, home })!.base}.${ending}`;
}

/** Null where none is to be found. */
export function recordOf(repo: TestRepo): DaemonRecordJson | null {
  try {
    return JSON.parse(fs.readFileSync(recordFile(repo), "utf8")) as DaemonRecordJson;
  } catch {
    return null;
  }
}

/** Whoever starts a daemon in a test has it ended afterwards. */
export function looksAfterDaemon(repo: TestRepo): void {
  started.add(repo);
}

export async function startDaemon(repo: TestRepo): Promise<DaemonRecordJson> {
  looksAfterDaemon(repo);
  const ran = await repo.start("agent:starter", ["daemon", "start"]).done;
  if (ran.status !== 0) throw new Error(String(ran));
  return recordOf(repo)!;
}

/** What a running daemon has done for harnesses. */
export async function guardCounts(repo: TestRepo): Promise<Record<string, unknown>> {
  const { data } = await repo.start("agent:asker", ["daemon", "status", "--json"]).done;
  return (data["daemon"] as { guard: Record<string, unknown> }).guard;
}

/**
 * Sends SIGSTOP at an instant when nobody holds the store's mutex. A process that is stopped while it holds the mutex holds up
 * everybody, daemon or not; a line of the log can be seen while its writer still has it.
 */
export async function freezeDaemon(repo: TestRepo, { pid }: DaemonRecordJson): Promise<void> {
  await until("it is stopped outside of the critical section", () => {
    process.kill(pid, "SIGSTOP");
    if (isStopped(pid) && isMutexFree(repo)) return true;
    process.kill(pid, "SIGCONT");
    return false;
  });
}

/** The signal has arrived: until then the process may still enter the critical section. */
function isStopped(pid: number): boolean {
  for (let look = 0; look < 1_000; look++) {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    if (stat.slice(stat.lastIndexOf(")")).startsWith(") T")) return true;
  }
  return false;
}

function isMutexFree(repo: TestRepo): boolean {
  const file = path.join(repo.control, "locks/claims.lock");
  if (!fs.existsSync(file)) return true;
  const fd = fs.openSync(file, "r+");
  try {
    return new NodeLocks().tryLock(fd);
  } finally {
    fs.closeSync(fd);
  }
}

export async function isGone({ pid, start_time }: DaemonRecordJson): Promise<void> {
  await until("the daemon is gone", () => startTimeOf(pid) !== start_time);
}

/** A client of our own, which says what it likes. */
export class RawClient {
  readonly socket: net.Socket;
  readonly heard: Record<string, unknown>[] = [];
  isClosed = false;
  #rest = "";

  constructor(path: string) {
    this.socket = net.connect(path);
    this.socket.setEncoding("utf8");
    this.socket.on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop()!;
      for (const line of lines) this.heard.push(JSON.parse(line) as Record<string, unknown>);
    });
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.isClosed = true;
    });
  }

  say(text: string | Uint8Array): void {
    this.socket.write(text);
  }

  send(id: number, method: string, params: object): void {
    this.say(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
  }

  hello({ token }: DaemonRecordJson): void {
    this.send(0, "hello", { token, protocol: 1, build: "none", clock_id: "" });
  }

  /** The answer to a request, whichever comes first. */
  async answer(id: number): Promise<Record<string, unknown>> {
    return until(`there is an answer to ${id}`, () => this.heard.find((one) => one["id"] === id) ?? false);
  }

  async ask(id: number, method: string, params: object): Promise<Record<string, unknown>> {
    this.send(id, method, params);
    return this.answer(id);
  }
}
