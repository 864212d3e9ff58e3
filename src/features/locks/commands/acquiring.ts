import type { Context, Flag, Output, Parsed } from "../../../cli/grammar/command";
import { interruptibly } from "../../../cli/terminal/interrupts";
import { leaseJson, leasesData } from "../../../cli/terminal/render";
import type { Grant } from "../../../coordinator/contract";
import { refuseRuled } from "../../../coordinator/path-rules";
import type { Acquired, Session } from "../../../coordinator/session";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, orThrow } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import type { LeaseKey } from "../../../kernel/keys";
import type { Holder, Lease, Reach } from "../../../kernel/lease";
import { checkIndefinite, checkText, checkTtl } from "../../../kernel/policy";
import { count, duration } from "../../../kernel/printing";
import { callingProcess, twinOf } from "../../guard/calling-process";
import { tellSay, withLedger } from "../../ledger/commands/ledger";
import { ledgerJson } from "../../ledger/commands/output";
import { CHANGE_FLAGS, requestId } from "./holding";

/** What `claim acquire`, `lock acquire` and `lock steal` have in common. */
export const ACQUIRE_FLAGS: Readonly<Record<string, Flag>> = {
  ...CHANGE_FLAGS,
  ttl: {
    value: "<secs>",
    meaning: "how long it lasts unless renewed (default 600); 0 with --reason: no expiry",
  },
  wait: { meaning: "wait in the queue when somebody else holds it" },
  timeout: { value: "<secs>", meaning: "how long to wait (default 300)" },
  reason: { value: "<text>", meaning: "why; shown to others and logged" },
  note: { value: "<text>", meaning: "a remark for whoever looks" },
  "print-secret": { meaning: "print the secret that proves the lease, for scripts" },
};

const DEFAULT_WAIT_SECS = 300;
const MAX_WAIT_SECS = 7 * 86_400;

export interface Wish {
  readonly keys: readonly { readonly key: LeaseKey; readonly reach: Reach }[];
  readonly steal: boolean;
  readonly ttlSecs?: number;
  readonly aboveToken?: number;
  /** Asked when it is granted: throws, and gives it back, where it may not be had any more. */
  readonly confirm?: (session: Session, grant: Acquired) => Promise<void>;
  /** How a lease is called in this command's words. */
  readonly noun: "claim" | "lock";
}

export async function acquire(
  context: Context,
  parsed: Parsed,
  workspace: Workspace,
  wish: Wish,
): Promise<Output> {
  const options = await readOptions(parsed, workspace, wish);
  await refuseRuled(
    workspace,
    wish.keys.map(({ key }) => key),
  );
  const timeoutMs = waitSecs(parsed) * 1000;
  const session = await workspace.session("write");
  const onWait = ({ ahead, message }: { ahead: number; message: string }) => {
    if (!context.quiet) context.note(`waiting as number ${ahead + 1}: ${message}`);
  };
  const holder = await callingProcess(workspace.surroundings.platform.processes);
  const grant = await interruptibly(context, takesLong(workspace, parsed), async (signal) => {
    const interrupted = signal === undefined ? {} : { signal };
    const granted = await session.acquire(wish.keys, {
      ...options,
      holder,
      steal: wish.steal,
      aboveToken: wish.aboveToken ?? 0,
      isOffline: parsed.has("offline"),
      ...(signal === undefined ? {} : { interrupted: signal }),
      wait: parsed.has("wait") ? { timeoutMs, onWait, ...interrupted } : null,
    });
    await wish.confirm?.(session, granted);
    return granted;
  });
  tellSay(workspace, grant.ledger);
  await tellOfTwin(
    workspace,
    holder,
    grant.leases.filter((lease) => !grant.fresh.includes(lease)),
  );
  tellOfOldWords(workspace, options, grant);
  return grantOutput(context, parsed, session, { ...grant, ...withLedger(workspace, grant) }, wish.noun);
}

/** Whoever waits, or asks a remote, may be interrupted. */
export function takesLong({ config }: Workspace, parsed: Parsed): boolean {
  return parsed.has("wait") || config.values["sync.ledger_branch"] !== null;
}

/** A lease that stands is not written anew: its reason stays, and whoever gave another must hear so. */
function tellOfOldWords(
  workspace: Workspace,
  { reason, note }: { readonly reason: string | null; readonly note: string | null },
  { leases, fresh, replayed }: Acquired,
): void {
  if (replayed) return;
  for (const lease of leases.filter((one) => !fresh.includes(one)))
    for (const [word, given, kept] of [
      ["reason", reason, lease.reason],
      ["note", note, lease.note],
    ] as const)
      if (given !== null && given !== kept)
        workspace.warnings.push(
          `${printable(lease.key)} was yours already and keeps ${kept === null ? `no ${word}` : `its ${word} "${printable(kept, 100)}"`}: release it first to take it with another`,
        );
}

/** What one agent is given is given to everybody of its name: whoever shares it without knowing must hear so. */
export async function tellOfTwin(
  workspace: Workspace,
  mine: Holder,
  /** Those that were held under the name before. */
  held: readonly Lease[],
  what = "THIS",
): Promise<void> {
  const twin = await twinOf(workspace.surroundings.platform.processes, mine, held);
  if (twin === null) return;
  const { agentId } = held[0]!;
  workspace.warnings.push(
    `ANOTHER LIVE PROCESS HOLDS ${what} UNDER THE SAME NAME: process ${twin.pid} uses ${agentId}, too. If that is another agent, nothing keeps the two apart: give each its own COTENANT_AGENT_ID or COTENANT_SESSION_ID`,
  );
}

/** A grant, and which of its leases it made. */
type Shown = Grant & Pick<Acquired, "fresh">;

/** What was granted, for people and for programs. */
export function grantOutput(
  context: Context,
  parsed: Parsed,
  session: Session,
  grant: Shown,
  noun: Wish["noun"],
): Output {
  const printed = parsed.has("print-secret") ? session.lastSecret : null;
  return {
    data: grantData(grant, printed),
    text: context.quiet ? (printed ?? "") : grantText(grant, noun, session, printed),
  };
}

/** All that can be wrong with the words alone, before anything is written. */
export async function readOptions(
  parsed: Parsed,
  workspace: Workspace,
  wish: Pick<Wish, "ttlSecs" | "keys" | "noun">,
) {
  // What is wrong with the words comes before what the policy says of them.
  waitSecs(parsed);
  const request = requestId(workspace, parsed);
  const ttlSecs = parsed.whole("ttl") ?? wish.ttlSecs ?? (await workspace.usualTtlSecs(wish.noun));
  const reason = parsed.text("reason") ?? null;
  const note = parsed.text("note") ?? null;
  orThrow(checkText(reason, "reason") ?? checkText(note, "note"));
  const { agentId } = await workspace.agent();
  orThrow(checkTtl(ttlSecs, agentId, workspace.config.policy));
  // What others hold without expiry is looked at later, under the mutex; all else can be said now.
  const keys = wish.keys.map(({ key }) => key);
  if (ttlSecs === 0) orThrow(checkIndefinite(keys, agentId, reason, [], workspace.config.policy));
  return { ttlSecs, reason, note, requestId: request };
}

/** How long to wait at most, if at all. */
export function waitSecs(parsed: Parsed): number {
  const secs = parsed.whole("timeout") ?? DEFAULT_WAIT_SECS;
  if (parsed.text("timeout") !== undefined && !parsed.has("wait")) {
    throw new CotenantError("E_USAGE", "--timeout says how long to wait, but --wait is missing", {
      hint: "add --wait",
    });
  }
  if (secs > MAX_WAIT_SECS) {
    throw new CotenantError("E_LIMIT", `--timeout ${secs} is over the limit of ${MAX_WAIT_SECS} s`, {
      hint: "wait for less, and ask again when that is over",
    });
  }
  return secs;
}

function grantData(grant: Grant, secret: string | null): Record<string, unknown> {
  return {
    ...leasesData(grant.leases.map((lease) => leaseJson(lease))),
    changed: grant.changed,
    replayed: grant.replayed,
    waited_secs: Math.round(grant.waitedMs / 1000),
    ...ledgerJson(grant.ledger),
    ...(secret === null ? {} : { secret }),
  };
}

function grantText(grant: Shown, noun: Wish["noun"], session: Session, secret: string | null): string {
  const { leases } = grant;
  const lines = leases.map(
    (lease) =>
      `${verb(grant, lease)} ${printable(lease.key)} for ${session.actor.agentId}, ${lasting(lease)}${provisional(grant, lease)}`,
  );
  for (const lease of leases) {
    lines.push(`  lease ${lease.leaseId}, token ${lease.fencingToken}`);
    // Of one that is held for longer, it is an old story.
    for (const from of grant.fresh.includes(lease) ? lease.stoleFrom : [])
      lines.push(`  taken over from ${from.agentId} (${from.why.replace("_", "-")})`);
  }
  if (secret !== null) lines.push(`  secret ${secret}`);
  const first = leases[0];
  if (grant.changed && leases.length === 1 && first !== undefined) {
    lines.push(
      `  renew: cotenant ${noun} renew ${first.leaseId}   release: cotenant ${noun} release ${first.leaseId}`,
    );
  } else if (leases.length > 1) lines.push(`  ${count(leases.length, "lease")} in one operation`);
  return lines.join("\n");
}

/** Said with the claim itself, not only beside it. */
function provisional({ ledger }: Grant, { key }: Lease): string {
  return ledger?.isOffline === true && key.startsWith("issue:") ? " (provisional)" : "";
}

function verb(grant: Shown, lease: Lease): string {
  if (grant.replayed) return "already done:";
  if (!grant.changed) return "already yours:";
  // One that was handed over becomes its new holder's without a renewal.
  const isRenewed = !grant.fresh.includes(lease) && lease.renewedAt.wallMs > lease.acquiredAt.wallMs;
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
