/** What opencode loads, as `plugin.ts` completes it: it throws what the guard refuses. */
export const OPENCODE_PLUGIN = `import { spawn } from "node:child_process";

const CALLS = THE_CALLS;

THE_PASS

// By subagent's session, the one that a person has opened.
const roots = new Map();

function family(sessionID) {
  const parentID = roots.get(sessionID);
  return parentID === undefined ? { sessionID } : { sessionID, parentID, childID: sessionID };
}

export const Cotenant = async ({ directory, client }) => {
  // Where nobody looks at a terminal there is nothing to show it on.
  const show = (message, duration) => {
    const toast = client?.tui?.showToast({ body: { message, variant: "info", duration } });
    Promise.resolve(toast).catch(() => {});
  };
  const tell = async (event, sessionID, tool) => {
    const call = CALLS[event];
    if (call === undefined || sessionID === undefined) return "";
    if (tool !== undefined && !new RegExp(\`^(?:\${call.tools})$\`).test(tool.tool)) return "";
    const input = { event, ...family(sessionID), directory, ...tool };
    const { status, out, err } = await pass(call, input, directory, show);
    if (status === 2) throw new Error(err.trim() || "refused by cotenant");
    return out.trim();
  };
  return {
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      await tell("tool.execute.before", sessionID, { tool, callID, args, showsWaits: true });
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      const said = await tell("tool.execute.after", sessionID, { tool, callID, args });
      if (said !== "" && typeof output?.output === "string") output.output += \`\\n\${said}\`;
    },
    "shell.env": async ({ sessionID }, output) => {
      if (sessionID !== undefined) output.env.OPENCODE_SESSION_ID = roots.get(sessionID) ?? sessionID;
    },
    "chat.message": async ({ sessionID }) => {
      await tell("chat.message", sessionID).catch(() => {});
    },
    event: async ({ event }) => {
      const about = event.properties ?? {};
      const { id, parentID } = about.info ?? {};
      if (id !== undefined && parentID != null) roots.set(id, roots.get(parentID) ?? parentID);
      await tell(event.type, about.sessionID ?? about.info?.id).catch(() => {});
    },
  };
};
`;
