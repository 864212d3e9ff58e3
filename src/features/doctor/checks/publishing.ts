import { printable } from "../../../kernel/ids";
import { isOver, openIntents } from "../../publish/settling";
import { type Check, note, ok, type Reported, warning } from "../finding";
import { many, some } from "../words";

/** Publishes that were begun and have no end yet, and what they have left behind. */
export const publishingCheck: Check = {
  name: "publishing",
  async look({ platform, coordinator, repository, layout, hasStore }) {
    if (!hasStore) return [ok("nothing was published yet")];
    const found: Reported[] = [];
    for (const intent of await openIntents({ coordinator })) {
      if (!(await isOver({ surroundings: { platform } }, intent))) continue;
      const lock = `${repository.commonDir}/${intent.ref}.lock`;
      const isLocked = (await platform.files.lstat(lock)) !== null;
      const data = {
        publish_id: intent.publishId,
        agent_id: intent.agentId,
        ref: intent.ref,
        commit: intent.new,
      };
      found.push(
        warning(
          `a publish of ${intent.agentId} to ${printable(intent.ref, 200)} was cut off${isLocked ? ", and Git's lock is still there" : ""}`,
          "the next command that writes settles it: cotenant gc",
          data,
        ),
      );
    }
    const young = platform.clock.wallMs() - YOUNG_MS;
    const left: string[] = [];
    for (const name of (await platform.files.readDirectory(layout.agentIndex)) ?? [])
      if (((await platform.files.lstat(`${layout.agentIndex}/${name}`))?.mtimeMs ?? young) < young)
        left.push(name);
    if (left.length > 0)
      found.push(
        note(
          `${many(left.length, "index", "indexes")} of publishes that were cut off: ${some(left)}`,
          "run: cotenant gc",
        ),
      );
    return found.length === 0 ? [ok("nothing is left open")] : found;
  },
};

/** A younger one may belong to somebody at work. */
const YOUNG_MS = 3_600_000;
