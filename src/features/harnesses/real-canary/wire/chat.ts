import { callsOf, type Json, newId, sendJson, startEvents, textOf, type Wire, wordsOf } from "./wire";

/** OpenAI's Chat Completions: opencode and Copilot with a provider of one's own. */
export const chat: Wire = {
  matches: (path) => path.endsWith("/chat/completions"),
  hear(body) {
    const texts = (wanted: string): string[] =>
      body.messages.filter(({ role }: Json) => role === wanted).map(({ content }: Json) => textOf(content));
    return {
      said: texts("user"),
      results: texts("tool"),
      tools: (body.tools ?? []).map(({ function: offered, type }: Json) => offered?.name ?? type),
    };
  },
  say(turn, { body }, response) {
    const base = { id: newId("chatcmpl"), created: Math.floor(Date.now() / 1000), model: body.model };
    const tool_calls = callsOf(turn).map(({ tool, input }, index) => ({
      index,
      id: newId("call"),
      type: "function",
      function: { name: tool, arguments: JSON.stringify(input) },
    }));
    const isCall = tool_calls.length > 0;
    const message = {
      role: "assistant",
      content: wordsOf(turn),
      ...(isCall ? { tool_calls } : {}),
    };
    const finish_reason = isCall ? "tool_calls" : "stop";
    const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
    if (body.stream !== true) {
      const choices = [{ index: 0, message, finish_reason }];
      return sendJson(response, { ...base, object: "chat.completion", choices, usage });
    }
    const send = startEvents(response, false);
    const chunk = (delta: Json, finish: string | null) => {
      const choices = [{ index: 0, delta, finish_reason: finish }];
      send({ ...base, object: "chat.completion.chunk", choices });
    };
    chunk(message, null);
    chunk({}, finish_reason);
    send({ ...base, object: "chat.completion.chunk", choices: [], usage });
    response.end("data: [DONE]\n\n");
  },
};
