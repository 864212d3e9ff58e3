import type { Command } from "../kernel/commands";
import type { Ulid } from "../kernel/ids";
import { refuse } from "../kernel/refusal";
import type { Descriptor, Platform } from "../platform/platform";
import { claimEventOf, decodeLine } from "./envelope";
import { eachLine, type RequestRecord, requestFromWire } from "./replay";
import type { Outcome } from "./store";
import { list, object } from "./wire";

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
};

/**
 * What an operation with this id came to, if it was done. The segment is searched as text: ids are rare, and
 * the checkpoint at its start carries those of the last day, so there is no second index to keep true.
 */
export async function findRequest(
  platform: Platform,
  fd: Descriptor,
  size: number,
  requestId: Ulid,
): Promise<RequestRecord | null> {
  let found: RequestRecord | null = null;
  await eachLine(platform.files, fd, 0, size, (lineText) => {
    if (found !== null || !lineText.includes(requestId)) return;
    const line = decodeLine(platform.digest, lineText);
    if (line === null) return;
    if (line.type === "log.checkpoint") {
      const wire = list(line.payload, "requests").find((r) => object(r)["request_id"] === requestId);
      if (wire !== undefined) found = requestFromWire(wire);
    } else if (line.payload["request_id"] === requestId || line.payload["operation_id"] === requestId) {
      const event = claimEventOf(line);
      if (event !== null) {
        found = {
          requestId,
          type: line.type,
          timestamp: line.timestamp,
          leases: event.leases,
          ended: event.ended,
        };
      }
    }
  });
  return found;
}

/** The answer the first call got, or a refusal when the id was used for something else. */
export function repeatOutcome(record: RequestRecord, command: Command): Outcome {
  if (!EVENTS_OF[command.kind].includes(record.type)) {
    const refusal = refuse(
      "E_USAGE",
      `request id ${record.requestId} was used for another operation (${record.type})`,
      {
        hint: "make a new id for a new operation",
        data: { request_id: record.requestId, event_type: record.type },
      },
    );
    return { done: false, refusal, queue: null };
  }
  return { done: true, leases: record.leases, ended: record.ended, changed: false, replayed: true };
}
