import { viaFlag } from "../../harnesses/command-line";
import { lookAt } from "../../harnesses/look";
import { readRecord } from "../../harnesses/record";
import { allSites } from "../../harnesses/sites";
import { stateOf } from "../../harnesses/state";
import { type Check, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";

const UNDO_CHANGE = "keep elsewhere what you need of it, delete it";

/** Only where a harness was once told to ask: nobody has to have one. */
export const harnessesCheck: Check = {
  name: "harnesses",
  async look({ platform, repository, modes, layout, place }: Patient) {
    const shelf = { directory: `${layout.root}/agents`, modes };
    const root = repository.worktreeRoot;
    const found: Reported[] = [];
    const fine: string[] = [];
    for (const site of allSites({ root, home: null, env: place.env })) {
      if (site.level !== "project") continue;
      const record = await readRecord(platform, shelf, site.path);
      if (record === null) continue;
      const file = await lookAt(platform.files, site, root);
      const { state, program, via, why } = stateOf({ site, file }, (text) => platform.digest.sha256(text));
      const named = program === null ? [] : [program.node, program.program];
      const stats = await Promise.all(named.map((path) => platform.files.stat(path)));
      const next = `run: cotenant agent install ${site.harness}${viaFlag(via)} ('cotenant agent doctor' tries it)`;
      const data = { harness: site.harness, path: site.path };
      if (state === "missing")
        found.push(warning(`${site.shown} no longer has ${site.harness} ask before it writes`, next, data));
      else if (state === "unreadable")
        found.push(warning(`${site.shown} cannot be read: ${why}`, `mend it, then ${next}`, data));
      else if (state === "changed")
        found.push(warning(`${site.shown} was changed by hand`, `${UNDO_CHANGE}, then ${next}`, data));
      else if (stats.includes(null))
        found.push(warning(`${site.shown} starts a program that is gone: ${named.at(-1)}`, next, data));
      else if (state === "outdated")
        found.push(warning(`entries of another version in ${site.shown}`, next, data));
      else fine.push(site.harness);
    }
    if (found.length > 0) return found;
    return [ok(fine.length === 0 ? "none were told to ask before they write" : `asking: ${fine.join(", ")}`)];
  },
};
