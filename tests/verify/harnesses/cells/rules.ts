import { AT_ONCE, CONTENT } from "../stage";
import { type Cell, expect, type Group } from "./cell";
import { BEFORE } from "./shell";

const RULED: Cell = {
  name: "rule",
  title: "a file that `policy.paths` forbids stays as it is, and the model is told the rule",
};
const RULE = "agent:* never y.txt";

export const ruling: Group = {
  cells: [RULED],
  play: (trial) =>
    trial.on(AT_ONCE, async (stage) => {
      await stage.playThrough(async (talk) => {
        await trial.check(RULED, async () => {
          stage.write(".cotenant/config.toml", `[policy]\npaths = ["${RULE}"]\n`);
          const told = await stage.edit(talk, "y.txt", "two", "TWO");
          expect(stage.read("y.txt") === CONTENT, "it was overwritten", told);
          expect(told.includes(RULE), "the model is not told the rule", told);
          return BEFORE;
        });
        return "done";
      });
    }),
};
