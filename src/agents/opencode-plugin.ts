import { HARNESSES, hookArguments } from "../guard/harness";
import { type Program, programIn, shellLine } from "./command-line";

const BEGIN =
  "// cotenant: by 'cotenant agent install opencode'; 'cotenant agent uninstall opencode' removes this file\n";

/**
 * The program that opencode loads. It passes each event on to the guard, as one JSON object on standard input, and throws
 * what the guard refuses.
 */
export function pluginText(program: Program): string {
  const calls = HARNESSES.opencode.events.map((event) => {
    const { name, matcher, timeoutSecs } = event;
    const line = shellLine(program, hookArguments("opencode", event), ' --pid "$1"');
    return [name, { tools: matcher, timeoutSecs, line }];
  });
  return `${BEGIN}${BODY.replace("THE_CALLS", () => JSON.stringify(Object.fromEntries(calls), null, 2))}`;
}

/** Whether a file is one of ours, of whatever version. */
export function isPlugin(text: string): boolean {
  return text.startsWith("// cotenant: by 'cotenant agent install");
}

export function programOfPlugin(text: string): NonNullable<Program> | null {
  const found = /"line": ("(?:[^"\\]|\\.)*")/.exec(text)?.[1];
  return found === undefined ? null : programIn(JSON.parse(found) as string);
}

const BODY = `import { spawn } from "node:child_process";

const CALLS = THE_CALLS;

function pass(call, input, cwd) {
  return new Promise((resolve) => {
    const words = ["-c", call.line, "cotenant", String(process.pid)];
    const child = spawn("/bin/sh", words, { cwd, timeout: call.timeoutSecs * 1000 });
    let [out, err] = ["", ""];
    child.stdout.on("data", (chunk) => (out += chunk));
    child.stderr.on("data", (chunk) => (err += chunk));
    child.stdin.on("error", () => {});
    child.on("error", () => resolve({ status: null, out: "", err: "" }));
    child.on("close", (status) => resolve({ status, out, err }));
    child.stdin.end(JSON.stringify(input));
  });
}

// By subagent's session, the one that a person has opened.
const roots = new Map();

function family(sessionID) {
  const parentID = roots.get(sessionID);
  return parentID === undefined ? { sessionID } : { sessionID, parentID, childID: sessionID };
}

export const Cotenant = async ({ directory }) => {
  const tell = async (event, sessionID, tool) => {
    const call = CALLS[event];
    if (call === undefined || sessionID === undefined) return "";
    if (tool !== undefined && !new RegExp(\`^(?:\${call.tools})$\`).test(tool.tool)) return "";
    const { status, out, err } = await pass(call, { event, ...family(sessionID), directory, ...tool }, directory);
    if (status === 2) throw new Error(err.trim() || "refused by cotenant");
    return out.trim();
  };
  return {
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      await tell("tool.execute.before", sessionID, { tool, callID, args });
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
