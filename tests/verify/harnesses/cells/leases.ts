import { OTHER, type Stage, viaGiven } from "../stage";
import { type Cell, expect, type Group } from "./cell";

const LEASE: Cell = { name: "lease", title: "a write leases the file" };
const END: Cell = { name: "end", title: "the end of the session frees it" };
const KILL: Cell = { name: "kill", title: "`kill -9` frees it" };

/** A new file is leased for the session for as long as that lives, and free afterwards. */
export const leasing: Group = {
  cells: [LEASE, END],
  play: (trial) =>
    trial.on({ retrySecs: 3600 }, async (stage) => {
      await stage.playThrough(async (talk) => {
        const told = await talk.use(trial.program.tools.write(stage.file("new.txt"), "hello\n"));
        await trial.check(LEASE, async () => {
          expect(stage.read("new.txt") === "hello\n", "nothing was written", told);
          if (viaGiven().length > 0) expect(await isByDaemon(stage), "the daemon was not asked");
          return `held by ${ownerOf(stage, await stage.holderOf("new.txt"))}`;
        });
        return "done";
      });
      await trial.check(END, async () => {
        expect(trial.seen.get(LEASE.name)?.outcome === "passed", "there was no lease to free");
        expect(await stage.isFree("new.txt"), "it is still held though the program has ended");
        return "free";
      });
    }),
};

/** Whether the daemon has answered events of this harness. */
async function isByDaemon(stage: Stage): Promise<boolean> {
  const { daemon } = await stage.json(["daemon", "status"]);
  return (daemon?.guard.by_harness[stage.program.harness] ?? 0) > 0;
}

/** Names of agents differ from run to run; the harness in them does not. */
export function ownerOf(stage: Stage, holder: { readonly agent: string } | null): string {
  expect(holder !== null, "the file was written without a lease");
  const mine = `agent:${stage.program.harness}-`;
  expect(holder.agent.startsWith(mine), `it is held by ${holder.agent}, not by ${mine}…`);
  return `${mine}…`;
}

export const killing: Group = {
  cells: [KILL],
  play: (trial) =>
    trial.on({ retrySecs: 3600 }, async (stage) => {
      let reached = (_holder: { readonly pid: number } | null) => {};
      const held = new Promise<{ readonly pid: number } | null>((resolve) => {
        reached = resolve;
      });
      const session = stage.play(async (talk) => {
        const told = await stage.edit(talk, "z.txt", "two", "TWO");
        expect(stage.read("z.txt") !== "one\ntwo\nthree\n", "nothing was written", told);
        reached(await stage.holderOf("z.txt"));
        // Thinks for ever.
        return new Promise<string>(() => {});
      });
      await trial.check(KILL, async () => {
        const holder = await Promise.race([held, session.failed()]);
        expect(holder !== null, "the file was written without a lease");
        const early = await stage.try(["lock", "acquire", "z.txt"], OTHER);
        expect(early.status !== 0, "somebody else could have it while the program lived");
        await session.killAlone();
        if (holder.pid === session.pid) {
          expect(await stage.isFree("z.txt"), "it is still held though the program is dead");
          return "free at once";
        }
        // The lease is bound to a worker that the launcher left behind.
        const isFree = (await stage.try(["lock", "acquire", "z.txt"], OTHER)).status === 0;
        if (isFree) return "free at once";
        process.kill(holder.pid, "SIGKILL");
        expect(await stage.isFree("z.txt"), "it is still held though launcher and worker are dead");
        return "free when the worker is dead: killing the launcher leaves it alive";
      });
    }),
};
