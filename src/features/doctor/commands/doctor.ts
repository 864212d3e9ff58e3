import type { Command, Context, Parsed } from "../../../cli/grammar/command";
import { count } from "../../../cli/terminal/render";
import { Workspace } from "../../../coordinator/workspace";
import { missedDaemon } from "../../../daemon/missed";
import { CotenantError } from "../../../errors/cotenant-error";
import { repair } from "../../snapshots/repair";
import { snapshotContext } from "../../snapshots/snapshot-context";
import { lookAround } from "../../watch/commands/status-report";
import { CHECKS } from "../checks";
import { strictSnapshotsCheck } from "../checks/snapshots";
import { diagnose } from "../diagnose";
import { exitOf, type Finding } from "../finding";
import { examine, type Place } from "../patient";
import { findingsOutput } from "./findings";

export const command: Command = {
  usage: "doctor [--strict [--repair]]",
  about:
    "Looks at everything that cotenant stands on, and says what is wrong and what to do next: Git, file system,\npermissions, clock, configuration, log, index, leases, queue, locks, secrets, leftovers, snapshots. Writes nothing,\ntakes no lock, and works where nothing else does. Exits with 0 when there is no error (warnings are none), with 13\nwhen data is damaged, else with 10. --strict also reads every object of every snapshot, and takes for an error what\nsomebody who died has left; --repair clears that up first. Nothing that anybody could miss is touched by it.",
  flags: {
    strict: { meaning: "read every snapshot whole, and let nothing pass" },
    repair: { meaning: "with --strict: clear up what is safe to clear up" },
  },
  examples: ["cotenant doctor", "cotenant doctor --json", "cotenant doctor --strict --repair"],
  words: { min: 0, max: 0 },
  leavesHooks: true,
  async run(context, parsed) {
    if (parsed.has("repair") && !parsed.has("strict"))
      throw new CotenantError("E_USAGE", "--repair goes with --strict", {
        hint: "cotenant doctor --strict --repair",
      });
    const machine = context.surroundings();
    const repaired = parsed.has("repair") ? await mend(context, parsed) : [];
    const strict = strictSnapshotsCheck({ git: machine.git, trees: await machine.tools.trees() });
    const checks = parsed.has("strict")
      ? CHECKS.map((check) => (check.name === strict.name ? strict : check))
      : CHECKS;
    const place: Place = {
      ...machine,
      missedDaemon: ({ repository, config }) =>
        missedDaemon({ repository, config, surroundings: context.surroundings() }),
    };
    const findings = await diagnose(await examine(place), checks);
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
    return (await lookAround(await open(context, parsed))).findings.length;
  } catch {
    return null;
  }
}

async function mend(context: Context, parsed: Parsed): Promise<string[]> {
  return repair(await snapshotContext(await open(context, parsed)));
}

/** Apart from the command's own, whose warnings the checks tell. */
function open(context: Context, parsed: Parsed): Promise<Workspace> {
  return Workspace.open(context.surroundings(), {
    agentId: parsed.text("agent-id"),
    session: parsed.text("session"),
    allowNetworkFs: parsed.has("allow-network-fs"),
    doing: "doctor",
  });
}
