import type { Context, Output, Parsed } from "../../../cli/grammar/command";
import { interruptibly } from "../../../cli/terminal/interrupts";
import { leaseJson, leasesData } from "../../../cli/terminal/render";
import type { Change } from "../../../coordinator/contract";
import type { Acquired } from "../../../coordinator/session";
import { printable } from "../../../kernel/ids";
import type { Lease } from "../../../kernel/lease";
import { count, duration } from "../../../kernel/printing";
import type { Ticket } from "../../../kernel/tickets";
import { ledgerJson } from "../../ledger/commands/output";
import type { LeaseTerms } from "../operations";
import { termsFrom } from "./flags";

/** How a lease is called in a command's words. */
export type Noun = "claim" | "lock";

/** Asks for leases on the terms of the command line; what waits, or asks a remote, may be interrupted. */
export async function withTerms<T>(
  context: Context,
  parsed: Parsed,
  act: (terms: LeaseTerms) => Promise<T>,
): Promise<T> {
  const terms = termsFrom(parsed, ({ ahead, message }) => {
    if (!context.quiet) context.note(`waiting as number ${ahead + 1}: ${message}`);
  });
  const { config } = await context.workspace();
  const takesLong = terms.wait !== undefined || config.values["sync.ledger_branch"] !== null;
  return interruptibly(context, takesLong, (signal) => act({ ...terms, signal }));
}

/** What was granted, for people and for programs. */
export function grantOutput(context: Context, parsed: Parsed, granted: Acquired, noun: Noun): Output {
  const secret = parsed.has("print-secret") ? granted.secret : null;
  return {
    data: { ...grantJson(granted), ...(secret === null ? {} : { secret }) },
    text: context.quiet ? (secret ?? "") : grantText(granted, noun, secret),
  };
}

export function grantJson(granted: Acquired): Record<string, unknown> {
  const { leases, changed, replayed, waitedMs, ledger } = granted;
  return {
    ...leasesData(leases.map((lease) => leaseJson(lease))),
    changed,
    replayed,
    waited_secs: Math.round(waitedMs / 1000),
    ...ledgerJson(ledger),
  };
}

function grantText(granted: Acquired, noun: Noun, secret: string | null): string {
  const { leases, fresh, changed } = granted;
  const lines = leases.map(
    (lease) =>
      `${verb(granted, lease)} ${printable(lease.key)} for ${lease.agentId}, ${lasting(lease)}${provisional(granted, lease)}`,
  );
  for (const lease of leases) {
    lines.push(`  lease ${lease.leaseId}, token ${lease.fencingToken}`);
    // Of one that is held for longer, it is an old story.
    for (const from of fresh.includes(lease) ? lease.stoleFrom : [])
      lines.push(`  taken over from ${from.agentId} (${from.why.replace("_", "-")})`);
  }
  if (secret !== null) lines.push(`  secret ${secret}`);
  const first = leases[0];
  if (changed && leases.length === 1 && first !== undefined) {
    lines.push(
      `  renew: cotenant ${noun} renew ${first.leaseId}   release: cotenant ${noun} release ${first.leaseId}`,
    );
  } else if (leases.length > 1) lines.push(`  ${count(leases.length, "lease")} in one operation`);
  return lines.join("\n");
}

/** Said with the claim itself, not only beside it. */
function provisional({ ledger }: Acquired, { key }: Lease): string {
  return ledger?.isOffline === true && key.startsWith("issue:") ? " (provisional)" : "";
}

function verb({ replayed, changed, fresh }: Acquired, lease: Lease): string {
  if (replayed) return "already done:";
  if (!changed) return "already yours:";
  // One that was handed over becomes its new holder's without a renewal.
  const isRenewed = !fresh.includes(lease) && lease.renewedAt.wallMs > lease.acquiredAt.wallMs;
  if (isRenewed) return "renewed";
  return lease.stoleFrom.length > 0 ? "took over" : "acquired";
}

export function lasting(lease: Lease): string {
  if (lease.bind === "process") return "while its process runs";
  if (lease.expiresAt === null) return "indefinite";
  const until = `until ${new Date(lease.expiresAt.wallMs).toISOString()}`;
  const { ttlSecs, expiresAt, renewedAt } = lease;
  const lastsMs = expiresAt.wallMs - renewedAt.wallMs;
  // Asked for less than it had left: nothing shortens a lease.
  return lastsMs >= (ttlSecs + 1) * 1000
    ? `${duration(lastsMs)}, ${until} (a renewal never shortens; from the next one on ${duration(ttlSecs * 1000)})`
    : `${duration(Math.min(lastsMs, ttlSecs * 1000))}, ${until}`;
}

/** What became of leases, each told by a line. */
export function changeOutput(
  { quiet }: Pick<Context, "quiet">,
  change: Change,
  line: (lease: Lease) => string,
): Output {
  return { data: changeJson(change), text: quiet ? "" : change.leases.map(line).join("\n") };
}

export function changeJson({ leases, replayed, ledger }: Change): Record<string, unknown> {
  return { ...leasesData(leases.map((lease) => leaseJson(lease))), replayed, ...ledgerJson(ledger) };
}

export function renewOutput(context: Context, change: Change): Output {
  return changeOutput(context, change, (lease) => `renewed ${printable(lease.key)}, ${lasting(lease)}`);
}

export function releaseOutput(context: Context, change: Change): Output {
  return changeOutput(context, change, (lease) => `released ${printable(lease.key)}`);
}

export function ticketJson(ticket: Ticket): Record<string, unknown> {
  return {
    number: ticket.number,
    agent_id: ticket.agentId,
    session_id: ticket.sessionId,
    worktree_id: ticket.worktreeId,
    keys: ticket.keys.map(({ key }) => key),
    joined_at: new Date(ticket.joinedAt.wallMs).toISOString(),
  };
}

export function ticketKeys(ticket: Ticket): string {
  return ticket.keys.map(({ key }) => printable(key)).join(", ");
}
