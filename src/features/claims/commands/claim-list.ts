import type { Command } from "../../../cli/grammar/command";
import { statusJsonIn } from "../../../cli/terminal/render";
import { isLandingKey } from "../../../kernel/landing-right";
import { claimsText, elsewhereJson } from "../../ledger/commands/ledger";
import { ledgerView } from "../../ledger/workers";
import { callerOrNull } from "./caller";

export const command: Command = {
  usage: "claim list",
  about: "Lists active claims, with the fields of the flat index that 'gc' writes to claims.index.json.",
  flags: {},
  examples: ["cotenant claim list --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { head } = await workspace.coordinator.snapshot();
    const statuses = (await workspace.coordinator.list()).filter(
      ({ lease }) => lease.key.startsWith("issue:") && !isLandingKey(lease.key),
    );
    const view = await ledgerView(workspace);
    const active = statuses.map(statusJsonIn(view));
    return {
      data: {
        schema_version: 1,
        generated_at: new Date(workspace.surroundings.platform.clock.wallMs()).toISOString(),
        sequence: head.sequence,
        stale_threshold_secs: workspace.config.policy.staleThresholdSecs,
        // Under both names: the seed's, and the one every command of ours has.
        active,
        leases: active,
        ...elsewhereJson(view),
      },
      text: claimsText(context.terminal, statuses, await callerOrNull(workspace), view),
    };
  },
};
