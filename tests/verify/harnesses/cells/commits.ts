import { AT_ONCE, OTHER } from "../stage";
import { type Cell, expect, type Group } from "./cell";
import { awaitChild } from "./family";

const OWN: Cell = { name: "commit", title: "Git hooks on: the agent commits its own file" };
const HELD: Cell = {
  name: "commit-held",
  title: "Git hooks on: a commit of somebody's held file is refused",
};
const CHILD: Cell = { name: "commit-subagent", title: "Git hooks on: a subagent commits its own file" };
const FAMILY: Cell = {
  name: "commit-family",
  title: "Git hooks on: the agent commits what its finished subagent has written",
};

export const committing: Group = {
  cells: [OWN, HELD, CHILD, FAMILY],
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
        const { delegate } = trial.program.tools;
        if (delegate === null) {
          for (const cell of [CHILD, FAMILY]) trial.lacks(cell, "it runs no subagents");
          return "done";
        }
        let told = "";
        const child = stage.open(async (part) => {
          await stage.edit(part, "x.txt", "two", "TWO");
          await stage.edit(part, "y.txt", "two", "TWO");
          told = await stage.shell(part, "git commit -qm part -- y.txt; git log -1 --format=%s");
          return "done";
        });
        await trial.check(CHILD, async () => {
          const answer = await talk.use(delegate(child.mention));
          await awaitChild(stage, answer, talk.use.bind(talk));
          expect((await subject()) === "part", "the commit is refused", told);
          return "committed";
        });
        await trial.check(FAMILY, async () => {
          const answer = await stage.shell(talk, "git commit -qm ours -- x.txt; git log -1 --format=%s");
          expect((await subject()) === "ours", "the commit is refused", answer);
          return "committed";
        });
        return "done";
      });
    }),
};
