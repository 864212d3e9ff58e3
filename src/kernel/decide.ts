import { decideAcquire } from "./acquire";
import type { Circumstances, Decision } from "./circumstances";
import type { Command } from "./commands";
import { decideEvict, decideGc } from "./evictions";
import {
  decideHeartbeat,
  decideProve,
  decideRelease,
  decideRenew,
  decideStop,
  decideUpkeep,
} from "./holder-commands";
import type { Refusal } from "./refusal";
import { decideTransfer } from "./transfer";
import type { View } from "./view";

export { type Circumstances, type Decision, standingOf } from "./circumstances";

/** What a command comes to: an event to write and apply, nothing to write, or a refusal that changes nothing. */
export function decide(view: View, command: Command, at: Circumstances): Decision | Refusal {
  switch (command.kind) {
    case "acquire":
      return decideAcquire(view, command, at);
    case "renew":
      return decideRenew(view, command, at);
    case "heartbeat":
      return decideHeartbeat(view, command, at);
    case "release":
      return decideRelease(view, command, at);
    case "transfer":
      return decideTransfer(view, command, at);
    case "evict":
      return decideEvict(view, command, at);
    case "stop":
      return decideStop(view, command, at);
    case "gc":
      return decideGc(view, at);
    case "upkeep":
      return decideUpkeep(view, command, at);
    case "prove":
      return decideProve(view, command, at);
  }
}
