import type { Change } from "../coordinator/contract";
import type { Workspace } from "../coordinator/workspace";
import { orThrow } from "../errors/cotenant-error";
import { issuesIn, writerIn } from "../issues/desk";
import { writeBack } from "../issues/putting-back";
import type { LeaseRef } from "../kernel/commands";
import { printable, type Ulid } from "../kernel/ids";
import { nameOf } from "../kernel/keys";
import { belongsTo } from "../kernel/lease";
import { checkText } from "../kernel/policy";
import type { Context, Output, Parsed } from "./command";
import { proof } from "./holding";
import { keyOfIssue } from "./issues";
import { sayJson, tellSay } from "./ledger";
import { leaseJson, leasesData } from "./render";
import { byKey } from "./targets";

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

/** What was written under a claim goes with it. Nothing where the caller does not hold it: the release says why. */
export async function putBackClaim(parsed: Parsed, workspace: Workspace, ref: LeaseRef): Promise<void> {
  const [held] = await workspace.coordinator.find([ref]);
  const id = held?.lease.key.startsWith("issue:") === true ? (nameOf(held.lease.key) as Ulid) : null;
  if (held === undefined || id === null || held.standing !== "valid") return;
  const { secret = null } = await proof(workspace, parsed);
  const session = await workspace.session("write");
  if (secret === null && !belongsTo(held.lease, session.actor)) return;
  const reader = await issuesIn(workspace);
  const writer = await writerIn(workspace, reader);
  const claim = { id, holder: held.lease.agentId };
  const { failure } = await writeBack(writer, reader, claim, { secret, enforcement: "strict" });
  if (failure !== null) workspace.warnings.push(failure);
}

/** Of an issue that was just changed; nothing where the caller holds no claim on it. */
export async function releaseIfHeld(parsed: Parsed, workspace: Workspace, id: Ulid): Promise<boolean> {
  const ref = byKey(keyOfIssue(id));
  const [held] = await workspace.coordinator.find([ref]);
  const session = await workspace.session("write");
  const { secret = null } = await proof(workspace, parsed);
  if (held?.standing !== "valid" || (secret === null && !belongsTo(held.lease, session.actor))) return false;
  await putBackClaim(parsed, workspace, ref);
  const { ledger } = await session.release([ref], { secret, reason: parsed.text("reason") ?? null });
  tellSay(workspace, ledger);
  return true;
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
