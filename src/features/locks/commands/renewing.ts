import type { Context, Flag, Output, Parsed } from "../../../cli/grammar/command";
import { leaseJson, leasesData } from "../../../cli/terminal/render";
import type { Change } from "../../../coordinator/contract";
import type { Workspace } from "../../../coordinator/workspace";
import { orThrow } from "../../../errors/cotenant-error";
import type { LeaseRef } from "../../../kernel/commands";
import { printable } from "../../../kernel/ids";
import { checkText, checkTtl } from "../../../kernel/policy";
import { callingProcess } from "../../guard/calling-process";
import { tellSay } from "../../ledger/commands/ledger";
import { ledgerJson } from "../../ledger/commands/output";
import { lasting } from "./acquiring";
import { givenReason, proof } from "./holding";

export const RENEW_FLAGS: Readonly<Record<string, Flag>> = {
  ttl: { value: "<secs>", meaning: "count anew from now, for this long (default: the lease's own TTL)" },
  "override-max": { meaning: "go past the total lifetime; needs --reason" },
  reason: { value: "<text>", meaning: "why; logged" },
};

/** With everything that can be wrong with the words alone refused before anything is written. */
export async function renewLeases(
  parsed: Parsed,
  workspace: Workspace,
  refs: readonly LeaseRef[],
): Promise<Change> {
  const options = {
    ...(await proof(workspace, parsed)),
    ttlSecs: parsed.whole("ttl") ?? null,
    overrideMax: parsed.has("override-max"),
    reason: parsed.text("reason") ?? null,
  };
  if (options.overrideMax) givenReason(parsed, "--override-max");
  const { agentId } = await workspace.agent();
  orThrow(checkTtl(options.ttlSecs ?? 0, agentId, workspace.config.policy));
  orThrow(checkText(options.reason, "reason"));
  const session = await workspace.session("write");
  const holder = await callingProcess(workspace.surroundings.platform.processes);
  return session.renew(refs, { ...options, holder });
}

export async function renew(
  context: Context,
  parsed: Parsed,
  workspace: Workspace,
  refs: readonly LeaseRef[],
): Promise<Output> {
  const { leases, replayed, ledger } = await renewLeases(parsed, workspace, refs);
  tellSay(workspace, ledger);
  const text = leases.map((lease) => `renewed ${printable(lease.key)}, ${lasting(lease)}`).join("\n");
  return {
    data: { ...leasesData(leases.map((lease) => leaseJson(lease))), replayed, ...ledgerJson(ledger) },
    text: context.quiet ? "" : text,
  };
}
