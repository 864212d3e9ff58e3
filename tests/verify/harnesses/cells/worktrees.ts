import { existsSync } from "node:fs";
import { type Cell, expect, type Group } from "./cell";

const WORKTREES: Cell = {
  name: "worktrees",
  title: "worktrees: a clean one goes, one with changes stays, and the model is told so",
};

export const worktrees: Group = {
  cells: [WORKTREES],
  play: (trial) =>
    trial.on({ retrySecs: 3600 }, async (stage) => {
      const { worktrees: tools } = trial.program.tools;
      if (tools === undefined) return trial.lacks(WORKTREES, "it has no hooks for worktrees");
      await trial.check(WORKTREES, async () => {
        await stage.playThrough(async (talk) => {
          for (const name of ["clean", "dirty"]) {
            const root = stage.file(`.claude/worktrees/${name}`);
            const made = await talk.use(tools.enter(name));
            expect(existsSync(root), "no worktree was made", made);
            const { worktrees: all } = await stage.json(["worktree", "list"]);
            const known = all.find((one: { root: string }) => one.root === root);
            expect(known?.worktree_id !== undefined, "cotenant does not know it", JSON.stringify(all));
            if (name === "dirty") stage.write(`.claude/worktrees/${name}/w.txt`, "mine alone\n");
            const told = await talk.use(tools.leave());
            expect(
              existsSync(root) === (name === "dirty"),
              `the ${name} one: it is the other way round`,
              told,
            );
            if (name === "dirty")
              expect(/could not remove it|kept at/.test(told), "the model is told that it is gone", told);
          }
          return "done";
        });
        return "as it should";
      });
    }),
};
