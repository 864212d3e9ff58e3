import type { Report } from "../features/guard/report";
import type { HarnessName } from "../identity/harness";
import type { Holder } from "../kernel/lease";
import type { Platform } from "../platform/platform";
import type { Hook } from "./guard-worlds";
import type { KnownSession, KnownSessions } from "./known-sessions";
import { environmentOf, peerProcess } from "./peer-process";

/**
 * Who is behind an event that comes without a hook: the process that the session's hooks have shown, else the one at the other end
 * of the connection, else nobody who can be seen, whose leases last as long as it is heard of.
 */
export class HttpCallers {
  constructor(
    private readonly platform: Platform,
    private readonly sessions: KnownSessions,
  ) {}

  known(harness: HarnessName, sessionId: string | null): KnownSession | null {
    return sessionId === null ? null : this.sessions.find(harness, sessionId);
  }

  async hookOf(
    harness: HarnessName,
    report: Report | null,
    peerPort: number,
    ownPort: number,
  ): Promise<Hook> {
    const { processes } = this.platform;
    const sessionId = report?.sessionId ?? null;
    const session = (await this.#living(harness, sessionId)) ?? (await this.#seen(peerPort, ownPort));
    if (sessionId !== null && session.harness.startTime !== "")
      this.sessions.remember(harness, sessionId, session);
    // What a command starts is no older than this.
    const self = { ...processes.self(), startTime: await processes.startTimeNow() };
    return { self, parentPid: 0, harnessPid: null, cwd: "/", ...session };
  }

  async #living(harness: HarnessName, sessionId: string | null): Promise<KnownSession | null> {
    const known = this.known(harness, sessionId);
    if (known === null) return null;
    return (await this.platform.processes.liveness(known.harness)) === "dead" ? null : known;
  }

  async #seen(peerPort: number, ownPort: number): Promise<KnownSession> {
    const { processes } = this.platform;
    const pid = peerProcess(peerPort, ownPort);
    const harness = pid === null ? null : await processes.identify(pid);
    if (harness === null) return { harness: this.#nobody(), env: process.env };
    return { harness, env: environmentOf(harness.pid) ?? process.env };
  }

  /** Of no namespace that anybody could look into: neither alive nor dead (PROTOCOL 12). */
  #nobody(): Holder {
    return { ...this.platform.processes.self(), pid: 0, startTime: "", pidNamespace: "unseen" };
  }
}
