import type { Context, Output, Parsed } from "../../../cli/grammar/command";
import { interruptibly } from "../../../cli/terminal/interrupts";
import { leaseJson } from "../../../cli/terminal/render";
import type { Session } from "../../../coordinator/session";
import type { Workspace } from "../../../coordinator/workspace";
import type { Lease } from "../../../kernel/lease";
import { nodeTrees } from "../../../platform/node/trees";
import { ACQUIRE_FLAGS, lasting, readOptions, waitSecs } from "../../locks/commands/acquiring";
import { darkroomIn } from "../../snapshots/darkroom";
import { type Precaution, precaution } from "../../snapshots/precaution";
import { accessOf, refuseShared } from "../access";
import { lockRecord, stolenFrom, writerKey } from "../writer-lock";

/** What `worktree lock` and `worktree steal` have in common: taking over what has run out is a steal either way. */
export async function lockWorktree(context: Context, parsed: Parsed, workspace: Workspace): Promise<Output> {
  const { worktreeId } = (await workspace.worktree("read")).identity;
  const access = await accessOf(workspace.coordinator, worktreeId);
  refuseShared(access, worktreeId, "it has no writer lock");
  const key = writerKey(worktreeId);
  const keys = [{ key, reach: "repository" as const }];
  const options = await readOptions(parsed, workspace, { keys, noun: "lock" });
  const timeoutMs = waitSecs(parsed) * 1000;
  const session = await workspace.session("write");
  const grant = await interruptibly(context, parsed.has("wait"), (signal) =>
    session.acquire(keys, {
      ...options,
      wait: parsed.has("wait") ? { timeoutMs, ...(signal === undefined ? {} : { signal }) } : null,
    }),
  );
  await session.forgetLosses([key]);
  const lease = grant.leases.find((one) => one.key === key)!;
  const isStolen = grant.changed && !grant.replayed && stolenFrom(lease, session).length > 0;
  const kept = isStolen ? await precaution(await darkroomIn(workspace, nodeTrees()), "steal") : null;
  if (kept?.failure != null)
    workspace.warnings.push(`what was there before could not be kept: ${kept.failure.message}`);
  return grantedOutput(context, parsed, workspace, session, { lease, grant, kept });
}

export const LOCK_FLAGS = ACQUIRE_FLAGS;

function grantedOutput(
  context: Context,
  parsed: Parsed,
  workspace: Workspace,
  session: Session,
  granted: {
    readonly lease: Lease;
    readonly grant: { readonly changed: boolean; readonly replayed: boolean };
    readonly kept: Precaution | null;
  },
): Output {
  const { lease, grant, kept } = granted;
  const secret = parsed.has("print-secret") ? session.lastSecret : null;
  const snapshotId = kept?.snapshotId ?? null;
  const verb = !grant.changed ? "already yours" : lease.stoleFrom.length > 0 ? "taken over" : "yours";
  const lines = [
    `the writer lock of ${session.actor.worktreeId} is ${verb}, ${lasting(lease)}`,
    `  token ${lease.fencingToken}`,
    ...(grant.changed ? lease.stoleFrom : []).map(
      ({ agentId, why }) => `  taken over from ${agentId} (${why.replace("_", "-")})`,
    ),
    ...(snapshotId === null ? [] : [`  what was there is kept as snapshot ${snapshotId}`]),
    ...(secret === null ? [] : [`  secret ${secret}`]),
    "  renew: cotenant worktree renew   release: cotenant worktree unlock",
  ];
  return {
    data: {
      lock: lockRecord(lease, workspace.surroundings.platform.processes),
      lease: leaseJson(lease),
      changed: grant.changed,
      replayed: grant.replayed,
      snapshot_id: snapshotId,
      ...(secret === null ? {} : { secret }),
    },
    text: context.quiet ? (secret ?? "") : lines.join("\n"),
  };
}
