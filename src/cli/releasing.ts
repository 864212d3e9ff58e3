import type { Change } from "../coordinator/contract";
import type { Workspace } from "../coordinator/workspace";
import { orThrow } from "../errors/cotenant-error";
import { dirtyPaths, pathspecsOf } from "../identity/dirty-paths";
import type { LeaseRef } from "../kernel/commands";
import { printable } from "../kernel/ids";
import { nameOf } from "../kernel/keys";
import type { Lease } from "../kernel/lease";
import { checkText } from "../kernel/policy";
import type { Context, Output, Parsed } from "./command";
import { proof } from "./holding";
import { sayJson, tellSay } from "./ledger";
import { count, leaseJson, leasesData } from "./render";

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
    data: { ...leasesData(leases.map((lease) => leaseJson(lease))), replayed, ...sayJson(ledger) },
    text: context.quiet ? "" : text,
  };
}
