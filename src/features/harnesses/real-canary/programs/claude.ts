import type { HeadlessProgram } from "../headless";

export const headlessClaude: HeadlessProgram = {
  harness: "claude",
  command: "claude",
  places: [".local/bin", ".claude/local"],
  prepare() {},
  start: ({ port }, prompt) => ({
    args: [
      ...["-p", prompt, "--model", "claude-sonnet-4-5", "--permission-mode", "acceptEdits"],
      ...["--allowedTools", "Bash,Write,Edit,Read,Agent,NotebookEdit,EnterWorktree,ExitWorktree"],
    ],
    env: {
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
      ANTHROPIC_API_KEY: "scripted",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
      DISABLE_ERROR_REPORTING: "1",
    },
  }),
  tools: {
    write: (file_path, content) => ({ tool: "Write", input: { file_path, content } }),
    async edit(talk, file_path, old_string, new_string) {
      await talk.use({ tool: "Read", input: { file_path } });
      return talk.use({ tool: "Edit", input: { file_path, old_string, new_string } });
    },
  },
};
