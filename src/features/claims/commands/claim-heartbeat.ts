import type { Command } from "../../../cli/grammar/command";
import { leaseJson, leasesData } from "../../../cli/terminal/render";
import { claimRef } from "../../issues/commands/issues";
import { sayJson, tellSay } from "../../ledger/commands/ledger";
import { HOLDER_FLAGS, proof } from "../../locks/commands/holding";

export const command: Command = {
  usage: "claim heartbeat <issue|lease>",
  about: "Shows that work on a claim goes on. It moves the claim's last beat and nothing else.",
  flags: HOLDER_FLAGS,
  examples: ["cotenant claim heartbeat 7x3k"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const ref = await claimRef(workspace, parsed.words[0]!);
    const shown = await proof(workspace, parsed);
    const session = await workspace.session("write");
    const { leases, replayed, ledger } = await session.heartbeat([ref], shown);
    tellSay(workspace, ledger);
    try {
      await session.writeHeartbeat(workspace.store.layout, workspace.store.options.modes);
    } catch {
      // The beat itself is in the log; nothing depends on the file.
      workspace.warnings.push(`the heartbeat is logged, but its file could not be written`);
    }
    const text = `beat at ${new Date(leases[0]!.lastBeat.wallMs).toISOString()}`;
    return {
      data: { ...leasesData(leases.map((l) => leaseJson(l))), replayed, ...sayJson(ledger) },
      text: context.quiet ? "" : text,
    };
  },
};
