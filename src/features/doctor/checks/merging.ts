import { ISSUE_MERGE_DRIVER } from "../../../identity/data-plane";
import { installationIn, MergeDriver } from "../../issues/merge-driver";
import { type Check, ok, warning } from "../finding";
import type { Patient } from "../patient";

const INIT = "run: cotenant init (it adds what is missing and changes nothing else)";

/** Attributes come with the code; the driver that they name is registered in each clone. */
export const mergingCheck: Check = {
  name: "merging",
  async look(patient) {
    const { place, repository, platform } = patient;
    // Where attributes are missing, the data plane's check says so.
    if (!(await isAskedFor(patient))) return [ok("no driver for issues is asked for")];
    const command = await new MergeDriver(place.git, repository.commonDir).command();
    if (command === null)
      return [
        warning(
          `this clone has no merge driver ${ISSUE_MERGE_DRIVER}: Git merges issues line by line, and every change on both sides is a conflict`,
          INIT,
          { driver: ISSUE_MERGE_DRIVER },
        ),
      ];
    const installed = installationIn(command);
    for (const path of installed === null ? [] : [installed.program, installed.node])
      if ((await platform.files.stat(path)) === null)
        return [
          warning(`the merge driver for issues was registered from ${path}, which is gone`, INIT, {
            driver: ISSUE_MERGE_DRIVER,
            path,
          }),
        ];
    return [ok("Git merges issues field by field")];
  },
};

/** By whatever file of attributes. */
async function isAskedFor({ place, repository }: Patient): Promise<boolean> {
  const path = ".cotenant/issues/any/issue.json";
  const { status, stdout } = await place.git.run(["check-attr", "-z", "merge", "--", path], {
    cwd: repository.worktreeRoot,
  });
  return status === 0 && new TextDecoder().decode(stdout).split("\0")[2] === ISSUE_MERGE_DRIVER;
}
