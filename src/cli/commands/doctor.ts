import { CHECKS } from "../../doctor/checks";
import { diagnose } from "../../doctor/diagnose";
import { exitOf } from "../../doctor/finding";
import { examine } from "../../doctor/patient";
import type { Command } from "../command";
import { findingsOutput } from "../findings";

export const command: Command = {
  usage: "doctor",
  about:
    "Looks at everything that cotenant stands on, and says what is wrong and what to do next: Git, file system,\npermissions, clock, configuration, log, index, leases, queue, locks, secrets, leftovers. Writes nothing, takes no\nlock, and works where nothing else does. Exits with 0 when there is no error (warnings are none), with 13 when\ndata is damaged, else with 10.",
  flags: {},
  examples: ["cotenant doctor", "cotenant doctor --json"],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  async run(context) {
    const findings = await diagnose(await examine(context.surroundings()), CHECKS);
    return findingsOutput(context, findings, { exit: exitOf(findings), fine: "everything is fine" });
  },
};
