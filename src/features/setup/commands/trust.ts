import type { Command } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import type { Trusted } from "../../../config/trust";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import {
  type GateDefinition,
  gatesWithoutTrust,
  MAX_COMMAND,
  mayTrust,
  revokeTrust,
  survey,
  tomlOf,
  trustAll,
  trustedValue,
} from "../operations";
import { untrustedJson } from "./config";

export const command: Command = {
  usage: "trust [--list] [--revoke]",
  about:
    "Allows what this repository's .cotenant/config.toml loosens, and the commands that it and the gates name, in this\nclone: all that 'cotenant trust --list' shows as waiting, so read that first; what is not wanted is taken out of the\nfile instead. What changes later needs to be trusted again.",
  flags: {
    list: { meaning: "only show what waits for trust, and what is trusted" },
    revoke: { meaning: "trust nothing any more" },
  },
  examples: ["cotenant trust --list", "cotenant trust --agent-id human:me"],
  isForPeople: true,
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const surveyed = await survey(context.surroundings());
    const { config, trust } = surveyed;
    const waiting = untrustedJson(config);
    const gates = await gatesWithoutTrust(workspace, trust);
    const gatesJson = gates.map(({ key, command, cwd }) => ({ key, command, cwd }));
    if (parsed.has("list")) {
      const rows = [
        ...waiting.map(({ key, value }) => [key, tomlOf(value), "waits for trust"]),
        ...trust.entries.map((entry) => [
          printable(entry.subject.replace(/^config:/, "").replace(/^gate:/, "gate ")),
          trustedValue(surveyed, entry),
          `trusted by ${entry.trustedBy} at ${entry.trustedAt}`,
        ]),
      ];
      // Commands stand on lines of their own, which are never cut: nobody can trust what they are not shown.
      const text = [
        ...(rows.length === 0 ? [] : [columns(context.terminal, ["WHAT", "VALUE", ""], rows)]),
        ...gates.map((gate) => `gate ${gate.key} waits for trust, and runs: ${commandText(gate)}`),
      ];
      return {
        data: { waiting, waiting_gates: gatesJson, trusted: trust.entries.map(entryJson) },
        text: text.join("\n") || "nothing here needs trust",
      };
    }
    // It answers the warning, so it need not be repeated.
    workspace.warnings.length = 0;
    if (!(await mayTrust(workspace))) {
      throw new CotenantError("E_POLICY", "an agent cannot decide what this clone trusts", {
        hint: "a person runs 'cotenant trust' in a terminal, after 'cotenant trust --list'",
        data: { waiting, waiting_gates: gatesJson },
      });
    }
    if (parsed.has("revoke")) {
      const revoked = await revokeTrust(workspace);
      return {
        data: { revoked: revoked.map(entryJson) },
        text: context.quiet ? "" : `${count(revoked.length, "thing")} no longer trusted`,
      };
    }
    const added = await trustAll(workspace, surveyed, gates);
    const lines = [
      ...waiting.map(({ key, value }) => `  ${key} = ${tomlOf(value)}`),
      ...gates.map((gate) => `  gate ${gate.key}: ${commandText(gate)}`),
    ];
    const text =
      added.length === 0 ? "nothing here needs trust" : ["trusted in this clone:", ...lines].join("\n");
    return { data: { trusted: added.map(entryJson) }, text: context.quiet ? "" : text };
  },
};

function commandText({ command, cwd }: GateDefinition): string {
  const where = cwd === null || cwd === "." ? "" : ` (in ${printable(cwd, 1_000)})`;
  return `${printable(command ?? "", MAX_COMMAND)}${where}`;
}

function entryJson({ subject, digest, trustedAt, trustedBy }: Trusted) {
  return { subject, digest, trusted_at: trustedAt, trusted_by: trustedBy };
}
