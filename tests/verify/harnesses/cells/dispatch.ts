import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TEMPLATE_NAMES } from "../../../../src/features/dispatch/templates";
import { cameTrue } from "../../../../src/features/harnesses/real-canary/deadline";
import type { Json } from "../../../../src/features/harnesses/real-canary/wire/wire";
import { breakableServer, Dispatching, PERSON, worktreeOf } from "../dispatching";
import { CONTENT, OTHER, type Stage } from "../stage";
import { type Cell, expect, type Group, type Trial } from "./cell";

const WORK: Cell = {
  name: "dispatch",
  title: "dispatch: what it writes is its worker's, ends up committed on the branch, and the issue is done",
};
const COMMIT: Cell = { name: "dispatch-commit", title: "dispatch: its own `git commit` works there" };
const HELD: Cell = {
  name: "dispatch-held",
  title: "dispatch: a held file stays as it is, and the model is told who holds it",
};
const FAIL: Cell = {
  name: "dispatch-fail",
  title: "dispatch: a model that fails on the way is a failed attempt, and the issue has its words",
};
const EVICT: Cell = {
  name: "dispatch-evict",
  title: "dispatch: an evicted claim ends the program and the command that it was running",
};
const KILL: Cell = {
  name: "dispatch-kill",
  title: "dispatch: `kill -9` of the dispatcher ends them, too",
};
const FOUR: Cell = {
  name: "dispatch-four",
  title: "dispatch: four at once, five issues: each done once, and landed",
};

/** The guard is in the workers' worktrees only: the dispatcher has put it there. */
const FRESH = { retrySecs: 3600, isInstalled: false, hasGitHooks: true };

/** The three seconds of grace that a program has, and what a busy machine needs besides. */
const ENDING_MS = 30_000;

export const dispatching: Group = {
  cells: [WORK, COMMIT, HELD],
  play: (trial) =>
    withTemplate(trial, [WORK, COMMIT, HELD], async (stage, run) => {
      await stage.hold("y.txt");
      let owner = "";
      await run.issue("Write", async (talk) => {
        const root = await worktreeOf(stage, talk);
        const told = await talk.use(trial.program.tools.write(join(root, "new.txt"), "hello\n"));
        expect(existsSync(join(root, "new.txt")), "nothing was written", told);
        owner = await ownerOf(stage, "new.txt");
        await trial.check(COMMIT, async () => {
          const answer = await stage.shell(
            talk,
            "git add new.txt && git commit -qm mine; git log -1 --format=%s",
          );
          expect((await subjectsOf(stage, "--all")).includes("mine"), "nothing was committed", answer);
          return "committed";
        });
        await trial.check(HELD, async () => {
          const answer = await trial.program.tools.edit(talk, join(root, "y.txt"), "two", "TWO");
          expect(readFileSync(join(root, "y.txt"), "utf8") === CONTENT, "it was overwritten", answer);
          expect(answer.includes(OTHER), "the model is not told who holds it", answer);
          return "blocked before";
        });
        await trial.program.tools.edit(talk, join(root, "w.txt"), "two", "TWO");
        return "done";
      });
      await trial.check(WORK, async () => {
        await run.start([]);
        const { issues } = await run.finish();
        expect(issues[0]?.end === "done", `the issue is not done: ${issues[0]?.why}`, run.output);
        const me = `agent:${trial.program.harness}-1 dispatch`;
        expect(owner === me, `the new file was held by ${owner}, not by ${me}`);
        const { branch } = issues[0];
        const at = async (name: string) => (await stage.git("show", `${branch}:${name}`)).stdout;
        expect((await at("new.txt")) === "hello\n", "the new file is not on the branch");
        expect((await at("w.txt")).includes("TWO"), "what was not committed is not on the branch");
        for (const name of ["new.txt", "w.txt"]) expect(await stage.isFree(name), `${name} is held still`);
        return "held, committed and done";
      });
    }),
};

export const dispatchedFailing: Group = {
  cells: [FAIL],
  play: (trial) =>
    withTemplate(trial, [FAIL], (stage, run) =>
      trial.check(FAIL, async () => {
        const server = await breakableServer(stage.port);
        try {
          const id = await run.issue("Fail", async (talk) => {
            const root = await worktreeOf(stage, talk);
            await talk.use(trial.program.tools.write(join(root, "new.txt"), "half\n"));
            server.break("the scripted model is out of order");
            return stage.shell(talk, "true");
          });
          await run.start([], server.port);
          await run.over();
          const [issue] = run.report.issues;
          expect(issue?.end === "given_back", `its end is ${issue?.end}`, run.output);
          expect(/^it ended with status [1-9]/.test(issue.why), `it failed for another reason: ${issue.why}`);
          const { comments } = await stage.json(["issue", "show", id]);
          const text: string = comments?.at(-1)?.text ?? "";
          expect(text.includes("out of order"), "the issue does not have its words", text);
          return "a failed attempt, and the issue says why";
        } finally {
          server.close();
        }
      }),
    ),
};

export const dispatchedEvicted: Group = {
  cells: [EVICT],
  play: (trial) =>
    withTemplate(trial, [EVICT], (stage, run) =>
      trial.check(EVICT, async () => {
        const id = await atWork(trial, stage, run);
        const words = ["claim", "force-evict", id, "--reason", "somebody else does it"];
        await stage.cotenant(words, PERSON);
        await run.over();
        const [issue] = run.report.issues;
        expect(issue?.end === "lost", `its end is ${issue?.end}`, run.output);
        expect(await run.leavesNothing(ENDING_MS), "something goes on", run.running().join(", "));
        return "ended";
      }),
    ),
};

export const dispatchedKilled: Group = {
  cells: [KILL],
  play: (trial) =>
    withTemplate(trial, [KILL], (stage, run) =>
      trial.check(KILL, async () => {
        await atWork(trial, stage, run);
        run.kill();
        expect(await run.leavesNothing(ENDING_MS), "something goes on", run.running().join(", "));
        expect(await stage.isFree("new.txt"), "what it wrote is held still");
        return "ended";
      }),
    ),
};

const ISSUES = 5;

export const dispatchedFour: Group = {
  cells: [FOUR],
  play: (trial) =>
    withTemplate(trial, [FOUR], (stage, run) =>
      trial.check(FOUR, async () => {
        // As in everybody's home, it has run before: opencode makes a database at its first start, and of four first starts at
        // once all but one fail at that.
        await stage.playThrough(async () => "done");
        const ids: string[] = [];
        let [atOnce, most] = [0, 0];
        for (let nth = 1; nth <= ISSUES; nth++) {
          const id = await run.issue(`Part ${nth}`, async (talk) => {
            const root = await worktreeOf(stage, talk);
            most = Math.max(most, ++atOnce);
            await talk.use(trial.program.tools.write(join(root, `part-${nth}.txt`), `part ${nth}\n`));
            // Some leave it to the dispatcher.
            if (nth % 2 === 1) await stage.shell(talk, `git add . && git commit -qm 'written ${nth}'`);
            // All four are there before the first one goes.
            if (nth < ISSUES) await cameTrue(() => most >= ISSUES - 1, ENDING_MS);
            atOnce--;
            return "done";
          });
          ids.push(id);
        }
        await run.start(["--agents", String(ISSUES - 1), "--land"]);
        const { issues, left } = await run.finish();
        expect(
          issues.length === ISSUES && left === 0,
          `${issues.length} issues ended, ${left} are left`,
          run.output,
        );
        for (const { end, attempts, landed, title, why } of issues as Json[])
          expect(
            end === "done" && attempts === 1 && landed !== null,
            `${title}: ${end} after ${attempts} attempts: ${why}`,
            run.output,
          );
        expect(
          new Set(issues.map(({ issue_id }: Json) => issue_id)).size === ISSUES,
          "an issue was done twice",
        );
        for (let nth = 1; nth <= ISSUES; nth++) {
          const { stdout } = await stage.git("log", "--format=%h", "main", "--", `part-${nth}.txt`);
          const commits = stdout.split("\n").filter((line) => line !== "").length;
          expect(commits === 1, `part ${nth} has been committed ${commits} times on main`);
        }
        expect(most >= ISSUES - 1, `no more than ${most} were at work at once`);
        return `${most} at once, ${ids.length} landed`;
      }),
    ),
};

/** The agent has written a file, and runs a command that goes on for ever. Answers the issue's id. */
async function atWork({ program }: Trial, stage: Stage, run: Dispatching): Promise<string> {
  const id = await run.issue("Endless", async (talk) => {
    const root = await worktreeOf(stage, talk);
    await talk.use(program.tools.write(join(root, "new.txt"), "half\n"));
    return stage.shell(talk, "touch begun; tail -f /dev/null & tail -f new.txt");
  });
  await run.start([]);
  const isRunning = () => run.running().some((command) => command.startsWith("tail -f new.txt"));
  const hasBegun = await Promise.race([cameTrue(isRunning, 2 * ENDING_MS), run.failed()]);
  expect(hasBegun, "it never got to its command", run.output);
  return id;
}

/** Looks at cells that need `cotenant dispatch --agent` to know the program. */
async function withTemplate(
  trial: Trial,
  cells: readonly Cell[],
  act: (stage: Stage, run: Dispatching) => Promise<void>,
): Promise<void> {
  const { program } = trial;
  const why = !TEMPLATE_NAMES.includes(program.harness)
    ? "`dispatch` takes it with `--command` only"
    : program.serve !== undefined
      ? "the npm registry has its SDK only, not its command line"
      : null;
  if (why !== null) {
    for (const cell of cells) trial.lacks(cell, why);
    return;
  }
  await trial.on(FRESH, async (stage) => {
    const run = new Dispatching(stage);
    try {
      await act(stage, run);
    } finally {
      run.kill();
    }
  });
}

async function ownerOf(stage: Stage, name: string): Promise<string> {
  const { leases } = await stage.json(["lock", "status"]);
  const lease = leases.find(({ key }: Json) => key === `file:${name}`);
  return lease === undefined ? "nobody" : `${lease.agent_id} ${lease.session_id}`;
}

async function subjectsOf(stage: Stage, ...range: string[]): Promise<string[]> {
  return (await stage.git("log", "--format=%s", ...range)).stdout.split("\n");
}
