import type { Deed } from "./deeds";
import type { Dialect, Hook, Moment, Stage } from "./dialect";
import { nameFor } from "./others";

/** One event that a harness sends, with what differs from run to run replaced by names in angle brackets. */
export interface SampleEvent {
  readonly event: string;
  /** Sent to a hook in Claude Code's settings. */
  readonly borrowed: boolean;
  readonly payload: unknown;
}

export const SAMPLE_DEEDS: readonly Deed[] = [
  { do: "write", file: "src/new file.ts", content: "export {};\n" },
  { do: "edit", file: "README.md", content: "# Hello\n" },
  { do: "delete", file: "README.md" },
  { do: "notebook", file: "a.ipynb", content: "1 + 1" },
  {
    do: "patch",
    changes: [
      { file: "README.md", content: "# Hello\n" },
      { file: "b.txt", content: "new\nlines\n" },
      { file: "old.txt", content: null },
    ],
  },
  { do: "shell", command: "echo hello > 'it s.txt' && sed -i s/a/b/ README.md" },
];

/** Everything that a harness has to say in one session, in its order. */
export function sampleEvents(dialect: Dialect, stage: Stage): SampleEvent[] {
  const samples: SampleEvent[] = [];
  const send = (event: string, moment: Moment) => {
    for (const isBorrowed of dialect.name === "cursor" || dialect.name === "copilot"
      ? [false, true]
      : [false]) {
      const hook: Hook = {
        event,
        matcher: null,
        line: "",
        args: null,
        timeoutMs: 0,
        failsClosed: false,
        isBorrowed,
      };
      const name = nameFor(hook, event);
      if (name === null) continue;
      samples.push({
        event: name,
        borrowed: isBorrowed,
        payload: dialect.payload(event, moment, stage, hook),
      });
    }
  };
  const live = (when: keyof Dialect["life"], moment: Moment) => {
    for (const event of dialect.life[when]) send(event, moment);
  };
  live("start", { at: "start" });
  live("prompt", { at: "prompt", prompt: "say hello" });
  for (const deed of SAMPLE_DEEDS) {
    const call = dialect.toolFor(deed, stage);
    const { before, after } = dialect.around(call);
    for (const event of before) send(event, { at: "before", event, call });
    for (const event of after) send(event, { at: "after", event, call, output: "ok" });
  }
  live("subagent-stop", { at: "subagent-stop" });
  live("stop", { at: "stop" });
  live("end", { at: "end" });
  return samples;
}

/** The same text for every run. */
export function neutral(value: unknown, { root, home, session }: Stage): string {
  return JSON.stringify(value)
    .replaceAll(root, "<root>")
    .replaceAll(home, "<home>")
    .replaceAll(session, "<session>")
    .replace(/"(?:toolu|call|tool)_\d+"|"g\d+"/g, '"<call>"')
    .replace(/"timestamp":(?:\d+|"[^"]*")/g, '"timestamp":"<now>"');
}
