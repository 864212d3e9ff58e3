import { Workspace } from "../../coordinator/workspace";
import { CHECKS } from "../../doctor/checks";
import { strictSnapshotsCheck } from "../../doctor/checks/snapshots";
import { diagnose } from "../../doctor/diagnose";
import { exitOf } from "../../doctor/finding";
import { examine } from "../../doctor/patient";
import { CotenantError } from "../../errors/cotenant-error";
import { nodeTrees } from "../../platform/node/trees";
import { darkroomIn } from "../../snapshots/darkroom";
import { repair } from "../../snapshots/repairing";
import type { Command, Context, Parsed } from "../command";
import { findingsOutput } from "../findings";

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
    const strict = strictSnapshotsCheck({ git: machine.git, trees: nodeTrees() });
    const checks = parsed.has("strict")
      ? CHECKS.map((check) => (check.name === strict.name ? strict : check))
      : CHECKS;
    const findings = await diagnose(await examine(machine), checks);
    const output = findingsOutput(context, findings, {
      exit: exitOf(findings),
      fine: "everything is fine",
      ...(parsed.has("repair") ? { data: { repaired } } : {}),
    });
    const lines = repaired.map((words) => `repaired: ${words}`);
    return { ...output, text: [...lines, output.text].filter(Boolean).join("\n") };
  },
};

async function mend(context: Context, parsed: Parsed): Promise<string[]> {
  const workspace = await Workspace.open(context.surroundings(), {
    agentId: parsed.text("agent-id"),
    session: parsed.text("session"),
    allowNetworkFs: parsed.has("allow-network-fs"),
    doing: "doctor",
  });
  return repair(await darkroomIn(workspace, nodeTrees()));
}
