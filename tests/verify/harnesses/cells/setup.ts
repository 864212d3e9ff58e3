import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Hangup } from "../../../../src/features/harnesses/real-canary/conversation";
import { treePicture } from "../../../support/tree-picture";
import { AT_ONCE, CONTENT, type Stage } from "../stage";
import { brief, type Cell, expect, type Group, Lacking } from "./cell";
import { toldBy } from "./shell";

const UNTRUSTED: Cell = {
  name: "doctor-untrusted",
  title: "not trusted: `agent doctor` says that hooks do not run",
};
const TRUSTED: Cell = { name: "doctor-trusted", title: "trusted: hooks run, and `agent doctor` says so" };
const UNINSTALL: Cell = {
  name: "uninstall",
  title: "`agent uninstall` brings back every byte; own hooks ran",
};

/** The program itself is asked first: what it does is what doctor has to say. */
export const trusting: Group = {
  cells: [UNTRUSTED, TRUSTED],
  async play(trial) {
    const { trust } = trial.program;
    if (trust === null) trial.lacks(UNTRUSTED, "without a person it asks for no trust");
    else
      await trial.on(AT_ONCE, (stage) =>
        trial.check(UNTRUSTED, async () => {
          trust.demand?.(stage);
          const isRunning = await isGuarded(stage).catch((error: unknown) => {
            if (!(error instanceof Hangup)) throw error;
            throw new Lacking("not trusted, it does not start without a person");
          });
          const { isFine, words } = await doctor(stage);
          if (isRunning) {
            expect(isFine, "hooks run, but doctor says otherwise", words);
            return "hooks run all the same";
          }
          expect(!isFine, "hooks do not run, but doctor finds nothing wrong", words);
          return "said";
        }),
      );
    await trial.on(AT_ONCE, (stage) =>
      trial.check(TRUSTED, async () => {
        trust?.demand?.(stage);
        await trust?.give(stage);
        expect(await isGuarded(stage), "hooks do not run");
        const { isFine, words } = await doctor(stage);
        expect(isFine, "hooks run, but doctor says otherwise", words);
        return "passed";
      }),
    );
  },
};

/** Whether hooks do their work, with nothing on the command line that makes them run: what is held stays, all else goes. */
async function isGuarded(stage: Stage): Promise<boolean> {
  await stage.hold("x.txt");
  await stage.playThrough(async (talk) => {
    const told = await stage.edit(talk, "y.txt", "two", "TWO");
    expect(stage.read("y.txt") !== CONTENT, "a file that nobody holds cannot be written", told);
    await toldBy(stage.edit(talk, "x.txt", "two", "TWO"));
    return "done";
  }, false);
  return stage.read("x.txt") === CONTENT;
}

async function doctor(stage: Stage): Promise<{ readonly isFine: boolean; readonly words: string }> {
  const { harness } = stage.program;
  const { status } = await stage.try(["agent", "doctor", harness]);
  const { agents, remarks } = await stage.json(["agent", "doctor", harness]);
  const words = brief(`exit ${status}, canary ${agents[0]?.canary}, ${remarks.join("; ")}`);
  return { isFine: status === 0 && !/trust|agree/i.test(remarks.join()), words };
}

export const uninstalling: Group = {
  cells: [UNINSTALL],
  play: (trial) =>
    trial.on({ ...AT_ONCE, isInstalled: false }, (stage) =>
      trial.check(UNINSTALL, async () => {
        const { program } = trial;
        const witness = join(stage.home, `own-hook-${program.name}`);
        // Every harness takes an empty answer of a hook but one; that takes this.
        const own = program.ownSettings(`touch ${witness}; echo '{}'`);
        mkdirSync(dirname(stage.file(own.path)), { recursive: true });
        writeFileSync(stage.file(own.path), own.text);
        stage.write(".git/info/exclude", `# mine\n/${own.path}\n`);
        const before = picture(stage);
        await stage.cotenant(["agent", "install", program.harness]);
        await stage.hold("x.txt");
        await stage.playThrough(async (talk) => {
          await talk.use(program.tools.write(stage.file("new.txt"), "hello\n"));
          await stage.edit(talk, "x.txt", "two", "TWO");
          return "done";
        });
        expect(stage.read("x.txt") === CONTENT, "the held file was overwritten");
        expect(stage.read("new.txt") === "hello\n", "a file that nobody holds could not be written");
        rmSync(stage.file("new.txt"));
        expect(existsSync(witness), "the person's own hook did not run");
        await stage.cotenant(["agent", "uninstall", program.harness]);
        const after = picture(stage);
        const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
        const changed = names.filter((name) => before[name] !== after[name]);
        expect(changed.length === 0, "not as before", changed.join(", "));
        return "as before";
      }),
    ),
};

function picture(stage: Stage): Record<string, string> {
  const files = treePicture(stage.repo, stage.program.leavings);
  return { ...files, ".git/info/exclude": stage.read(".git/info/exclude") ?? "none" };
}
