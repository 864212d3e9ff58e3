import type { ServerResponse } from "node:http";
import type { ToolCall, Turn } from "../conversation";

/** What a harness says in one request. */
interface Heard {
  /** Everything that the user, or a hook in the user's name, has said. */
  readonly said: readonly string[];
  /** What came of each tool so far, in the order of the calls. */
  readonly results: readonly string[];
  /** Names of the tools on offer. Requests without any are for titles and summaries. */
  readonly tools: readonly string[];
}

/** One protocol between a harness and its model. */
export interface Wire {
  matches(path: string): boolean;
  hear(body: Json): Heard;
  say(turn: Turn, request: { readonly body: Json; readonly path: string }, response: ServerResponse): void;
}

// biome-ignore lint/suspicious/noExplicitAny: foreign documents, of which only a few fields are looked at.
export type Json = any;

let serial = 0;

export function newId(prefix: string): string {
  return `${prefix}_${process.pid}_${++serial}`;
}

export function callsOf(turn: Turn): readonly ToolCall[] {
  return "calls" in turn ? turn.calls : [];
}

export function wordsOf(turn: Turn): string {
  return "words" in turn ? turn.words : "";
}

/** Content is a string, or a list of blocks some of which have text; what should be secret is not, without a provider. */
export function textOf(content: Json): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content))
    return content.map((block) => block.text ?? block.encrypted_content ?? "").join("\n");
  return content === undefined || content === null ? "" : JSON.stringify(content);
}

export function sendJson(response: ServerResponse, document: Json): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(document));
}

/** Starts a stream of server-sent events; some protocols name each event by its `type`. */
export function startEvents(response: ServerResponse, areNamed: boolean): (event: Json) => void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  return (event) => {
    const name = areNamed ? `event: ${event.type}\n` : "";
    response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
  };
}
