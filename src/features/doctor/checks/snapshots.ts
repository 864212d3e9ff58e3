import type { LastingGit } from "../../../platform/git";
import type { Trees } from "../../../platform/trees";
import { DescriptorStore } from "../../snapshots/descriptor-store";
import { type Ailment, examine, examineStrictly } from "../../snapshots/examination";
import { type Check, capped, error, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";
import { many } from "../words";

const REPAIR = "run: cotenant doctor --strict --repair";

/** What can be seen without reading objects. */
export const snapshotsCheck: Check = {
  name: "snapshots",
  async look(patient) {
    const { ailments, shelved } = await examine(examined(patient));
    const found = ailments.map((ailment) => reported(ailment, false));
    const count = shelved.filter(({ isReady }) => isReady).length;
    return found.length === 0 ? [ok(many(count, "snapshot", "snapshots"))] : capped(found);
  },
};

/** Every object of every snapshot. */
export function strictSnapshotsCheck({
  git,
  trees,
}: {
  readonly git: LastingGit;
  readonly trees: Trees;
}): Check {
  return {
    name: "snapshots",
    async look(patient) {
      const { platform, repository } = patient;
      const machine = {
        platform,
        git,
        trees,
        format: repository.config.objectFormat,
        refFormat: repository.config.refFormat,
      };
      const { ailments, count } = await examineStrictly({ ...examined(patient), machine });
      const found = ailments.map((ailment) => reported(ailment, true));
      return found.length === 0
        ? [ok(`${many(count, "snapshot", "snapshots")}, each with all that it holds`)]
        : capped(found);
    },
  };
}

function examined({ platform, repository, modes, coordinator }: Patient) {
  const { worktreeRoot: root, gitDir, commonDir, controlDir } = repository;
  return {
    descriptors: new DescriptorStore(platform, controlDir, modes),
    coordinator,
    machine: { platform },
    place: { root, gitDir, commonDir },
  };
}

function reported(ailment: Ailment, isStrict: boolean): Reported {
  const { what, id } = ailment;
  const data = { snapshot_id: id, problem: what };
  const broken = (message: string, next: string) =>
    isStrict ? error("E_PARTIAL_SNAPSHOT", message, next, data) : warning(message, next, data);
  switch (what) {
    case "unfinished":
      return broken(
        `snapshot ${id} by ${ailment.intent.agentId} was not finished: its process died, and nobody sees it`,
        REPAIR,
      );
    case "underway":
      return note(`snapshot ${id} is being taken by ${ailment.intent.agentId}`, null, data);
    case "unlogged":
      return broken(`snapshot ${id} is ready, and the log does not say so: its process died`, REPAIR);
    case "remains":
      return broken(`something is left of snapshot ${id}, which was taken away`, REPAIR);
    case "lost":
      return broken(
        `snapshot ${id} was visible, and its .READY is gone: nobody sees it any more`,
        `${REPAIR} (it sets it aside, with all that it holds)`,
      );
    case "aside":
      return note(
        `snapshot ${id} was set aside, because its .READY was gone`,
        `look at it with Git: git show refs/cotenant/snapshots/${id}`,
        data,
      );
    case "unkept":
      return broken(`the ref of snapshot ${id} is gone: Git may clear its objects away`, REPAIR);
    case "marked":
      return broken(`a pack is still marked as one of snapshot ${id} at work`, REPAIR);
    case "unknown":
      return warning(
        `refs/cotenant/snapshots/${id} has no descriptor here`,
        `look at it with Git: git show refs/cotenant/snapshots/${id}`,
        data,
      );
    case "damaged":
      return error(
        "E_PARTIAL_SNAPSHOT",
        `snapshot ${id} is damaged: ${ailment.why}`,
        "rely on another one; 'cotenant history --all' shows them",
        data,
      );
  }
}
