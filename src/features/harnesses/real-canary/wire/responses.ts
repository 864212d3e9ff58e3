import type { ToolCall } from "../conversation";
import { callsOf, type Json, newId, sendJson, startEvents, textOf, type Wire, wordsOf } from "./wire";

/** OpenAI's Responses: Codex. */
export const responses: Wire = {
  matches: (path) => path.endsWith("/responses"),
  hear(body) {
    const items: Json[] = body.input;
    const offered = [
      ...(body.tools ?? []),
      ...items.flatMap(({ type, tools }) => (type === "additional_tools" ? tools : [])),
    ];
    return {
      said: items
        // What agents say to each other is a kind of its own.
        .filter(({ role, type }) => role === "user" || role === "developer" || type === "agent_message")
        .map(({ content }) => textOf(content)),
      results: items.filter(({ type }) => type?.endsWith("call_output")).map(({ output }) => textOf(output)),
      tools: offered.flatMap(({ name, type, tools }: Json) =>
        tools === undefined ? [name ?? type] : tools.map((inner: Json) => `${name}.${inner.name}`),
      ),
    };
  },
  say(turn, { body }, response) {
    const calls = callsOf(turn).map(callItem);
    const output = calls.length > 0 ? calls : [messageItem(wordsOf(turn))];
    const whole = {
      id: newId("resp"),
      object: "response",
      created_at: Math.floor(Date.now() / 1000),
      model: body.model,
      status: "completed",
      output,
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 10,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 20,
      },
    };
    if (body.stream !== true) return sendJson(response, whole);
    const send = startEvents(response, true);
    send({ type: "response.created", response: { ...whole, status: "in_progress", output: [] } });
    for (const [output_index, item] of output.entries()) {
      send({ type: "response.output_item.added", output_index, item: { ...item, status: "in_progress" } });
      send({ type: "response.output_item.done", output_index, item });
    }
    send({ type: "response.completed", response: whole });
    response.end();
  },
};

function callItem({ tool, input, isFreeform, namespace }: ToolCall): Json {
  const common = {
    call_id: newId("call"),
    name: tool,
    ...(namespace === undefined ? {} : { namespace }),
    status: "completed",
  };
  return isFreeform === true
    ? { type: "custom_tool_call", id: newId("ctc"), ...common, input }
    : { type: "function_call", id: newId("fc"), ...common, arguments: JSON.stringify(input) };
}

function messageItem(text: string): Json {
  const content = [{ type: "output_text", text, annotations: [] }];
  return { type: "message", id: newId("msg"), role: "assistant", status: "completed", content };
}
