import { describe, expect, it } from "vitest";
import {
  type Answer,
  answer as answerIn,
  nothingToSay,
  type Verdict,
} from "../../src/features/guard/answers";
import { HARNESSES } from "../../src/features/guard/harness";
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
  return { harness, event, moment: "before", subagent: null, isBorrowed } as const;
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
  qwen: json(
    '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}',
  ),
  pi: { stdout: "", stderr: "no\n", status: 2 },
};

const SILENCE: Answer = { stdout: "", stderr: "", status: 0 };

/** Cursor refuses a call whose hook, marked `failClosed`, printed nothing. */
const NO_OBJECTION: Readonly<Record<HarnessName, Answer>> = {
  claude: SILENCE,
  codex: SILENCE,
  cursor: json("{}"),
  gemini: SILENCE,
  copilot: SILENCE,
  opencode: SILENCE,
  qwen: SILENCE,
  pi: SILENCE,
};

const ATTENDED = { CLAUDE_CODE_SESSION_ATTENDED: "1", CLAUDE_CODE_ENTRYPOINT: "cli" };

function answer(report: Parameters<typeof answerIn>[0], verdict: Verdict): Answer {
  return answerIn(report, verdict, ATTENDED);
}

function json(text: string): Answer {
  return { stdout: `${text}\n`, stderr: "", status: 0 };
}

describe("answers", () => {
  it.each(HARNESS_NAMES)("%s: allowing says no more than it must", (harness) => {
    expect(answer(about(harness), { isAllowed: true, tell: null })).toEqual(NO_OBJECTION[harness]);
    expect(nothingToSay(harness)).toEqual(NO_OBJECTION[harness]);
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

  it.each([
    ["headless", about("claude"), { CLAUDE_CODE_SESSION_ATTENDED: "0", CLAUDE_CODE_ENTRYPOINT: "sdk-cli" }],
    ["headless in an older version", about("claude"), { CLAUDE_CODE_ENTRYPOINT: "sdk-cli" }],
    ["nobody knows", about("claude"), {}],
    ["in a subagent, which would count as done", { ...about("claude"), subagent: "a1" }, ATTENDED],
  ])("end no turn where nobody sees it: %s", (_, report, env) => {
    expect(answerIn(report, STOPPED, env)).toEqual(DENIALS.claude);
  });

  it("take the form that everybody understands where one harness runs another's hooks", () => {
    for (const harness of HARNESS_NAMES)
      expect(answer(about(harness, true), DENIED)).toEqual({
        // With the status alone Copilot would refuse without a reason.
        stdout: harness === "copilot" ? DENIALS.copilot.stdout : "",
        stderr: "no\n",
        status: 2,
      });
  });

  it("refuse nothing that has happened already", () => {
    for (const harness of HARNESS_NAMES)
      expect(answer({ ...about(harness), moment: "after" }, DENIED)).toEqual(NO_OBJECTION[harness]);
  });

  it("tell an agent something only where its harness takes it", () => {
    const tell = { isAllowed: true, tell: "hear" } as const;
    expect(answer(about("claude"), tell)).toEqual(
      json('{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"hear"}}'),
    );
    for (const moment of ["before", "after"] as const)
      expect(answer({ ...about("cursor"), moment }, tell)).toEqual(json('{"additional_context":"hear"}'));
    expect(answer({ ...about("opencode"), moment: "after" }, tell).stdout).toBe("hear\n");
    expect(answer(about("copilot"), tell)).toEqual(json('{"additionalContext":"hear"}'));
    for (const harness of ["gemini", "qwen", "pi"] as const)
      expect(answer(about(harness), tell)).toEqual(SILENCE);
  });
});
