import { rmSync } from "node:fs";
import { join } from "node:path";
import type { HeadlessProgram } from "../headless";
import { writeQuietSettings } from "./quiet-settings";

export const headlessQwen: HeadlessProgram = {
  harness: "qwen",
  command: "qwen",
  places: [".local/bin"],
  prepare({ home }) {
    // Folders that were trusted before.
    rmSync(join(home, ".qwen/trustedFolders.json"), { force: true });
    writeQuietSettings(join(home, ".qwen"), "openai", {});
  },
  start: ({ port }, prompt) => ({
    args: [
      ...[prompt, "--auth-type", "openai", "-m", "scripted", "--approval-mode", "yolo"],
      // In a folder that is not trusted the mode does not count.
      ...["--allowed-tools", "write_file", "edit", "run_shell_command"],
    ],
    env: {
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
      OPENAI_API_KEY: "scripted",
      OPENAI_MODEL: "scripted",
    },
  }),
  tools: {
    write: (file_path, content) => ({ tool: "write_file", input: { file_path, content } }),
    async edit(talk, file_path, old_string, new_string) {
      await talk.use({ tool: "read_file", input: { file_path } });
      return talk.use({ tool: "edit", input: { file_path, old_string, new_string } });
    },
  },
};
