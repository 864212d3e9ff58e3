import { AT_ONCE, OTHER } from "../stage";
import { type Cell, expect, type Group } from "./cell";

const OWN: Cell = { name: "commit", title: "Git hooks on: the agent commits its own file" };
const HELD: Cell = {
  name: "commit-held",
  title: "Git hooks on: a commit of somebody's held file is refused",
};

export const committing: Group = {
  cells: [OWN, HELD],
  play: (trial) =>
    trial.on({ ...AT_ONCE, hasGitHooks: true }, async (stage) => {
      await stage.playThrough(async (talk) => {
        const subject = async () => (await stage.git("log", "-1", "--format=%s")).stdout.trim();
        await trial.check(OWN, async () => {
          await stage.edit(talk, "w.txt", "two", "TWO");
          const told = await stage.shell(talk, "git commit -qm mine -- w.txt; git log -1 --format=%s");
          expect((await subject()) === "mine", "the commit is refused", told);
          return "committed";
        });
        await trial.check(HELD, async () => {
          // A change of the holder's own, not yet committed.
          stage.write("z.txt", "in the works\n");
          await stage.hold("z.txt");
          const told = await stage.shell(talk, "git commit -qm stolen -- z.txt; git log -1 --format=%s");
          expect((await subject()) !== "stolen", "it was committed", told);
          expect(told.includes(OTHER), "the model is not told who holds it", told);
          return "refused";
        });
        return "done";
      });
    }),
};
