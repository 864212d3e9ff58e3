import type { Workspace } from "../../coordinator/workspace";
import { issuesIn } from "../../issues/desk";
import { tokenSeen } from "../../issues/stamps";
import { recover } from "../../store/recover";
import type { Command } from "../command";
import { count } from "../render";

export const command: Command = {
  usage: "recover",
  about:
    "Mends a damaged log: salvages every whole line into a new segment, keeps the damaged file in the archive,\nand starts fencing tokens far above any that was ever given. Does nothing when nothing is wrong.",
  flags: {},
  examples: ["cotenant recover"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { actor } = await workspace.session("write");
    const { processes } = workspace.surroundings.platform;
    const logActor = { ...actor, host: processes.host(), pid: processes.self().pid };
    const report = await recover(workspace.store, logActor, await highestSeen(workspace));
    const data = {
      recovered: report.recovered,
      damage: report.damage === null ? null : { offset: report.damage.offset, why: report.damage.why },
      salvaged_lines: report.salvagedLines,
      leases: report.leases,
      leases_from_index: report.leasesFromIndex,
      next_token: report.nextToken,
      kept_as: report.keptAs === null ? null : `${workspace.store.layout.archive}/${report.keptAs}`,
    };
    const text = report.recovered
      ? [
          `recovered: ${count(report.salvagedLines, "whole line")} salvaged, ${count(report.leases, "lease")} standing`,
          ...(report.leasesFromIndex === 0
            ? []
            : [`  ${count(report.leasesFromIndex, "lease")} known from the index alone`]),
          `  the next fencing token is ${report.nextToken}`,
          ...(data.kept_as === null ? [] : [`  the damaged file is kept as ${data.kept_as}`]),
        ].join("\n")
      : `nothing to recover: ${count(report.salvagedLines, "line")}, all whole`;
    return { data, text: context.quiet ? "" : text };
  },
};

/** What was written tells of tokens that the log may have lost. Where it cannot be read, the log has to do. */
async function highestSeen(workspace: Workspace): Promise<number> {
  try {
    const reader = await issuesIn(workspace);
    const found = await Promise.all((await reader.ids()).map((id) => reader.find(id)));
    return tokenSeen(found.flatMap((copy) => (copy !== null && "issue" in copy ? copy.issue : [])));
  } catch {
    return 0;
  }
}
