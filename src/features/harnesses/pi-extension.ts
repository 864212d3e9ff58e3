/** What pi loads, as `plugin.ts` completes it. It sends the same form as opencode's plugin. */
export const PI_EXTENSION = `import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const CALLS = THE_CALLS;

THE_PASS

// As pi itself reads the name of a file.
function place(name, cwd) {
  const plain = name.replace(/[\\u00A0\\u2000-\\u200A\\u202F\\u205F\\u3000]/g, " ").replace(/^@/, "");
  if (/^~(?=\\/|$)/.test(plain)) return join(homedir(), plain.slice(1));
  return resolve(cwd, /^file:\\/\\//.test(plain) ? fileURLToPath(plain) : plain);
}

export default function (pi) {
  const tell = async (event, { cwd, sessionManager, hasUI, ui }, about) => {
    const call = CALLS[event];
    if (about !== undefined && !new RegExp(\`^(?:\${call.tools})$\`).test(about.toolName)) return {};
    const { toolName, toolCallId, input } = about ?? {};
    const args = typeof input?.path === "string" ? { ...input, path: place(input.path, cwd) } : input;
    const tool = about === undefined ? {} : { tool: toolName, callID: toolCallId, args };
    const sessionID = sessionManager.getSessionId();
    let isShown = false;
    const show = (message) => {
      isShown = hasUI === true;
      if (isShown) ui.setStatus("cotenant", message);
    };
    const waits = event === "tool_call" ? { showsWaits: true } : {};
    const answer = await pass(call, { event, sessionID, directory: cwd, ...tool, ...waits }, cwd, show);
    if (isShown) ui.setStatus("cotenant", undefined);
    return answer;
  };
  pi.on("tool_call", async (event, ctx) => {
    const { status, err } = await tell("tool_call", ctx, event);
    return status === 2 ? { block: true, reason: err.trim() || "refused by cotenant" } : undefined;
  });
  pi.on("tool_result", async (event, ctx) => {
    const { out = "" } = await tell("tool_result", ctx, event);
    const text = out.trim();
    return text === "" ? undefined : { content: [...event.content, { type: "text", text }] };
  });
  for (const name of ["before_agent_start", "agent_settled", "session_shutdown"])
    pi.on(name, async ({ reason }, ctx) => {
      // Extensions are loaded anew: the session goes on.
      if (reason !== "reload") await tell(name, ctx);
    });
}
`;
