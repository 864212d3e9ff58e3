import { canTell } from "../../../../src/features/guard/answers";
import type { Json } from "../../../../src/features/harnesses/real-canary/wire/wire";
import { CONTENT, OTHER, type Stage, until } from "../stage";
import { type Cell, expect, type Group } from "./cell";
import { awaitChild } from "./family";
import { toldBy } from "./shell";

const WAIT: Cell = { name: "wait", title: "waits for a held file, and writes when it is free" };
const STOP: Cell = { name: "stop", title: "still held at the retry: the agent stops with the report" };
const STOP_CHILD: Cell = {
  name: "stop-subagent",
  title: "a subagent stops with the report, which stays on record",
};
const TWO: Cell = { name: "two", title: "two of them at once on one file: both changes are there" };

/** Long enough that whatever should happen during a wait does so on a busy machine, too. */
const WAIT_SECS = 20;
const SHORT_SECS = 2;

export const waiting: Group = {
  cells: [WAIT],
  play: (trial) =>
    trial.on({ retrySecs: WAIT_SECS }, (stage) =>
      trial.check(WAIT, async () => {
        await stage.hold("y.txt");
        const takesWords = canTell({ harness: trial.program.harness, moment: "before", isBorrowed: false });
        const session = stage.play(async (talk) => {
          const told = await stage.edit(talk, "y.txt", "two", "TWO");
          expect(stage.read("y.txt") !== CONTENT, "nothing was written", told);
          const isTold = new RegExp(`waited \\d+ s for y\\.txt, which ${OTHER} held`).test(told);
          expect(isTold || !takesWords, "the model is not told what it waited for", told);
          return "done";
        });
        const isWaiting = until(async () => (await contentions(stage)) > 0);
        expect(await Promise.race([isWaiting, session.failed()]), "nobody waits");
        await stage.release("y.txt");
        await session.finish();
        return takesWords ? "written after the wait, and told why" : "written after the wait";
      }),
    ),
};

export const stopping: Group = {
  cells: [STOP, STOP_CHILD],
  play: (trial) =>
    trial.on({ retrySecs: SHORT_SECS }, async (stage) => {
      await stage.hold("y.txt");
      await stage.hold("z.txt");
      await trial.check(STOP, async () => {
        let told: string | null = null;
        const session = await stage.playThrough(async (talk) => {
          told = await toldBy(stage.edit(talk, "y.txt", "two", "TWO"));
          const blocked = await reported(stage, "y.txt");
          expect(blocked?.ended === false, "`guard report` does not know of it");
          return "done";
        });
        await hasReport(stage, "y.txt", told, session.output);
        return "the model has the report";
      });
      const { delegate } = trial.program.tools;
      if (delegate === null) return trial.lacks(STOP_CHILD, "it runs no subagents");
      await trial.check(STOP_CHILD, async () => {
        let told: string | null = null;
        const child = stage.open(async (talk) => {
          told = await toldBy(stage.edit(talk, "z.txt", "two", "TWO"));
          return "done";
        });
        const session = await stage.playThrough(async (talk) => {
          const answer = await talk.use(delegate(child.mention));
          await awaitChild(stage, answer, talk.use.bind(talk));
          return "done";
        });
        await hasReport(stage, "z.txt", told, session.output);
        return "the subagent's model has the report";
      });
    }),
};

/** The file is as it was, the model knows why, and so do people, though the session is over. */
async function hasReport(stage: Stage, name: string, told: string | null, printed: string): Promise<void> {
  expect(stage.read(name) === CONTENT, "it was overwritten");
  expect(told !== null, "the turn ended and the model was told nothing", `printed: "${printed}"`);
  expect(told.includes(OTHER), "the model is not told who holds it", told);
  expect(told.includes("waiting_for_instruction"), "the model gets no report", told);
  const kept = await reported(stage, name);
  expect(kept !== null, "`guard report` has forgotten it with the session");
  expect(kept.ended, "`guard report` does not say that its agent has ended", JSON.stringify(kept));
}

export const twoAtOnce: Group = {
  cells: [TWO],
  play: (trial) =>
    trial.on({ retrySecs: WAIT_SECS }, (stage) =>
      trial.check(TWO, async () => {
        let mayEnd = () => {};
        const ending = new Promise<void>((resolve) => {
          mayEnd = resolve;
        });
        let hasWritten = () => {};
        const written = new Promise<void>((resolve) => {
          hasWritten = resolve;
        });
        const first = stage.play(async (talk) => {
          const told = await stage.edit(talk, "y.txt", "one", "ONE");
          expect(stage.read("y.txt") !== CONTENT, "the first one wrote nothing", told);
          hasWritten();
          await ending;
          return "done";
        });
        await Promise.race([written, first.failed()]);
        const second = stage.play(async (talk) => {
          const told = await stage.edit(talk, "y.txt", "three", "THREE");
          // The first one's change makes its reading old: it is told so once.
          if (!hasBoth(stage)) {
            expect(/changed by/.test(told), "the second one could not write", told);
            await stage.edit(talk, "y.txt", "three", "THREE");
          }
          return "done";
        });
        const isWaiting = until(async () => (await contentions(stage)) > 0);
        expect(await Promise.race([isWaiting, second.failed()]), "the second one does not wait");
        expect(stage.read("y.txt") === "ONE\ntwo\nthree\n", "the second one wrote without the lease");
        mayEnd();
        await first.finish();
        await second.finish();
        expect(hasBoth(stage), "a change is lost", stage.read("y.txt") ?? "gone");
        return "one after the other";
      }),
    ),
};

function hasBoth(stage: Stage): boolean {
  return stage.read("y.txt") === "ONE\ntwo\nTHREE\n";
}

async function contentions(stage: Stage): Promise<number> {
  return (await stage.events(/^contention\./)).length;
}

async function reported(stage: Stage, name: string): Promise<{ readonly ended: boolean } | null> {
  const { blocked } = await stage.json(["guard", "report"]);
  return blocked.find(({ blocked_file: file }: Json) => file === name) ?? null;
}
