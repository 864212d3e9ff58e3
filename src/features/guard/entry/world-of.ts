import { modesFor } from "../../../store/layout";
import { lookAfterHooks, marksOfHooks } from "../../hooks/installation/upkeep";
import type { HooksKeeper, World } from "../world";

type Machine = Pick<World, "platform" | "git" | "env" | "home" | "cwd">;

/** The guard's world on this machine, for the process that asks or for one that a long-lived process answers. */
export function worldOf(
  machine: Machine,
  harnessPid: number | null,
  parentPid: number = process.ppid,
): World {
  const { platform, git, env, home, cwd } = machine;
  const hooks: HooksKeeper = {
    marks: (repository) => marksOfHooks(platform, repository),
    lookAfter: async (repository) => {
      const modes = modesFor(repository.config.sharedRepository);
      const word = await lookAfterHooks({ platform, git, env, repository, modes });
      if (word === null) return null;
      return word.next === null ? word.message : `${word.message}; next: ${word.next}`;
    },
  };
  return { platform, git, env, home, cwd, parentPid, harnessPid, hooks };
}
