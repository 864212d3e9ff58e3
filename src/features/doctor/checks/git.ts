import { requireRecentGit } from "../../../platform/git";
import { type Check, ok } from "../finding";

export const gitCheck: Check = {
  name: "git",
  async look({ place, repository }) {
    const { text } = await requireRecentGit(place.git, repository.worktreeRoot);
    return [ok(`Git ${text}`, { version: text })];
  },
};
