import type { HarnessName } from "../../../../identity/harness";
import type { HeadlessProgram } from "../headless";
import { headlessClaude } from "./claude";
import { headlessCodex } from "./codex";
import { headlessCopilot } from "./copilot";
import { headlessGemini } from "./gemini";
import { headlessOpencode } from "./opencode";
import { headlessPi } from "./pi";
import { headlessQwen } from "./qwen";

/** A program that only talks to its vendor's servers, about which no more can be said than whether it is there. */
export type AccountBoundProgram = Pick<HeadlessProgram, "harness" | "command" | "places">;

export const PROGRAM_OF: Readonly<Record<HarnessName, HeadlessProgram | AccountBoundProgram>> = {
  claude: headlessClaude,
  codex: headlessCodex,
  // Its model decides in Cursor's backend, which it reaches with an account only.
  cursor: { harness: "cursor", command: "cursor-agent", places: [".local/bin"] },
  gemini: headlessGemini,
  copilot: headlessCopilot,
  opencode: headlessOpencode,
  qwen: headlessQwen,
  pi: headlessPi,
};

export function isHeadless(program: HeadlessProgram | AccountBoundProgram): program is HeadlessProgram {
  return "start" in program;
}
