import type { IncomingHttpHeaders } from "node:http";
import { HARNESSES, type HookEvent } from "../features/guard/harness";
import { isHarnessName } from "../features/guard/report";
import type { HarnessName } from "../identity/harness";
import type { Environment } from "../identity/repository";
import { SEPARATOR, SHELL_TYPE } from "./guard-files";
import type { GuardPost } from "./guard-http";
import { readExports } from "./shell-environment";

/** An event of a harness, with all that its hook could have looked at itself. */
export interface GuardRequest {
  readonly harness: HarnessName;
  readonly event: HookEvent;
  /** The hook's own process and the one that started it; null where the harness itself asks. */
  readonly hook: { readonly pid: number; readonly parentPid: number } | null;
  /** The harness, where it names itself. */
  readonly harnessPid: number | null;
  readonly cwd: string;
  readonly env: Environment;
  /** How long the harness waits for its hook. */
  readonly limitSecs: number;
  /** What the hook would run without us. */
  readonly program: string;
  /** As the harness wrote it. */
  readonly text: string;
}

/** What cannot be answered here: nothing was begun, and the hook goes without us. */
export class NotForUs extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** As hooks and plugins of ours ask over the socket. */
export function readGuardRequest({ harness, event: name, headers, body }: GuardPost): GuardRequest {
  const { known, event } = registeredEvent(harness, name);
  const limitSecs = whole(headers, "cotenant-limit", 3_600);
  const common = {
    harness: known,
    event,
    cwd: bracketed(headers, "cotenant-cwd"),
    limitSecs,
    program: bracketed(headers, "cotenant-program"),
  };
  if (headers["content-type"] === SHELL_TYPE) {
    const [pid, parentPid] = processes(headers);
    const { env, text } = fromShell(body);
    return { ...common, hook: { pid, parentPid }, harnessPid: null, env, text };
  }
  const harnessPid = whole(headers, "cotenant-harness", 2 ** 31);
  return { ...common, hook: null, harnessPid, ...fromPlugin(body) };
}

/** As a harness itself asks, over loopback: nothing but its event. */
export function readHttpEvent({ harness, event: name, headers, body }: GuardPost): {
  harness: HarnessName;
  event: HookEvent;
  text: string;
} {
  if (!/^application\/json\b/.test(headers["content-type"] ?? "")) throw new NotForUs(415, "send JSON");
  const { known, event } = registeredEvent(harness, name);
  return { harness: known, event, text: utf8(body) };
}

function registeredEvent(harness: string, name: string): { known: HarnessName; event: HookEvent } {
  if (!isHarnessName(harness)) throw new NotForUs(404, "there is no such harness");
  const event = HARNESSES[harness].events.find((one) => one.name === name);
  if (event === undefined) throw new NotForUs(404, "there is no such event");
  return { known: harness, event };
}

/** The environment as the shell prints it, and then the event. */
function fromShell(body: Buffer): { env: Environment; text: string } {
  const at = body.indexOf(SEPARATOR);
  if (at === -1) throw new NotForUs(400, "the event is missing");
  const env = readExports(utf8(body.subarray(0, at)));
  if (env === null) throw new NotForUs(400, "the environment cannot be read");
  return { env, text: utf8(body.subarray(at + 1)) };
}

function fromPlugin(body: Buffer): { env: Environment; text: string } {
  let said: unknown;
  try {
    said = JSON.parse(utf8(body));
  } catch {
    throw new NotForUs(400, "this is not JSON");
  }
  const { env, input } = (said ?? {}) as { env?: unknown; input?: unknown };
  if (typeof env !== "object" || env === null || typeof input !== "string")
    throw new NotForUs(400, "it needs env and input");
  const entries = Object.entries(env).filter(([, value]) => typeof value === "string");
  return { env: Object.assign(Object.create(null), Object.fromEntries(entries)), text: input };
}

/** What is not UTF-8 is the program's to make something of. */
function utf8(bytes: Uint8Array): string {
  try {
    return DECODER.decode(bytes);
  } catch {
    throw new NotForUs(400, "it is not in UTF-8");
  }
}

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function processes(headers: IncomingHttpHeaders): [pid: number, parentPid: number] {
  const found = /^([1-9]\d{0,9}) (\d{1,10})$/.exec(single(headers, "cotenant-process"));
  if (found === null) throw new NotForUs(400, "it needs a process");
  return [Number(found[1]), Number(found[2])];
}

function whole(headers: IncomingHttpHeaders, name: string, most: number): number {
  const text = single(headers, name);
  const value = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= most)) throw new NotForUs(400, `${name} must be a number`);
  return value;
}

/** In brackets: blanks at either end of a header's value get lost otherwise. Node reads headers byte by byte. */
function bracketed(headers: IncomingHttpHeaders, name: string): string {
  const found = /^\[(\/.*)\]$/.exec(single(headers, name));
  if (found === null) throw new NotForUs(400, `${name} must be a path in brackets`);
  return utf8(Buffer.from(found[1]!, "latin1"));
}

function single(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name];
  return typeof value === "string" ? value : "";
}
