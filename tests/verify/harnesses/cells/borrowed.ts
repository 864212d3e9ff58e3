import { AT_ONCE, CONTENT, OTHER } from "../stage";
import { type Cell, expect, type Group } from "./cell";

const BORROWED: Cell = {
  name: "borrowed",
  title: "with Claude Code's settings only: a held file stays as it is, and the model is told who holds it",
};

export const borrowing: Group = {
  cells: [BORROWED],
  play: (trial) =>
    trial.on({ ...AT_ONCE, isInstalled: false }, async (stage) => {
      if (trial.program.readsClaudeSettings !== true)
        return trial.lacks(BORROWED, "it does not read those settings");
      await trial.check(BORROWED, async () => {
        await stage.cotenant(["agent", "install", "claude", "--shared"]);
        await stage.hold("y.txt");
        await stage.playThrough(async (talk) => {
          const told = await stage.edit(talk, "y.txt", "two", "TWO");
          expect(stage.read("y.txt") === CONTENT, "it was overwritten", told);
          expect(told.includes(OTHER), "the model is not told who holds it", told);
          await stage.edit(talk, "x.txt", "two", "TWO");
          expect(stage.read("x.txt") !== CONTENT, "a free file could not be written");
          return "done";
        });
        return "blocked before";
      });
    }),
};
