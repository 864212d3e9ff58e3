import type { HarnessName } from "../../identity/harness";
import type { HookEvent } from "../guard/harness";
import { STATUS_MESSAGE } from "../guard/harness";
import type { HttpDoor } from "./command-line";

/** Harnesses whose HTTP hooks can be told to refuse when nobody answers. */
export const HTTP_HARNESSES: readonly HarnessName[] = ["claude"];

const HOST = "127.0.0.1";
const OURS = /^http:\/\/127\.0\.0\.1:(\d{1,5})\/guard\/[a-z]+\/[A-Za-z._]+$/;

/** What the harness must name as the host. */
export function httpHost({ port }: Pick<HttpDoor, "port">): string {
  return `${HOST}:${port}`;
}

/** Where nobody answers, nothing is written: Claude Code 2.1.295 and newer. */
export function httpHandler(
  harness: HarnessName,
  { name, timeoutSecs }: Pick<HookEvent, "name" | "timeoutSecs">,
  door: HttpDoor,
): object {
  return {
    type: "http",
    url: `http://${httpHost(door)}/guard/${harness}/${name}`,
    headers: { Authorization: `Bearer ${door.token}` },
    timeout: timeoutSecs,
    onFailure: "block",
    statusMessage: STATUS_MESSAGE,
  };
}

export function isOurUrl(url: string): boolean {
  return OURS.test(url);
}

/** The door that an entry, or a group of them, asks at. */
export function doorIn(entry: unknown): HttpDoor | null {
  const { hooks } = (entry ?? {}) as { hooks?: unknown };
  const handlers: readonly unknown[] = Array.isArray(hooks) ? hooks : [entry];
  for (const handler of handlers) {
    const { url, headers } = (handler ?? {}) as { url?: unknown; headers?: unknown };
    const port = typeof url === "string" ? OURS.exec(url)?.[1] : undefined;
    const { Authorization: shown } = (headers ?? {}) as { Authorization?: unknown };
    const token = typeof shown === "string" ? /^Bearer ([0-9a-f]+)$/.exec(shown)?.[1] : undefined;
    if (port !== undefined && token !== undefined) return { port: Number(port), token };
  }
  return null;
}
