import type { Command, Context, Parsed } from "../../../cli/grammar/command";
import { interruptibly } from "../../../cli/terminal/interrupts";
import { leaseJson } from "../../../cli/terminal/render";
import {
  ACQUIRE_FLAGS,
  HOLDER_FLAGS,
  REASON_FLAG,
  RENEW_FLAGS,
  releaseFrom,
  renewFrom,
  termsFrom,
} from "../../locks/commands/flags";
import { lasting } from "../../locks/commands/output";
import { type WriterLock, type WriterLocked, worktree } from "../operations";
import { lockRecord } from "../writer-lock";

const ONE_WORKTREE = { words: { min: 0, max: 1 }, completes: ["worktree"] } as const;

export const lock: Command = {
  positional: "[<worktree>]",
  about:
    "Takes a worktree's writer lock: until it is given back or runs out, nobody else takes snapshots there, restores\nthem in place or removes it. One that has run out is taken over, and what is there then is kept as a snapshot.",
  flags: ACQUIRE_FLAGS,
  examples: ["cotenant worktree lock", "cotenant worktree lock --ttl 1800 --wait --timeout 60"],
  ...ONE_WORKTREE,
  run: runLock,
};

export const renew: Command = {
  positional: "[<worktree>]",
  about:
    "Extends a writer lock that you hold. One that has run out is not renewed: lock it again, and look first.",
  flags: { ...HOLDER_FLAGS, ...RENEW_FLAGS },
  examples: ["cotenant worktree renew", "cotenant worktree renew --ttl 1800"],
  ...ONE_WORKTREE,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const request = { ...renewFrom(parsed, workspace), worktree: parsed.words[0] };
    const renewed = await worktree.renew(workspace, request);
    const text = `the writer lock of ${renewed.worktreeId} is yours, ${lasting(renewed.lease)}`;
    return { data: await lockJson(context, renewed), text: context.quiet ? "" : text };
  },
};

export const unlock: Command = {
  positional: "[<worktree>]",
  about: "Gives a writer lock back. It is free at once. Only its holder can.",
  flags: { ...HOLDER_FLAGS, ...REASON_FLAG },
  examples: ["cotenant worktree unlock"],
  ...ONE_WORKTREE,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const request = { ...releaseFrom(parsed, workspace), worktree: parsed.words[0] };
    const freed = await worktree.unlock(workspace, request);
    const text = `the writer lock of ${freed.worktreeId} is free`;
    return { data: await lockJson(context, freed), text: context.quiet ? "" : text };
  },
};

export const steal: Command = {
  positional: "[<worktree>]",
  about:
    "Takes over a writer lock that has run out. A live one cannot be stolen, by nobody. The new lock's token is higher,\nthe log says from whom it was taken, and what is in the worktree is kept as a snapshot first.",
  flags: ACQUIRE_FLAGS,
  examples: ["cotenant worktree steal"],
  ...ONE_WORKTREE,
  run: runLock,
};

/** Taking over what has run out is a steal either way. */
async function runLock(context: Context, parsed: Parsed) {
  const workspace = await context.workspace();
  const locked = await interruptibly(context, parsed.has("wait"), (signal) =>
    worktree.lock(workspace, { ...termsFrom(parsed), worktree: parsed.words[0], signal }),
  );
  const secret = parsed.has("print-secret") ? locked.secret : null;
  return {
    data: {
      ...(await lockJson(context, locked)),
      snapshot_id: locked.snapshotId,
      ...(secret === null ? {} : { secret }),
    },
    text: context.quiet ? (secret ?? "") : lockedLines(locked, secret).join("\n"),
  };
}

function lockedLines(locked: WriterLocked, secret: string | null): string[] {
  const { worktreeId, lease, changed, snapshotId } = locked;
  const verb = !changed ? "already yours" : lease.stoleFrom.length > 0 ? "taken over" : "yours";
  return [
    `the writer lock of ${worktreeId} is ${verb}, ${lasting(lease)}`,
    `  token ${lease.fencingToken}`,
    ...(changed ? lease.stoleFrom : []).map(
      ({ agentId, why }) => `  taken over from ${agentId} (${why.replace("_", "-")})`,
    ),
    ...(snapshotId === null ? [] : [`  what was there is kept as snapshot ${snapshotId}`]),
    ...(secret === null ? [] : [`  secret ${secret}`]),
    "  renew: cotenant worktree renew   release: cotenant worktree unlock",
  ];
}

async function lockJson(
  context: Context,
  { lease, changed, replayed }: WriterLock,
): Promise<Record<string, unknown>> {
  const { platform } = (await context.workspace()).surroundings;
  return { lock: lockRecord(lease, platform.processes), lease: leaseJson(lease), changed, replayed };
}
