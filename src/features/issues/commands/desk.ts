import type { Context } from "../../../cli/grammar/command";
import { type Desk, deskIn, deskOutsideGit, type RepositoryDesk } from "../desk";

/** For commands about issues that work outside Git as well. */
export async function openDesk(context: Context): Promise<Desk> {
  try {
    return await openRepositoryDesk(context);
  } catch (error) {
    return deskOutsideGit(context.surroundings(), error);
  }
}

export async function openRepositoryDesk(context: Context): Promise<RepositoryDesk> {
  return deskIn(await context.workspace());
}
