import * as fs from "node:fs";
import type { Answer } from "../features/guard/answers";
import { quickAnswer } from "../features/guard/entry/quick-answer";
import { deadlineMs, type HookEvent, hookArguments } from "../features/guard/harness";
import { type ReadEvent, type Report, readEvent } from "../features/guard/report";
import { answerEvent } from "../features/guard/run";
import { whoIs } from "../features/guard/who";
import type { World } from "../features/guard/world";
import type { HarnessName } from "../identity/harness";
import { startTimeOf } from "../platform/node/processes";
import type { Platform, ProcessIdentity } from "../platform/platform";
import { TooLate } from "../store/submission";
import { guardPatienceMs, SEPARATOR, WHOLE } from "./guard-files";
import type { GuardPost, Handling, Reply } from "./guard-http";
import { type GuardRequest, NotForUs, readGuardRequest, readHttpEvent } from "./guard-request";
import { type Hook, worldFor } from "./guard-worlds";
import { HttpCallers } from "./http-callers";
import { KnownSessions } from "./known-sessions";
import { OpenStores } from "./open-stores";
import type { WaitingClient } from "./waiting-client";

export interface GuardServiceParts {
  readonly platform: Platform;
  /** What hooks would run without us; another one may answer otherwise. */
  readonly program: string;
  /** Whether the program is the one that is running; looks after it where it is not. */
  isCurrent(): boolean;
  /** Somebody has asked for something. */
  onUse(): void;
}

interface Counts {
  /** Answered, all in all. */
  events: number;
  /** Of these, by what the check before had found out. */
  quick: number;
  /** Not answered: the hook ran the program, or refused. */
  declined: number;
}

/**
 * Answers harnesses' events as the program would: from what its hook could see, by the same code. What cannot be answered just so
 * is declined, and the hook runs the program.
 */
export class GuardService {
  readonly #stores: OpenStores;
  readonly #sessions = new KnownSessions();
  readonly #callers: HttpCallers;
  readonly #counts: Counts = { events: 0, quick: 0, declined: 0 };
  readonly #byHarness = new Map<HarnessName, number>();
  #underWay = 0;

  constructor(private readonly parts: GuardServiceParts) {
    this.#stores = new OpenStores(parts.platform);
    this.#callers = new HttpCallers(parts.platform, this.#sessions);
  }

  status() {
    return { ...this.#counts, by_harness: Object.fromEntries(this.#byHarness), under_way: this.#underWay };
  }

  /** Over the socket: from a hook that can do without us. */
  handle(post: GuardPost): Handling {
    return this.#handling(() => {
      const request = readGuardRequest(post);
      this.#refuseOthers(request);
      const { harness, event, text, hook, harnessPid, env, cwd, limitSecs } = request;
      const patienceMs = guardPatienceMs(limitSecs);
      const call = { harness, event: event.name, patienceMs };
      const read = readEvent(call, { text });
      const report = reportIn(read);
      const asking = { env, cwd: () => cwd, parentPid: hook?.parentPid ?? 0, harnessPid, patienceMs };
      const quick = report === null ? null : quickAnswer(report, asking);
      const form = (answer: Answer) => inParts(spoken(harness, event, answer));
      if (quick !== null) return this.#counted(harness, true, form(quick));
      return (client) =>
        this.#work(harness, client, async () => {
          const found = await this.#hookOf(request);
          client.standsFor(() => isRunning(found.self));
          const world = worldFor(this.parts.platform, this.#stores, found, client);
          if (report?.sessionId != null) await this.#remember(world, report, report.sessionId);
          return form(await answerEvent(world, call, read));
        });
    });
  }

  /** Over loopback: from a harness that refuses where we do not answer. */
  handleHttp(post: GuardPost, ownPort: number): Handling {
    return this.#handling(() => {
      // Whatever it is, somebody has to answer; the next one may be the newer.
      this.parts.isCurrent();
      const { harness, event, text } = readHttpEvent(post);
      const patienceMs = deadlineMs(event);
      const call = { harness, event: event.name, patienceMs };
      const read = readEvent(call, { text });
      const report = reportIn(read);
      const caller = this.#callers.known(harness, report?.sessionId ?? null);
      const form = (answer: Answer) => asJson(event, spoken(harness, event, answer));
      if (caller !== null && report !== null) {
        const { env, harness: holder } = caller;
        const asking = { env, cwd: () => "/", parentPid: 0, harnessPid: holder.pid, patienceMs };
        const quick = quickAnswer(report, asking);
        if (quick !== null) return this.#counted(harness, true, form(quick));
      }
      return (client) =>
        this.#work(harness, client, async () => {
          const hook = await this.#callers.hookOf(harness, report, post.remotePort ?? 0, ownPort);
          const world = worldFor(this.parts.platform, this.#stores, hook, client);
          return form(await answerEvent(world, call, read));
        });
    });
  }

  #handling(handle: () => Handling): Handling {
    this.parts.onUse();
    try {
      return handle();
    } catch (error) {
      if (!(error instanceof NotForUs)) throw error;
      this.#counts.declined++;
      return { status: error.status, type: "text/plain", body: `${error.message}\n` };
    }
  }

  /** Another program, or another version of it, has rules of its own. */
  #refuseOthers({ program }: GuardRequest): void {
    if (!this.parts.isCurrent()) throw new NotForUs(409, "the program was replaced");
    if (program !== this.parts.program && realPath(program) !== realPath(this.parts.program))
      throw new NotForUs(409, "this is another program");
  }

  async #hookOf({ hook, harnessPid, env, cwd }: GuardRequest): Promise<Hook> {
    const { processes } = this.parts.platform;
    const self = await processes.identify(hook?.pid ?? harnessPid ?? 0);
    // Its parent has died, or it is in another container: the program knows what that means.
    const isOdd = hook !== null && (await processes.ancestry(hook.pid))?.parentPid !== hook.parentPid;
    if (self === null || isOdd) throw new TooLate("the hook is not where it says");
    return { self, parentPid: hook?.parentPid ?? 0, harnessPid, harness: null, env, cwd };
  }

  /** Events of the same session may come without a hook that shows where they are from. */
  async #remember(world: World, report: Report, sessionId: string): Promise<void> {
    const { holder } = await whoIs(world, report);
    this.#sessions.remember(report.harness, sessionId, { harness: holder, env: world.env });
  }

  async #work(harness: HarnessName, client: WaitingClient, answer: () => Promise<Reply>): Promise<Reply> {
    this.#underWay++;
    try {
      const reply = await answer();
      if (!client.isWaiting()) throw new TooLate("nobody waits for it any more");
      return this.#counted(harness, false, reply);
    } catch (error) {
      this.#counts.declined++;
      throw error;
    } finally {
      this.#underWay--;
      if (this.#underWay === 0) this.#stores.tidy();
    }
  }

  #counted(harness: HarnessName, isQuick: boolean, reply: Reply): Reply {
    this.#counts.events++;
    this.#byHarness.set(harness, (this.#byHarness.get(harness) ?? 0) + 1);
    if (isQuick) this.#counts.quick++;
    return reply;
  }
}

function reportIn(event: ReadEvent): Report | null {
  return "report" in event ? event.report : null;
}

/** `guard stop` and `guard end` have no objection to anything. */
function spoken(harness: HarnessName, event: HookEvent, answer: Answer): Answer {
  const isCheck = hookArguments(harness, event)[1] === "check";
  return isCheck ? answer : { stdout: "", stderr: "", status: 0 };
}

/** For a shell to take apart: after whatever was sent to pass the time. */
function inParts({ stdout, stderr, status }: Answer): Reply {
  const parts = ["", String(status), stdout, stderr, WHOLE];
  const body = parts.map((part) => part.replaceAll(SEPARATOR, " ")).join(SEPARATOR);
  return { status: 200, type: "text/plain", body };
}

/** There is no status to exit with: what would be refused by it is refused in words. */
function asJson(event: HookEvent, { stdout, stderr, status }: Answer): Reply {
  const refusal = {
    hookSpecificOutput: {
      hookEventName: event.name,
      permissionDecision: "deny",
      permissionDecisionReason: stderr.trim(),
    },
  };
  const body = status === 2 ? `${JSON.stringify(refusal)}\n` : stdout;
  return { status: 200, type: "application/json", body };
}

/** Asked often: where a look costs a process, the number alone must do. */
function isRunning({ pid, startTime }: ProcessIdentity): boolean {
  if (process.platform === "linux") return startTimeOf(pid) === startTime;
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function realPath(path: string): string {
  try {
    return fs.realpathSync(path);
  } catch {
    return path;
  }
}
