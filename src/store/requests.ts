import type { Command, LeaseRef } from "../kernel/commands";
import { type Ulid, ulidTimeMs } from "../kernel/ids";
import type { Ended, Lease } from "../kernel/lease";
import { refuse } from "../kernel/refusal";
import type { Descriptor, Platform } from "../platform/platform";
import { corrupt } from "./damage";
import { claimEventOf, decodeLine, type Line } from "./envelope";
import type { Layout } from "./layout";
import { eachLine, type RequestRecord, requestFromWire, requestOf } from "./replay";
import { archivedSegments, readSegment } from "./segments";
import type { Outcome } from "./submission";
import { leaseFromWire, list, object } from "./wire";

const EVENTS_OF: Readonly<Record<Command["kind"], readonly string[]>> = {
  acquire: ["claim.acquired", "claim.renewed"],
  renew: ["claim.renewed"],
  heartbeat: ["claim.heartbeat"],
  release: ["claim.released"],
  transfer: ["claim.transferred"],
  evict: ["claim.evicted"],
  stop: ["claim.stopped"],
  gc: ["claim.evicted"],
  upkeep: ["claim.renewed"],
  prove: [],
};

/**
 * What an operation with this id came to, if it was done. The segment is searched as text: ids are rare, and
 * the checkpoint at its start carries those of the last day, so there is no second index to keep true.
 */
export async function findRequest(
  platform: Platform,
  layout: Layout,
  log: { readonly fd: Descriptor; readonly size: number },
  requestId: Ulid,
): Promise<RequestRecord | null> {
  let found: RequestRecord | null = null;
  let startedMs = 0;
  await eachLine(platform.files, log.fd, 0, log.size, (lineText, offset) => {
    if (found !== null || (offset > 0 && !lineText.includes(requestId))) return;
    const line = decodeLine(platform.digest, lineText);
    // It may be the very line that says that it was done.
    if (line === null) throw corrupt({ offset, sequence: 0, why: "a line is torn or altered" }, layout.log);
    if (offset === 0) startedMs = Date.parse(line.timestamp);
    found = inLine(line, requestId);
  });
  if (found !== null || ulidTimeMs(requestId) > startedMs) return found;
  return inArchive(platform, layout, requestId);
}

/**
 * An operation whose caller gave no id has one all the same, and an unknown outcome names it for the retry.
 * Checkpoints do not carry those: there is one for every line.
 */
async function inArchive(platform: Platform, layout: Layout, requestId: Ulid): Promise<RequestRecord | null> {
  for (const name of (await archivedSegments(platform.files, layout)).reverse()) {
    let found: RequestRecord | null = null;
    let startedMs = Number.POSITIVE_INFINITY;
    await readSegment(platform, `${layout.archive}/${name}`, (line) => {
      if (line.type === "log.checkpoint") startedMs = Date.parse(line.timestamp);
      found ??= inLine(line, requestId);
    });
    if (found !== null || ulidTimeMs(requestId) > startedMs) return found;
  }
  return null;
}

function inLine(line: Line, requestId: Ulid): RequestRecord | null {
  const { type, payload } = line;
  if (type === "log.checkpoint") {
    const wire = list(payload, "requests").find((r) => object(r)["request_id"] === requestId);
    return wire === undefined ? null : requestFromWire(wire);
  }
  if (payload["request_id"] !== requestId && payload["operation_id"] !== requestId) return null;
  return requestOf(line, requestId, claimEventOf(line));
}

/** The answer the first call got, or a refusal when the id was used for something else. */
export function repeatOutcome(record: RequestRecord, command: Command): Outcome {
  const { requestId, type, leases, ended } = record;
  if (EVENTS_OF[command.kind].includes(type) && isByAndAbout(record, command))
    return { done: true, leases, ended, changed: false, replayed: true };
  const refusal = refuse("E_USAGE", `request id ${requestId} was used for another operation (${type})`, {
    hint: "make a new id for a new operation",
    data: { request_id: requestId, event_type: type, agent_id: record.agentId },
  });
  return { done: false, refusal, queue: null };
}

/**
 * The same for whoever has never got the answer: whole, as if nothing had come between. Of what the operation ended the line has
 * only names; the leases are in the lines before it.
 */
export async function unheardOutcome(
  platform: Platform,
  layout: Layout,
  log: { readonly fd: Descriptor; readonly size: number },
  record: RequestRecord,
  command: Command,
): Promise<Outcome> {
  const outcome = repeatOutcome(record, command);
  if (!outcome.done) return outcome;
  const isEnding = command.kind === "release" || command.kind === "evict";
  const leases = isEnding ? await endedLeases(platform, layout, log, record.ended) : outcome.leases;
  return { ...outcome, leases, changed: true, replayed: false };
}

async function endedLeases(
  platform: Platform,
  layout: Layout,
  log: { readonly fd: Descriptor; readonly size: number },
  ended: readonly Ended[],
): Promise<Lease[]> {
  const missing = new Set<string>(ended.map(({ leaseId }) => leaseId));
  const found = new Map<string, Lease>();
  const take = (line: Line | null) => {
    if (line === null || (line.type !== "log.checkpoint" && claimEventOf(line) === null)) return;
    for (const lease of list(line.payload, "leases").map(leaseFromWire))
      if (missing.has(lease.leaseId)) found.set(lease.leaseId, lease);
  };
  const foundHere = () => {
    for (const id of found.keys()) missing.delete(id);
  };
  await eachLine(platform.files, log.fd, 0, log.size, (lineText, offset) => {
    if (offset === 0 || [...missing].some((id) => lineText.includes(id)))
      take(decodeLine(platform.digest, lineText));
  });
  foundHere();
  // The segment that ended a lease has it in full; the log may have been rotated more than once since.
  for (const name of (await archivedSegments(platform.files, layout)).reverse()) {
    if (missing.size === 0) break;
    await readSegment(platform, `${layout.archive}/${name}`, take);
    foundHere();
  }
  return ended.flatMap(({ leaseId }) => found.get(leaseId) ?? []);
}

/** Somebody else's success, or one with something else, must never be taken for one's own. */
function isByAndAbout(record: RequestRecord, command: Command): boolean {
  if (record.agentId !== command.actor.agentId) return false;
  const touched = [...record.leases, ...record.ended];
  if (command.kind === "acquire")
    return command.keys.every(({ key }) => record.leases.some((lease) => lease.key === key));
  const names = (ref: LeaseRef) =>
    touched.some((t) => (ref.key === null ? t.leaseId === ref.leaseId : t.key === ref.key));
  if (command.kind === "transfer") return names(command.lease);
  return command.kind === "gc" || command.leases.every(names);
}
