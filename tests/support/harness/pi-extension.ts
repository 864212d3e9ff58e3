import { pathToFileURL } from "node:url";
import type { Stage } from "./dialect";

type Handler = (event: object, context: object) => Promise<unknown>;

/** Loads an extension as pi does; answers what fires an event, and what the extension says to it. */
export async function loadPiExtension(
  { root, session }: Stage,
  file: string,
  more: object = {},
): Promise<(name: string, event: object) => Promise<unknown>> {
  const handlers = new Map<string, Handler>();
  const { default: extend } = await import(pathToFileURL(file).href);
  extend({ on: (name: string, handler: Handler) => handlers.set(name, handler) });
  const context = { cwd: root, sessionManager: { getSessionId: () => session }, ...more };
  return (name, event) => handlers.get(name)!({ type: name, ...event }, context);
}
