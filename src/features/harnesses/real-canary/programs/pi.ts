import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { HeadlessProgram } from "../headless";

export const headlessPi: HeadlessProgram = {
  harness: "pi",
  command: "pi",
  places: [".local/bin"],
  prepare({ home, port }) {
    const folder = join(home, ".pi/agent");
    mkdirSync(folder, { recursive: true });
    // Folders that were trusted before.
    rmSync(join(folder, "trust.json"), { force: true });
    const scripted = {
      baseUrl: `http://127.0.0.1:${port}/v1`,
      api: "openai-completions",
      apiKey: "scripted",
      models: [{ id: "scripted" }],
    };
    writeFileSync(join(folder, "models.json"), JSON.stringify({ providers: { scripted } }));
  },
  start: (_, prompt, isTrusting) => ({
    args: ["-p", prompt, "--model", "scripted/scripted", ...(isTrusting ? ["--approve"] : [])],
    env: { PI_OFFLINE: "1", PI_TELEMETRY: "0", PI_SKIP_VERSION_CHECK: "1" },
  }),
  tools: {
    write: (path, content) => ({ tool: "write", input: { path, content } }),
    edit: (talk, path, oldText, newText) =>
      talk.use({ tool: "edit", input: { path, edits: [{ oldText, newText }] } }),
  },
};
