import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { HeadlessProgram } from "../headless";

export const headlessOpencode: HeadlessProgram = {
  harness: "opencode",
  command: "opencode",
  places: [".opencode/bin", ".local/bin"],
  prepare({ home, port }) {
    const folder = join(home, ".config/opencode");
    mkdirSync(folder, { recursive: true });
    const models = {
      scripted: { name: "scripted", tool_call: true, limit: { context: 200_000, output: 8_000 } },
    };
    const options = { baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "scripted" };
    const settings = {
      autoupdate: false,
      share: "disabled",
      model: "scripted/scripted",
      small_model: "scripted/scripted",
      permission: { edit: "allow", bash: "allow", external_directory: "allow" },
      provider: {
        scripted: { npm: "@ai-sdk/openai-compatible", name: "scripted", options, models },
      },
    };
    writeFileSync(join(folder, "opencode.json"), JSON.stringify(settings));
  },
  start: ({ port }, prompt) => ({
    args: ["run", prompt, "-m", "scripted/scripted"],
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      // It installs its own package beside a plugin, which does not need it.
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_fetch_retries: "0",
    },
  }),
  tools: {
    write: (filePath, content) => ({ tool: "write", input: { filePath, content } }),
    async edit(talk, filePath, oldString, newString) {
      await talk.use({ tool: "read", input: { filePath } });
      return talk.use({ tool: "edit", input: { filePath, oldString, newString } });
    },
  },
};
