import { expect, it } from "vitest";
import { respelt } from "../../src/features/hooks/spelling";

const ID = "01J9ZQ8Y4M3X5R7T9V1W3Y5Z7B";

it.each([
  [".Cotenant/config.toml", ".cotenant/config.toml"],
  [".COTENANT", ".cotenant"],
  [".cotenant/Config.TOML", ".cotenant/config.toml"],
  [".cotenant/Worktree.json", ".cotenant/worktree.json"],
  [`.cotenant/issues/${ID.toLowerCase()}/issue.json`, `.cotenant/issues/${ID}/issue.json`],
  [`.cotenant/issues/${ID}/Issue.json`, `.cotenant/issues/${ID}/issue.json`],
  [`.cotenant/issues/${ID}/COMMENTS.jsonl`, `.cotenant/issues/${ID}/comments.jsonl`],
  [`.cotenant/gates/results/${ID.toLowerCase()}.JSONL`, `.cotenant/gates/results/${ID}.jsonl`],
  [".cotenant/Gates/registry.json", ".cotenant/gates/registry.json"],
])("%s is a name of cotenant's in another spelling", (path, real) => expect(respelt(path)).toBe(real));

it.each([
  ".cotenant/config.toml",
  `.cotenant/issues/${ID}/issue.json`,
  `.cotenant/gates/results/${ID}.jsonl`,
  `.cotenant/issues/${ID}/docs/Issue.json`,
  ".cotenant/README.md",
  "docs/.Cotenant/config.toml",
  "Config.toml",
])("%s is not", (path) => expect(respelt(path)).toBeNull());
