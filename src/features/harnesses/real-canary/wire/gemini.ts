import { callsOf, type Json, newId, sendJson, startEvents, type Wire, wordsOf } from "./wire";

/** Google's generateContent: Gemini CLI. */
export const gemini: Wire = {
  matches: (path) => /:(?:streamG|g)enerateContent$/.test(path),
  hear(body) {
    const parts: Json[] = (body.contents ?? []).flatMap(({ role, parts: some }: Json) =>
      (some ?? []).map((part: Json) => ({ ...part, role })),
    );
    return {
      said: parts.filter(({ role, text }) => role === "user" && text !== undefined).map(({ text }) => text),
      results: parts
        .filter(({ functionResponse }) => functionResponse !== undefined)
        .map(({ functionResponse }) => JSON.stringify(functionResponse.response)),
      tools: (body.tools ?? []).flatMap(({ functionDeclarations }: Json) =>
        (functionDeclarations ?? []).map(({ name }: Json) => name),
      ),
    };
  },
  say(turn, { path }, response) {
    const calls = callsOf(turn).map(({ tool, input }) => ({
      functionCall: { id: newId("call"), name: tool, args: input },
      // The harness refuses calls that a thinking model did not sign.
      thoughtSignature: "c2ln",
    }));
    const document = {
      candidates: [
        {
          content: { role: "model", parts: calls.length > 0 ? calls : [{ text: wordsOf(turn) }] },
          finishReason: "STOP",
          index: 0,
        },
      ],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
      modelVersion: "scripted",
      responseId: newId("resp"),
    };
    if (!path.includes(":stream")) return sendJson(response, document);
    startEvents(response, false)(document);
    response.end();
  },
};
