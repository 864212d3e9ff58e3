import { orThrow } from "../errors/cotenant-error";
import { type AgentId, parseAgentId, parseSessionId, type SessionId } from "../kernel/ids";
import { isRefusal } from "../kernel/refusal";
import type { Digest } from "../platform/platform";
import type { HarnessName } from "./harness";

/** The harness's own id where it is one of ours, too; else a hash that is the same every time. */
export function harnessSessionId(digest: Digest, raw: string): SessionId {
  const parsed = parseSessionId(raw);
  return isRefusal(parsed) ? orThrow(parseSessionId(digest.sha256(raw).slice(0, 32))) : parsed;
}

/** UUIDs of version 7, ULIDs and opencode's ids begin with the time: sessions of one minute would look alike. */
const BEGINS_WITH_TIME =
  /^(?:[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|[0-7][0-9A-HJKMNP-TV-Z]{25}|ses_[0-9A-Za-z]{8,})$/i;

/** `agent:<harness>-<8 of the session>`: the same agent again when the session is resumed. */
export function harnessAgentId(digest: Digest, harness: HarnessName, rawSession: string): AgentId {
  return orThrow(parseAgentId(`agent:${harness}-${eightOf(digest, rawSession)}`));
}

/** Qwen Code's begin with what they are for, and end with the call that started them. */
const BEGINS_WITH_KIND = /^(?!agent-)(?=.*[^0-9a-f-]).+-./i;

/** `<its agent>.<8 of its own id>`: a subagent is an agent of its own in its session. */
export function subagentId(digest: Digest, agentId: AgentId, rawSubagent: string): AgentId {
  const id = BEGINS_WITH_KIND.test(rawSubagent) ? rawSubagent.slice(-8) : rawSubagent;
  return orThrow(parseAgentId(`${agentId.slice(0, 90)}.${eightOf(digest, id)}`));
}

function eightOf(digest: Digest, raw: string): string {
  // Cursor's begin with a word that is the same in all.
  const id = harnessSessionId(digest, raw).replace(/^agent-(?=.{8})/, "");
  const eight = BEGINS_WITH_TIME.test(id) ? id.slice(-8) : id.slice(0, 8);
  return eight.replace(/:/g, "-");
}
