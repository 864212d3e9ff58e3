import { setTimeout as nap } from "node:timers/promises";
import { Hangup, type Talk } from "../../../../src/features/harnesses/real-canary/conversation";
import { AT_ONCE, CONTENT, OTHER, type Stage, until } from "../stage";
import { type Cell, expect, type Group, type Trial } from "./cell";

const HELD: Cell = { name: "held", title: "a held file stays as it is, and the model is told who holds it" };
const REDIRECT: Cell = { name: "redirect", title: "shell: `echo … > held`" };
const SED: Cell = { name: "sed", title: "shell: `sed -i … held`" };
const PROGRAM: Cell = { name: "program", title: "shell: a program that writes a held file" };
const FAILING: Cell = { name: "failing", title: "shell: a program that writes a held file and fails" };
const BACKGROUND: Cell = { name: "background", title: "shell: a background command that writes a held file" };

export const BEFORE = "blocked before";
export const AFTER = "seen after";
export const AT_THE_END = "seen at the end of the session";

/** A change this soon after the lease is taken for the holder's own preparations. */
const LEASE_AGE_MS = 6_000;

const NOTICE_MS = 15_000;
/** A command that has not begun by then was refused. */
const BACKGROUND_MS = 60_000;

const write = (name: string, text: string) => `printf '${text}\\n' > ${name}\n`;

/** Everything that an agent may try with a file that somebody else holds, in one session. */
export const refusing: Group = {
  cells: [HELD, REDIRECT, SED, PROGRAM, FAILING, BACKGROUND],
  play: (trial) =>
    trial.on(AT_ONCE, async (stage) => {
      // What they do is in files that nobody reads before they run.
      stage.write("opaque.sh", write("x.txt", "opaque"));
      stage.write("failing.sh", `${write("y.txt", "failing")}exit 3\n`);
      stage.write("later.sh", `while [ ! -e go ]; do sleep 0.2; done\n${write("z.txt", "late")}touch gone\n`);
      for (const name of ["w.txt", "x.txt", "y.txt", "z.txt"]) await stage.hold(name);
      const heldSinceMs = performance.now();
      await stage.playThrough(async (talk) => {
        await trial.check(HELD, async () => {
          const told = await stage.edit(talk, "w.txt", "two", "TWO");
          return refused(stage, "w.txt", told);
        });
        await checkShell(trial, stage, talk, REDIRECT, "w.txt", "echo mine > w.txt");
        await checkShell(trial, stage, talk, SED, "w.txt", "sed -i s/two/TWO/ w.txt");
        await nap(Math.max(0, heldSinceMs + LEASE_AGE_MS - performance.now()));
        await checkShell(trial, stage, talk, PROGRAM, "x.txt", "sh ./opaque.sh");
        await checkShell(trial, stage, talk, FAILING, "y.txt", "sh ./failing.sh");
        await trial.check(BACKGROUND, async () => {
          const told = await talk.use(trial.program.tools.background("sh ./later.sh", stage));
          stage.write("go", "");
          const hasRun = await until(() => stage.read("gone") !== null, BACKGROUND_MS);
          if (!hasRun) return refused(stage, "z.txt", told);
          // Whatever the agent does next is a chance to notice.
          await stage.shell(talk, "true");
          return (await isNoticed(stage, "z.txt")) ? AFTER : OPEN;
        });
        return "done";
      });
      if (trial.seen.get(BACKGROUND.name)?.note === OPEN)
        await trial.check(BACKGROUND, async () => {
          expect(await isNoticed(stage, "z.txt"), "it was overwritten, and nobody noticed");
          return AT_THE_END;
        });
    }),
};

/** To be looked at again when the session is over. */
const OPEN = "open";

async function checkShell(
  trial: Trial,
  stage: Stage,
  talk: Talk,
  cell: Cell,
  name: string,
  command: string,
): Promise<void> {
  await trial.check(cell, async () => {
    const told = await stage.shell(talk, command);
    if (stage.read(name) === CONTENT) return refused(stage, name, told);
    expect(await isNoticed(stage, name), "it was overwritten, and nobody noticed", told);
    const isTold = told.includes(OTHER);
    return isTold ? `${AFTER}, and the model is told` : AFTER;
  });
}

/** Whether a change under somebody's lease is on record, now or soon: not every program waits for its hooks. */
function isNoticed(stage: Stage, name: string): Promise<boolean> {
  return until(async () => (await stage.violations()).includes(name), NOTICE_MS);
}

/** Nothing was written, and the model can say why. */
export function refused(stage: Stage, name: string, told: string): string {
  expect(stage.read(name) === CONTENT, "it was overwritten", told);
  expect(told.includes(OTHER), "the model is not told who holds it", told);
  expect(/held/.test(told), "the model is not told that it is held", told);
  return BEFORE;
}

/** What the model is told, or null when the program ended instead. */
export async function toldBy(talking: Promise<string>): Promise<string | null> {
  try {
    return await talking;
  } catch (error) {
    if (error instanceof Hangup) return null;
    throw error;
  }
}
