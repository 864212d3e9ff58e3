import { keepRecording, Recorder, recordingOf, shapesOf } from "../recording";
import { AT_ONCE } from "../stage";
import { brief, type Cell, expect, type Group } from "./cell";

const EVENTS: Cell = { name: "events", title: "its hook events have the fields that are on record" };

/** One of everything, with hooks that only listen. With `--record` what they hear is kept for the tests of the guard. */
export const listening: Group = {
  cells: [EVENTS],
  play: (trial) =>
    trial.on({ ...AT_ONCE, isInstalled: false }, (stage) =>
      trial.check(EVENTS, async () => {
        const { program, installed } = trial;
        const { tools } = program;
        const recorder = new Recorder(stage, program);
        const child = stage.open(async (talk) => {
          await talk.use(tools.write(stage.file("part.txt"), "a part\n"));
          return "the part is done";
        });
        await stage.playThrough(async (talk) => {
          await talk.use(tools.write(stage.file("new.txt"), "hello\n"));
          await stage.edit(talk, "x.txt", "two", "TWO");
          await stage.shell(talk, recorder.environmentCommand);
          await stage.shell(talk, "echo out; echo err >&2; exit 3");
          await talk.use(tools.background("sleep 1", stage));
          if (tools.delegate !== null) {
            const told = await talk.use(tools.delegate(child.mention));
            if (tools.await !== null) await talk.use(tools.await(told));
          }
          return "done";
        });
        const events = recorder.events();
        if (trial.isRecording) {
          keepRecording(program, installed.version, events);
          return "recorded";
        }
        const [now, before] = [shapesOf(events), shapesOf(recordingOf(program) ?? [])];
        const gone = [...before].filter((shape) => !now.has(shape));
        const fresh = [...now].filter((shape) => !before.has(shape));
        expect(before.size > 0, "nothing is on record: --record makes one");
        expect(gone.length === 0, "no longer there", gone.join(", "));
        return fresh.length === 0 ? "the same" : `new: ${brief(fresh.join(", "))}`;
      }),
    ),
};
