import { CONTENT, type Stage, until } from "../stage";
import { type Cell, expect, type Group } from "./cell";

const PARENT: Cell = { name: "parent", title: "a finished subagent does not block its parent" };
const SIBLINGS: Cell = {
  name: "siblings",
  title: "two subagents at once on one file: one writes after the other",
};

const WAIT_SECS = 20;
/** A sibling that has not begun by then waits for its turn. */
const IN_TURN_MS = 60_000;
const BOTH = "ONE\ntwo\nTHREE\n";

export const parenthood: Group = {
  cells: [PARENT],
  play: (trial) =>
    trial.on({ retrySecs: WAIT_SECS }, async (stage) => {
      const { delegate } = trial.program.tools;
      if (delegate === null) return trial.lacks(PARENT, "it runs no subagents");
      await trial.check(PARENT, async () => {
        const child = stage.open(async (talk) => {
          const told = await stage.edit(talk, "y.txt", "one", "ONE");
          expect(stage.read("y.txt") !== CONTENT, "the subagent wrote nothing", told);
          return "done";
        });
        await stage.playThrough(async (talk) => {
          const told = await talk.use(delegate(child.mention));
          await awaitChild(stage, told, talk.use.bind(talk));
          expect(stage.read("y.txt") !== CONTENT, "the subagent never ran", told);
          const mine = await stage.edit(talk, "y.txt", "three", "THREE");
          expect(stage.read("y.txt") === BOTH, "the parent could not write", mine);
          return "done";
        });
        const heard = await stage.events(/^contention\./);
        expect(heard.length === 0, "the parent had to wait for its own finished subagent");
        const done = await stage.events(/^guard\.subagent_done$/);
        expect(done.length < 2, "the subagent's end is on record twice");
        return "at once";
      });
    }),
};

/** Their events carry nothing that tells subagents of a session from each other, or from their parent. */
const NAMELESS: readonly string[] = ["gemini"];

export const siblings: Group = {
  cells: [SIBLINGS],
  play: (trial) =>
    trial.on({ retrySecs: WAIT_SECS }, async (stage) => {
      const { delegate } = trial.program.tools;
      if (delegate === null) return trial.lacks(SIBLINGS, "it runs no subagents");
      if (NAMELESS.includes(trial.program.harness))
        return trial.lacks(SIBLINGS, "its events do not tell one subagent from another");
      await trial.check(SIBLINGS, async () => {
        let [hasFirstWritten, isFirstOver, isSecondThrough] = [false, false, false];
        const first = stage.open(async (talk) => {
          await stage.edit(talk, "y.txt", "one", "ONE");
          hasFirstWritten = true;
          // Goes on until its sibling has had to wait, or has not; where they run in turn, there is none yet.
          const hasWaited = async () => (await stage.events(/^contention\./)).length > 0;
          await until(async () => isSecondThrough || (await hasWaited()), IN_TURN_MS);
          isFirstOver = true;
          return "done";
        });
        let how = "in turn, as the program runs them";
        let toldSecond = "";
        const second = stage.open(async (talk) => {
          await until(() => hasFirstWritten);
          const isAlongside = !isFirstOver;
          toldSecond = await stage.edit(talk, "y.txt", "three", "THREE");
          isSecondThrough = true;
          if (isAlongside) how = isFirstOver ? "one after the other" : "";
          if (stage.read("y.txt") !== BOTH) await stage.edit(talk, "y.txt", "three", "THREE");
          return "done";
        });
        await stage.playThrough(async (talk) => {
          const told = await talk.useAll([delegate(first.mention), delegate(second.mention)]);
          for (const one of told) await awaitChild(stage, one, talk.use.bind(talk));
          return "done";
        });
        const now = stage.read("y.txt");
        expect(now !== CONTENT, "the subagents wrote nothing");
        expect(now === BOTH, "the second one could not write", `${now} ${toldSecond}`);
        expect(how !== "", "the second one wrote while the first one was still at it");
        return how;
      });
    }),
};

/** Where a subagent runs beside its parent, the parent waits as its model would. */
export async function awaitChild(
  { program }: Stage,
  told: string,
  use: (call: ReturnType<NonNullable<typeof program.tools.await>>) => Promise<string>,
): Promise<void> {
  if (program.tools.await !== null) await use(program.tools.await(told));
}
