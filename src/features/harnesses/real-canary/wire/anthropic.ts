import { callsOf, type Json, newId, sendJson, startEvents, textOf, type Wire, wordsOf } from "./wire";

/** Anthropic's Messages: Claude Code. */
export const anthropic: Wire = {
  matches: (path) => path.endsWith("/messages"),
  hear(body) {
    const blocks: Json[] = body.messages.flatMap(({ role, content }: Json) =>
      (Array.isArray(content) ? content : [{ type: "text", text: content }]).map((block: Json) => ({
        ...block,
        role,
      })),
    );
    return {
      said: blocks.filter(({ role, type }) => role === "user" && type === "text").map(({ text }) => text),
      results: blocks.filter(({ type }) => type === "tool_result").map(({ content }) => textOf(content)),
      tools: (body.tools ?? []).map(({ name }: Json) => name),
    };
  },
  say(turn, { body }, response) {
    const calls = callsOf(turn).map(({ tool, input }) => ({
      type: "tool_use",
      id: newId("toolu"),
      name: tool,
      input,
    }));
    const content: Json[] = calls.length > 0 ? calls : [{ type: "text", text: wordsOf(turn) }];
    const message = {
      id: newId("msg"),
      type: "message",
      role: "assistant",
      model: body.model,
      content,
      stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 10 },
    };
    if (body.stream !== true) return sendJson(response, message);
    const send = startEvents(response, true);
    send({ type: "message_start", message: { ...message, content: [], stop_reason: null } });
    for (const [index, block] of content.entries()) {
      const isCall = block.type === "tool_use";
      send({
        type: "content_block_start",
        index,
        content_block: isCall ? { ...block, input: {} } : { ...block, text: "" },
      });
      const delta = isCall
        ? { type: "input_json_delta", partial_json: JSON.stringify(block.input) }
        : { type: "text_delta", text: block.text };
      send({ type: "content_block_delta", index, delta });
      send({ type: "content_block_stop", index });
    }
    const { stop_reason, usage } = message;
    send({ type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage });
    send({ type: "message_stop" });
    response.end();
  },
};
