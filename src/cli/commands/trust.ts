import { writeTrust } from "../../config/trust";
import { tomlOf } from "../../config/values";
import { CotenantError } from "../../errors/cotenant-error";
import type { Command } from "../command";
import { survey } from "../configuring";
import { columns, count } from "../render";
import { mayTrust, trustKeys } from "../trusting";
import { untrustedJson } from "./config-show";

export const command: Command = {
  usage: "trust [--list] [--revoke]",
  about:
    "Allows what this repository's .cotenant/config.toml loosens, and the commands it names, in this clone. Read what\n'cotenant trust --list' shows first. A value that changes later needs to be trusted again.",
  flags: {
    list: { meaning: "only show what waits for trust, and what is trusted" },
    revoke: { meaning: "trust nothing any more" },
  },
  examples: ["cotenant trust --list", "cotenant trust --agent-id human:me"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const surveyed = await survey(context);
    const { config, trust, platform } = surveyed;
    const waiting = untrustedJson(config);
    if (parsed.has("list")) {
      const rows = [
        ...waiting.map(({ key, value }) => [key, tomlOf(value), "waits for trust"]),
        ...trust.entries.map(({ subject, trustedBy, trustedAt }) => [
          subject.replace(/^config:/, ""),
          "",
          `trusted by ${trustedBy} at ${trustedAt}`,
        ]),
      ];
      const text =
        rows.length === 0
          ? "nothing here needs trust"
          : columns(context.terminal, ["WHAT", "VALUE", ""], rows);
      return { data: { waiting, trusted: trust.entries.map(entryJson) }, text };
    }
    // It answers the warning, so it need not be repeated.
    workspace.warnings.length = 0;
    if (!(await mayTrust(workspace))) {
      throw new CotenantError("E_POLICY", "an agent cannot decide what this clone trusts", {
        hint: "a person runs 'cotenant trust' in a terminal, after 'cotenant trust --list'",
        data: { waiting },
      });
    }
    if (parsed.has("revoke")) {
      if (trust.entries.length > 0) await writeTrust(platform, workspace.repository.controlDir, []);
      return {
        data: { revoked: trust.entries.map(entryJson) },
        text: context.quiet ? "" : `${count(trust.entries.length, "thing")} no longer trusted`,
      };
    }
    const added = await trustKeys(
      workspace,
      surveyed,
      waiting.map(({ key }) => key),
    );
    const text =
      added.length === 0
        ? "nothing here needs trust"
        : ["trusted in this clone:", ...waiting.map(({ key, value }) => `  ${key} = ${tomlOf(value)}`)].join(
            "\n",
          );
    return { data: { trusted: added.map(entryJson) }, text: context.quiet ? "" : text };
  },
};

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
