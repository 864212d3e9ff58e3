import { diverged, mainHistory } from "../../hooks/divergence";
import { type Check, error, note, ok } from "../finding";

/** Whether what concerns everybody could be changed on this branch. For `validate divergence`: a branch may lag. */
export const divergenceCheck: Check = {
  name: "divergence",
  async look({ config, place, repository }) {
    const configured = config.values["global_operations.main_branch"];
    const history = await mainHistory(place.git, repository.worktreeRoot, configured);
    if (history.kind === "no-main")
      return [note("there is no main branch here, so nothing can be lacking", null)];
    if (history.kind === "has")
      return [ok(`all of ${history.main} is in the current history`, { ...history })];
    const { code, message, hint, data } = diverged(history);
    return [error(code, message, hint, data)];
  },
};
