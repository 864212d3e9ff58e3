import type { AgentProgram } from "../program";
import { claude } from "./claude";
import { codex, codexCodeMode } from "./codex";
import { copilot } from "./copilot";
import { cursor } from "./cursor";
import { gemini } from "./gemini";
import { opencode } from "./opencode";
import { pi } from "./pi";
import { qwen } from "./qwen";

/** In the order of the table. */
export const PROGRAMS: readonly AgentProgram[] = [
  claude,
  codex,
  codexCodeMode,
  cursor,
  gemini,
  copilot,
  opencode,
  qwen,
  pi,
];
