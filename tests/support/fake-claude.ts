import * as fs from "node:fs";
import * as path from "node:path";

/** What a fake Claude Code does wrong. `hangs`, `mute` and `foreign` never get to a tool. */
export type Manner = "well" | "hookless" | "deaf" | "mute" | "foreign" | "hangs";

/**
 * A program `claude` in a folder, which speaks with its model and its hooks as Claude Code does, except for its manner.
 * It writes what it sees of the world into `witness`.
 */
export function fakeClaude(folder: string, manner: Manner, witness: string): void {
  const text = `#!/usr/bin/env node
const [MANNER, WITNESS] = ${JSON.stringify([manner, witness])};
${BODY}`;
  fs.writeFileSync(path.join(folder, "claude"), text, { mode: 0o755 });
}

const BODY = `
const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
if (process.argv[2] === "--version") {
  console.log("9.8.7 (fake)");
  process.exit(0);
}
const prompt = process.argv[process.argv.indexOf("-p") + 1];
const post = (path, body) =>
  fetch(process.env.ANTHROPIC_BASE_URL + path, { method: "POST", body: JSON.stringify(body) });

function hook(event, about) {
  if (MANNER === "hookless") return null;
  const { hooks } = JSON.parse(fs.readFileSync(".claude/settings.local.json", "utf8"));
  const base = { hook_event_name: event, session_id: "fake", cwd: process.cwd(), ...about };
  for (const { matcher, hooks: some } of hooks[event] ?? []) {
    if (matcher && about.tool_name && !new RegExp("^(?:" + matcher + ")$").test(about.tool_name)) continue;
    for (const { command, args } of some) {
      const [file, words] = args ? [command, args] : ["/bin/sh", ["-c", command]];
      const { status, stdout, stderr } = spawnSync(file, words, { input: JSON.stringify(base), encoding: "utf8" });
      const said = stdout.startsWith("{") ? JSON.parse(stdout).hookSpecificOutput : null;
      if (said?.permissionDecision === "deny") return said.permissionDecisionReason;
      if (status === 2) return stderr;
    }
  }
  return null;
}

function use(tool_name, tool_input) {
  if (tool_name === "Read") return fs.readFileSync(tool_input.file_path, "utf8");
  const denied = hook("PreToolUse", { tool_name, tool_input });
  if (denied !== null && MANNER !== "deaf") return denied;
  const { file_path, content, old_string, new_string } = tool_input;
  const text = content ?? fs.readFileSync(file_path, "utf8").replace(old_string, new_string);
  fs.writeFileSync(file_path, text);
  hook("PostToolUse", { tool_name, tool_input });
  return "done";
}

async function main() {
  const child = MANNER === "hangs" ? spawn(process.execPath, ["-e", "setTimeout(() => {}, 600_000)"]) : null;
  const { env, pid } = process;
  fs.writeFileSync(WITNESS + ".part", JSON.stringify({ env, pid, child: child?.pid }));
  fs.renameSync(WITNESS + ".part", WITNESS);
  if (child) return;
  if (MANNER === "mute") return console.log("please log in");
  if (MANNER === "foreign") return post("/v9/thoughts", { prompt });
  const messages = [{ role: "user", content: prompt }];
  const tools = ["Read", "Write", "Edit"].map((name) => ({ name }));
  for (;;) {
    const { content } = await (await post("/v1/messages", { model: "m", tools, messages })).json();
    const calls = content.filter(({ type }) => type === "tool_use");
    if (calls.length === 0) break;
    const results = calls.map(({ name, input }) => ({ type: "tool_result", content: use(name, input) }));
    messages.push({ role: "user", content: results });
  }
  hook("Stop", {});
  hook("SessionEnd", { reason: "other" });
}
main();
`;
