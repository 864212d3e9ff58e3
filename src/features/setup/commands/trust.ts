import type { Command } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import type { Trusted } from "../../../config/trust";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import {
  type GateDefinition,
  gateIn,
  MAX_COMMAND,
  tomlOf,
  trust,
  trustedValue,
  untrustedIn,
} from "../operations";

export const command: Command = {
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
    const action = parsed.has("list") ? "list" : parsed.has("revoke") ? "revoke" : undefined;
    const { surveyed, gates, changed } = await trust(await context.workspace(), { action });
    const waiting = untrustedIn(surveyed.config);
    if (action === "list") {
      const { entries } = surveyed.trust;
      const rows = [
        ...waiting.map(({ key, value }) => [key, tomlOf(value), "waits for trust"]),
        ...entries.map((entry) => [
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
        data: { waiting, waiting_gates: gates.map(gateIn), trusted: entries.map(entryJson) },
        text: text.join("\n") || "nothing here needs trust",
      };
    }
    if (action === "revoke")
      return {
        data: { revoked: changed.map(entryJson) },
        text: context.quiet ? "" : `${count(changed.length, "thing")} no longer trusted`,
      };
    const lines = [
      ...waiting.map(({ key, value }) => `  ${key} = ${tomlOf(value)}`),
      ...gates.map((gate) => `  gate ${gate.key}: ${commandText(gate)}`),
    ];
    const text =
      changed.length === 0 ? "nothing here needs trust" : ["trusted in this clone:", ...lines].join("\n");
    return { data: { trusted: changed.map(entryJson) }, text: context.quiet ? "" : text };
  },
};

function commandText({ command, cwd }: GateDefinition): string {
  const where = cwd === null || cwd === "." ? "" : ` (in ${printable(cwd, 1_000)})`;
  return `${printable(command ?? "", MAX_COMMAND)}${where}`;
}

function entryJson({ subject, digest, trustedAt, trustedBy }: Trusted) {
  return { subject, digest, trusted_at: trustedAt, trusted_by: trustedBy };
}
