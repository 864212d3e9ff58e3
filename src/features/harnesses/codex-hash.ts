import type { Digest } from "../../platform/platform";
import type { Table } from "./settings-layers";

/** Codex's limits for a hook, in seconds. */
const USUAL_TIMEOUT = 600;
const END_TIMEOUT = 1;
const LONGEST_END = 3;
/** Events for which it overlooks a matcher. */
const WITHOUT_MATCHER = ["UserPromptSubmit", "Stop"];
const USUAL_CONTEXT_LIMIT = 2_500;

/**
 * What Codex remembers when a person agrees to a hook: a hash of the definition as it understands it, so that one hook has
 * the same in JSON and in TOML. As in its `hook_hash` (codex-rs/hooks/src/engine/discovery.rs): JSON without blanks, names
 * in alphabetical order, what is not given left out. `commandWindows`, which replaces the command there, is not looked at.
 */
export function codexHash(digest: Digest, event: string, group: Table, handler: Table): string {
  const { command, statusMessage, additionalContextLimit: limit } = handler;
  const { matcher } = group;
  const identity = {
    event_name: codexLabel(event),
    hooks: [
      {
        additionalContextLimit:
          limit === undefined || Number(limit) === USUAL_CONTEXT_LIMIT ? undefined : Number(limit),
        async: handler["async"] === true,
        command,
        statusMessage: statusMessage ?? undefined,
        timeout: timeoutOf(event, handler["timeout"]),
        type: "command",
      },
    ],
    matcher: WITHOUT_MATCHER.includes(event) ? undefined : (matcher ?? undefined),
  };
  return `sha256:${digest.sha256(JSON.stringify(identity))}`;
}

function timeoutOf(event: string, given: unknown): number {
  const isEnd = event === "SessionEnd";
  const wanted = given == null ? (isEnd ? END_TIMEOUT : USUAL_TIMEOUT) : Number(given);
  return Math.max(1, isEnd ? Math.min(wanted, LONGEST_END) : wanted);
}

/** An event's name in the key under which Codex remembers a hook. */
export function codexLabel(event: string): string {
  return event.replace(/\B[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}
