import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ToolCall } from "../conversation";
import type { HeadlessProgram, TrialMachine } from "../headless";

/** How its model calls tools depends on the model's name. */
export interface CodexModel {
  readonly model: string;
  patch(text: string): ToolCall;
}

export const CODEX_MODEL: CodexModel = {
  // An unknown model gets no apply_patch.
  model: "gpt-5.5",
  patch: (input) => ({ tool: "apply_patch", isFreeform: true, input }),
};

export function headlessCodexWith({ model, patch }: CodexModel): HeadlessProgram {
  const change = (kind: string, file: string, lines: readonly string[]) =>
    patch(["*** Begin Patch", `*** ${kind} File: ${file}`, ...lines, "*** End Patch", ""].join("\n"));
  return {
    harness: "codex",
    command: "codex",
    places: [".local/bin"],
    prepare: (scene) => writeCodexSettings(scene, model, ""),
    start: (_, prompt, isTrusting) => ({
      args: [
        "exec",
        ...(isTrusting ? ["--dangerously-bypass-hook-trust"] : []),
        ...["-s", "danger-full-access", "--json", prompt],
      ],
      env: { SCRIPTED_KEY: "scripted" },
    }),
    tools: {
      write: (file, content) =>
        change(
          "Add",
          file,
          content
            .replace(/\n$/, "")
            .split("\n")
            .map((line) => `+${line}`),
        ),
      edit: (talk, file, from, to) => talk.use(change("Update", file, ["@@", `-${from}`, `+${to}`])),
    },
  };
}

export function writeCodexSettings({ home, port, repo }: TrialMachine, model: string, more: string): void {
  mkdirSync(join(home, ".codex"), { recursive: true });
  const text = `
model = "${model}"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
plugins = false
apps = false

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:${port}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects."${repo}"]
trust_level = "trusted"
${more}`;
  writeFileSync(join(home, ".codex/config.toml"), text);
}

export const headlessCodex = headlessCodexWith(CODEX_MODEL);
