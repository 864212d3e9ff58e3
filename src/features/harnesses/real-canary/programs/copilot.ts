import { rmSync } from "node:fs";
import { join } from "node:path";
import type { HeadlessProgram } from "../headless";

export const headlessCopilot: HeadlessProgram = {
  harness: "copilot",
  command: "copilot",
  places: [".local/bin"],
  prepare({ home }) {
    // Folders that were trusted before.
    rmSync(join(home, ".copilot/config.json"), { force: true });
  },
  start: ({ port }, prompt, isTrusting) => ({
    args: [
      ...["-p", prompt, "--allow-all-tools", "--allow-all-paths"],
      ...["--disable-builtin-mcps", "--no-auto-update"],
      ...(isTrusting ? ["--trust-folder"] : []),
    ],
    env: {
      COPILOT_OFFLINE: "true",
      COPILOT_AUTO_UPDATE: "false",
      COPILOT_PROVIDER_BASE_URL: `http://127.0.0.1:${port}/v1`,
      COPILOT_PROVIDER_API_KEY: "scripted",
      COPILOT_MODEL: "scripted",
    },
  }),
  tools: {
    write: (path, file_text) => ({ tool: "create", input: { path, file_text } }),
    edit: (talk, path, old_str, new_str) => talk.use({ tool: "edit", input: { path, old_str, new_str } }),
  },
};
