import type { Command } from "../../../cli/grammar/command";
import { count } from "../../../cli/terminal/render";
import type { Workspace } from "../../../coordinator/workspace";
import { recover } from "../../../store/recover";
import { committedTokens } from "../../hooks/trailers-seen";
import { issuesIn } from "../../issues/desk";
import { tokenSeen } from "../../issues/stamps";

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
    const report = await recover(workspace.store, logActor, await tokensSeen(workspace));
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

/** What was written, and committed, tells of tokens that the log may have lost. Where it cannot be read, the log has to do. */
async function tokensSeen(workspace: Workspace): Promise<number[]> {
  const { git } = workspace.surroundings;
  const committed = await committedTokens(git, workspace.repository.worktreeRoot).catch(() => []);
  try {
    const reader = await issuesIn(workspace);
    const found = await Promise.all((await reader.ids()).map((id) => reader.find(id)));
    const issues = found.flatMap((copy) => (copy !== null && "issue" in copy ? copy.issue : []));
    return [...issues.map((issue) => tokenSeen([issue])), ...committed];
  } catch {
    return committed;
  }
}
