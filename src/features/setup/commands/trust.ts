import type { Command } from "../../../cli/grammar/command";
import { columns, count } from "../../../cli/terminal/render";
import { isConfigKey } from "../../../config/schema";
import { digestOf, type Trust, type Trusted } from "../../../config/trust";
import { tomlOf } from "../../../config/values";
import { mayTrust, revokeTrust } from "../../../coordinator/trusting";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { type GateDefinition, inspectRegistry, MAX_COMMAND } from "../../gates/registry";
import { trustGates, waitingGates } from "../../gates/trust";
import { untrustedJson } from "./config-show";
import { type Surveyed, survey } from "./configuring";
import { trustKeys } from "./trusting";

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
    const surveyed = await survey(context);
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
    const keys = waiting.map(({ key }) => key);
    const added = [...(await trustKeys(workspace, surveyed, keys)), ...(await trustGates(workspace, gates))];
    const lines = [
      ...waiting.map(({ key, value }) => `  ${key} = ${tomlOf(value)}`),
      ...gates.map((gate) => `  gate ${gate.key}: ${commandText(gate)}`),
    ];
    const text =
      added.length === 0 ? "nothing here needs trust" : ["trusted in this clone:", ...lines].join("\n");
    return { data: { trusted: added.map(entryJson) }, text: context.quiet ? "" : text };
  },
};

/** Trust keeps no values, only their sums: what is shown is what the file says now, if that is what was trusted. */
function trustedValue({ config, platform }: Surveyed, { subject, digest }: Trusted): string {
  const key = subject.replace(/^config:/, "");
  if (key === subject || !isConfigKey(key)) return "";
  const said = config.layers.find(({ source }) => source === "worktree")?.entries.get(key);
  if (said !== undefined && digestOf(platform.digest, said.value) === digest) return tomlOf(said.value);
  return "(not what the file says now)";
}

/** A registry that cannot be read names no command. */
async function gatesWithoutTrust(workspace: Workspace, trust: Trust): Promise<readonly GateDefinition[]> {
  const { platform } = workspace.surroundings;
  const reading = await inspectRegistry(platform, workspace.repository.worktreeRoot);
  if ("registry" in reading) return waitingGates(platform.digest, trust, reading.registry.gates.values());
  workspace.warnings.push(`the gates cannot be read: ${reading.broken}`);
  return [];
}

function commandText({ command, cwd }: GateDefinition): string {
  const where = cwd === null || cwd === "." ? "" : ` (in ${printable(cwd, 1_000)})`;
  return `${printable(command ?? "", MAX_COMMAND)}${where}`;
}

function entryJson({
  subject,
  digest,
  trustedAt,
  trustedBy,
}: {
  subject: string;
  digest: string;
  trustedAt: string;
  trustedBy: string;
}) {
  return { subject, digest, trusted_at: trustedAt, trusted_by: trustedBy };
}
