import type { Command, Context, Parsed } from "../../../cli/grammar/command";
import { leaseJson, statusJson } from "../../../cli/terminal/render";
import { Workspace } from "../../../coordinator/workspace";
import { missedDaemonIn } from "../../../daemon/in-front";
import { missedDaemon } from "../../../daemon/missed";
import { usageError } from "../../../errors/cotenant-error";
import { count } from "../../../kernel/printing";
import { status } from "../../watch/operations/status";
import { gc as clearAway, diagnosis, exitOf, type Finding, mend, recoverLog, validate } from "../operations";
import { findingsOutput } from "./findings";

const PLAIN = { flags: {}, words: { min: 0, max: 0 } } as const;

export const doctor: Command = {
  ...PLAIN,
  about:
    "Looks at everything that cotenant stands on, and says what is wrong and what to do next: Git, file system,\npermissions, clock, configuration, log, index, leases, queue, locks, secrets, leftovers, snapshots. Writes nothing,\ntakes no lock, and works where nothing else does. Exits with 0 when there is no error (warnings are none), with 13\nwhen data is damaged, else with 10. --strict also reads every object of every snapshot, and takes for an error what\nsomebody who died has left; --repair clears that up first. Nothing that anybody could miss is touched by it.",
  flags: {
    strict: { meaning: "read every snapshot whole, and let nothing pass" },
    repair: { meaning: "with --strict: clear up what is safe to clear up" },
  },
  examples: ["cotenant doctor", "cotenant doctor --json", "cotenant doctor --strict --repair"],
  leavesHooks: true,
  async run(context, parsed) {
    if (parsed.has("repair") && !parsed.has("strict"))
      throw usageError("--repair goes with --strict", "cotenant doctor --strict --repair");
    const surroundings = context.surroundings();
    const repaired = parsed.has("repair") ? await mend(await open(context, parsed)) : [];
    const place = {
      ...surroundings,
      missedDaemon: (patient: Pick<Workspace, "repository" | "config">) =>
        missedDaemon({ ...patient, surroundings }),
    };
    const findings = await diagnosis(place, parsed.has("strict"));
    const things = context.json ? null : await forAPerson(context, parsed);
    const output = findingsOutput(context, findings, {
      exit: exitOf(findings),
      fine: fineWords(findings, things),
      besides:
        things === null || things === 0
          ? ""
          : `; 'cotenant status' lists ${count(things, "thing")} for a person`,
      ...(parsed.has("repair") ? { data: { repaired } } : {}),
    });
    const lines = repaired.map((words) => `repaired: ${words}`);
    return { ...output, text: [...lines, output.text].filter(Boolean).join("\n") };
  },
};

/** Without an error there may still be something to do. */
function fineWords(findings: readonly Finding[], things: number | null): string {
  const notes = findings.filter(({ level, next }) => level === "note" && next !== null).length;
  if (notes > 0) return `no errors, ${count(notes, "note")}`;
  return things === 0 ? "everything is fine" : "no errors";
}

/** How much `status` lists; null where it cannot be asked: why is told by the checks. */
async function forAPerson(context: Context, parsed: Parsed): Promise<number | null> {
  try {
    return (await status(await open(context, parsed))).findings.length;
  } catch {
    return null;
  }
}

/** Apart from the command's own, whose warnings the checks tell. */
function open(context: Context, parsed: Parsed): Promise<Workspace> {
  return Workspace.open(context.surroundings(), {
    agentId: parsed.text("agent-id"),
    session: parsed.text("session"),
    allowNetworkFs: parsed.has("allow-network-fs"),
    doing: "doctor",
    missedDaemon: missedDaemonIn,
  });
}

function validation(
  what: Parameters<typeof validate>[1],
  texts: Pick<Command, "about" | "examples">,
): Command {
  return {
    ...PLAIN,
    ...texts,
    async run(context) {
      const { findings, exit } = await validate(context.surroundings(), what);
      return findingsOutput(context, findings, { exit, fine: "valid", data: { valid: exit === 0 } });
    },
  };
}

export const validateLeases = validation("leases", {
  about:
    "Checks the leases and all that they stand on: every line of the log and its archive, the index against the log,\nleases that exclude each other, stale ones, agent ids used twice. Writes nothing. Exits with 13 when data is\ndamaged, with 1 when something has to be cleared up.",
  examples: ["cotenant validate leases", "cotenant validate --leases --json"],
});

export const validateConfig = validation("config", {
  about:
    "Checks every source of configuration, as 'cotenant config validate' does, and lists all that is wrong. Writes\nnothing. Exits with 10 when something is.",
  examples: ["cotenant validate config"],
});

export const validateDivergence = validation("divergence", {
  about:
    "Checks that the current history has the main branch's tip, as changes of configuration, types and gates need\nit. Writes nothing. Exits with 9 when it lacks commits.",
  examples: ["cotenant validate divergence", "cotenant validate --divergence"],
});

export const validateAll = validation("all", {
  about:
    "Checks configuration, gates, leases and issues, and that the current history has the main branch's tip. Writes\nnothing. Exits with 13 when data is damaged, with 10 when the configuration is wrong, with 9 when the history lacks\ncommits, with 1 when something has to be cleared up.",
  examples: ["cotenant validate all", "cotenant validate --all"],
});

export const recover: Command = {
  ...PLAIN,
  about:
    "Mends a damaged log: salvages every whole line into a new segment, keeps the damaged file in the archive,\nand starts fencing tokens far above any that was ever given. Does nothing when nothing is wrong.",
  examples: ["cotenant recover"],
  async run(context) {
    const workspace = await context.workspace();
    const report = await recoverLog(workspace);
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

export const gc: Command = {
  ...PLAIN,
  about:
    "Clears away: logs the end of lapsed leases, ends locks of worktrees that Git does not know any more, packs old log segments, forgets secrets that prove nothing any\nmore, and writes claims.index.json, a flat view for people with jq. Nothing depends on it running.",
  flags: { compact: { meaning: "also close the current log segment and start a new one" } },
  examples: ["cotenant gc"],
  async run(context, parsed) {
    const request = { compact: parsed.has("compact"), flat: statusJson };
    const { leases, packed, compacted } = await clearAway(await context.workspace(), request);
    const text = [
      `logged the end of ${count(leases.length, "lease")}`,
      ...(packed.length === 0 ? [] : [`packed ${count(packed.length, "log segment")}`]),
      ...(compacted ? ["started a new log segment"] : []),
    ].join("\n");
    return {
      data: { leases: leases.map((lease) => leaseJson(lease)), packed, compacted },
      text: context.quiet ? "" : text,
    };
  },
};
