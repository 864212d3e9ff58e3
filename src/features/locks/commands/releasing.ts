import type { Context, Output, Parsed } from "../../../cli/grammar/command";
import { leaseJson, leasesData } from "../../../cli/terminal/render";
import type { Change } from "../../../coordinator/contract";
import type { Workspace } from "../../../coordinator/workspace";
import { orThrow } from "../../../errors/cotenant-error";
import { dirtyPaths, pathspecsOf } from "../../../identity/dirty-paths";
import type { LeaseRef } from "../../../kernel/commands";
import { byKey } from "../../../kernel/commands";
import { printable, type Ulid } from "../../../kernel/ids";
import { nameOf } from "../../../kernel/keys";
import { belongsTo, type Lease } from "../../../kernel/lease";
import { checkText } from "../../../kernel/policy";
import { count } from "../../../kernel/printing";
import { keyOfIssue } from "../../issues/claim-refs";
import { issuesIn, writerIn } from "../../issues/desk";
import { writeBack } from "../../issues/write-back";
import { tellSay } from "../../ledger/commands/ledger";
import { ledgerJson } from "../../ledger/commands/output";
import { proof } from "./holding";

/** Whoever takes it next finds them, and cannot know whose they are. */
async function uncommittedNotes(workspace: Workspace, leases: readonly Lease[]): Promise<string[]> {
  const { git } = workspace.surroundings;
  const { identity } = await workspace.worktree("read");
  const paths = leases
    .filter(({ key, worktreeId }) => /^(?:file|dir):/.test(key) && worktreeId === identity.worktreeId)
    .map(({ key }) => nameOf(key));
  if (paths.length === 0) return [];
  const { worktreeRoot } = workspace.repository;
  const dirty = await dirtyPaths(git, worktreeRoot, pathspecsOf(paths)).catch(() => []);
  const [first] = dirty;
  if (first === undefined) return [];
  const others = dirty.length === 1 ? "" : ` and ${count(dirty.length - 1, "other")}`;
  return [
    `${printable(first, 300)}${others} in what you released ${dirty.length === 1 ? "has" : "have"} uncommitted changes: whoever takes it next in this worktree finds them`,
  ];
}

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
  workspace.warnings.push(...(await uncommittedNotes(workspace, leases)));
  const text = leases.map((lease) => `released ${printable(lease.key)}`).join("\n");
  return {
    data: { ...leasesData(leases.map((lease) => leaseJson(lease))), replayed, ...ledgerJson(ledger) },
    text: context.quiet ? "" : text,
  };
}
