import { describe, expect, it } from "vitest";
import { type Answer, answer, type Verdict } from "../../src/guard/answers";
import { HARNESSES } from "../../src/guard/harness";
import { HARNESS_NAMES, type HarnessName } from "../../src/identity/harness";

const DENIED: Verdict = {
  isAllowed: false,
  reason: "no",
  isHardStop: false,
  code: "E_LOCK_CONFLICT",
  data: {},
};
const STOPPED: Verdict = { ...DENIED, isHardStop: true, code: "E_BLOCKED" };

function about(harness: HarnessName, isBorrowed = false) {
  const { name: event } = HARNESSES[harness].events.find(({ moment }) => moment === "before")!;
  return { harness, event, moment: "before", isBorrowed } as const;
}

/** HARNESSES.md, to the byte. */
const DENIALS: Readonly<Record<HarnessName, Answer>> = {
  claude: json(
    '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}',
  ),
  codex: json(
    '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}',
  ),
  cursor: json('{"permission":"deny","user_message":"no","agent_message":"no"}'),
  gemini: json('{"decision":"deny","reason":"no"}'),
  copilot: json('{"permissionDecision":"deny","permissionDecisionReason":"no"}'),
  opencode: { stdout: "", stderr: "no\n", status: 2 },
};

function json(text: string): Answer {
  return { stdout: `${text}\n`, stderr: "", status: 0 };
}

describe("answers", () => {
  it.each(HARNESS_NAMES)("%s: allowing says nothing", (harness) => {
    expect(answer(about(harness), { isAllowed: true, tell: null })).toEqual({
      stdout: "",
      stderr: "",
      status: 0,
    });
  });

  it.each(HARNESS_NAMES)("%s: refusing, in its own form", (harness) => {
    expect(answer(about(harness), DENIED)).toEqual(DENIALS[harness]);
  });

  it("end the turn only where that exists", () => {
    expect(answer(about("claude"), STOPPED)).toEqual(
      json(
        '{"continue":false,"stopReason":"no","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}',
      ),
    );
    for (const harness of HARNESS_NAMES.filter((name) => name !== "claude"))
      expect(answer(about(harness), STOPPED)).toEqual(DENIALS[harness]);
  });

  it("take the form that everybody understands where one harness runs another's hooks", () => {
    for (const harness of HARNESS_NAMES)
      expect(answer(about(harness, true), DENIED)).toEqual({ stdout: "", stderr: "no\n", status: 2 });
  });

  it("refuse nothing that has happened already", () => {
    for (const harness of HARNESS_NAMES)
      expect(answer({ ...about(harness), moment: "after" }, DENIED)).toEqual({
        stdout: "",
        stderr: "",
        status: 0,
      });
  });

  it("tell an agent something only where its harness takes it", () => {
    const tell = { isAllowed: true, tell: "hear" } as const;
    expect(answer(about("claude"), tell)).toEqual(
      json('{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"hear"}}'),
    );
    expect(answer({ ...about("cursor"), moment: "after", event: "postToolUse" }, tell)).toEqual(
      json('{"additional_context":"hear"}'),
    );
    expect(answer({ ...about("opencode"), moment: "after" }, tell).stdout).toBe("hear\n");
    expect(answer(about("gemini"), tell)).toEqual({ stdout: "", stderr: "", status: 0 });
    expect(answer(about("copilot"), tell)).toEqual({ stdout: "", stderr: "", status: 0 });
  });
});
