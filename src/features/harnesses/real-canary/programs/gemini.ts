import { rmSync } from "node:fs";
import { join } from "node:path";
import type { HeadlessProgram } from "../headless";
import { writeQuietSettings } from "./quiet-settings";

export const headlessGemini: HeadlessProgram = {
  harness: "gemini",
  command: "gemini",
  places: [],
  prepare({ home }) {
    // Folders that were trusted before.
    rmSync(join(home, ".gemini/trustedFolders.json"), { force: true });
    writeQuietSettings(join(home, ".gemini"), "gemini-api-key", {});
  },
  start: ({ port }, prompt, isTrusting) => ({
    args: ["-p", prompt, "-m", "gemini-2.5-pro", "--approval-mode", "yolo"],
    env: {
      GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${port}`,
      GEMINI_API_KEY: "scripted",
      ...(isTrusting ? { GEMINI_CLI_TRUST_WORKSPACE: "true" } : {}),
    },
  }),
  tools: {
    write: (file_path, content) => ({ tool: "write_file", input: { file_path, content } }),
    edit: (talk, file_path, old_string, new_string) =>
      talk.use({
        tool: "replace",
        input: { file_path, instruction: "change it", old_string, new_string },
      }),
  },
};
