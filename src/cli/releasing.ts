import type { Change } from "../coordinator/contract";
import type { Workspace } from "../coordinator/workspace";
import { orThrow } from "../errors/cotenant-error";
import type { LeaseRef } from "../kernel/commands";
import { printable } from "../kernel/ids";
import { checkText } from "../kernel/policy";
import type { Context, Output, Parsed } from "./command";
import { proof } from "./holding";
import { sayJson, tellSay } from "./ledger";
import { leaseJson, leasesData } from "./render";

export async function releaseLeases(
  parsed: Parsed,
  workspace: Workspace,
  refs: readonly LeaseRef[],
): Promise<Change> {
  const reason = parsed.text("reason") ?? null;
  orThrow(checkText(reason, "reason"));
  const options = { ...(await proof(workspace, parsed)), reason };
  const session = await workspace.session("write");
  return session.release(refs, options);
}

export async function release(
  context: Context,
  parsed: Parsed,
  workspace: Workspace,
  refs: readonly LeaseRef[],
): Promise<Output> {
  const { leases, replayed, ledger } = await releaseLeases(parsed, workspace, refs);
  tellSay(workspace, ledger);
  const text = leases.map((lease) => `released ${printable(lease.key)}`).join("\n");
  return {
    data: { ...leasesData(leases.map((lease) => leaseJson(lease))), replayed, ...sayJson(ledger) },
    text: context.quiet ? "" : text,
  };
}
