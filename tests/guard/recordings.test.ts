import { describe, expect, it } from "vitest";
import { HARNESSES } from "../../src/features/guard/harness";
import { type Report, readReport } from "../../src/features/guard/report";
import { wishOf } from "../../src/features/guard/tools";
import type { AgentProgram } from "../verify/harnesses/program";
import { PROGRAMS } from "../verify/harnesses/programs/all";
import { ENVIRONMENT, type RecordedEvent, recordingOf } from "../verify/harnesses/recording";

/** What our plugins make of it: opencode's two arguments, pi's event and its context. */
function passedOn({ event, payload }: RecordedEvent): unknown {
  const { input, output, properties, context } = payload;
  if (context !== undefined) {
    const tool = { tool: payload.toolName, callID: payload.toolCallId, args: input };
    return { event, sessionID: context.sessionId, directory: context.cwd, ...tool };
  }
  if (input === undefined) return { event, sessionID: properties?.sessionID, directory: "<root>" };
  return { event, ...input, args: input.args ?? output?.args, directory: "<root>" };
}

function reportsOf(program: AgentProgram): Report[] {
  const events = (recordingOf(program) ?? []).filter(({ event }) => event !== ENVIRONMENT);
  return events.flatMap((recorded) => {
    const document = HARNESSES[program.harness].answers === "exit-2" ? passedOn(recorded) : recorded.payload;
    return readReport(program.harness, recorded.event, document) ?? [];
  });
}

describe.each(PROGRAMS)("what $title really sends", (program) => {
  it("is understood: who, and where", () => {
    const before = reportsOf(program).filter(({ moment }) => moment === "before");
    expect(before.length).toBeGreaterThan(4);
    for (const { harness, sessionId, cwd } of before) {
      expect(harness).toBe(program.harness);
      expect(sessionId).toMatch(/<id-\d+>$/);
      expect(cwd).toBe("<root>");
    }
  });

  it("names every file that a tool is about to write, and every command", () => {
    const before = reportsOf(program).filter(({ moment }) => moment === "before");
    const wishes = before.map((report) => wishOf(report));
    const files = wishes.flatMap((wish) => (wish?.kind === "files" ? wish.paths : []));
    const commands = wishes.flatMap((wish) => (wish?.kind === "shell" ? [wish.command] : []));
    expect(files).toEqual(expect.arrayContaining(["<root>/new.txt", "<root>/x.txt"]));
    if (program.tools.delegate !== null) expect(files).toContain("<root>/part.txt");
    expect(commands).toContain("echo out; echo err >&2; exit 3");
  });
});
