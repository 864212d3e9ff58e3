import type { Workspace } from "../coordinator/workspace";
import type { LeaseRef } from "../kernel/commands";
import { printable } from "../kernel/ids";
import type { Context, Output, Parsed } from "./command";
import { proof } from "./holding";
import { leaseJson, leasesData } from "./render";

export async function release(
  context: Context,
  parsed: Parsed,
  workspace: Workspace,
  refs: readonly LeaseRef[],
): Promise<Output> {
  const session = await workspace.session("write");
  const { leases, replayed } = await session.release(refs, {
    ...(await proof(workspace, parsed)),
    reason: parsed.text("reason") ?? null,
  });
  const text = leases.map((lease) => `released ${printable(lease.key)}`).join("\n");
  return {
    data: { ...leasesData(leases.map((lease) => leaseJson(lease))), replayed },
    text: context.quiet ? "" : text,
  };
}
