import { editDistance } from "../config/nearest";
import { ALIASES, canonicalName, GROUPS, LISTED } from "./lookup";

/** What people type who know it by another name, and what to say to them: to be read after "there is no such command". */
const KNOWN_AS: Readonly<Record<string, string>> = {
  unpause: meant("resume"),
  continue: meant("resume"),
  evict: meant("claim force-evict"),
  "lock evict": meant("claim force-evict"),
  "lock force-evict": meant("claim force-evict"),
  unlock: meant("lock release"),
  "lock unlock": meant("lock release"),
  log: meant("events"),
  logs: meant("events"),
  watch: meant("status --watch"),
  list: meant("status"),
  "daemon log": 'did you mean "daemon status", which names its log?',
  "daemon logs": 'did you mean "daemon status", which names its log?',
  "daemon restart": "run: cotenant daemon stop, then cotenant daemon start",
  "daemon reload": "run: cotenant daemon stop, then cotenant daemon start",
};

/** Commands that take something away, end it or stop it. Nobody is led to one by a typing error. */
const NEVER_SUGGESTED: ReadonlySet<string> = new Set([
  "agent uninstall",
  "claim force-evict",
  "config reset",
  "daemon stop",
  "deinit",
  "dep rm",
  "doc remove",
  "gate remove",
  "guard end",
  "guard stop",
  "hooks uninstall",
  "issue delete",
  "issue reject",
  "label rm",
  "lock steal",
  "pause",
  "restore",
  "snapshot prune",
  "worktree remove",
  "worktree steal",
]);

/** What to say of words that are no command; null where nothing is near. */
export function suggestionFor(typed: string): string | null {
  const words = typed.toLowerCase().split(" ");
  for (const known of [words.join(" "), words[0]!])
    if (Object.hasOwn(KNOWN_AS, known)) return KNOWN_AS[known]!;
  let best: { readonly name: string; readonly distance: number } | null = null;
  for (const name of [...LISTED, ...Object.keys(ALIASES)]) {
    if (NEVER_SUGGESTED.has(canonicalName(name))) continue;
    // Whoever names a group means a command of it.
    if (GROUPS.includes(words[0]!) && !name.startsWith(`${words[0]} `)) continue;
    const distance = distanceTo(words, name.split(" "));
    if (distance !== null && (best === null || distance < best.distance)) best = { name, distance };
  }
  return best === null ? null : meant(best.name);
}

/** Word by word: a long group's name must not make any two of its verbs look alike. What follows may be arguments. */
function distanceTo(typed: readonly string[], name: readonly string[]): number | null {
  if (typed.length < name.length) return null;
  let sum = 0;
  for (const [i, word] of name.entries()) {
    const limit = Math.max(1, Math.floor(typed[i]!.length / 3)) + 1;
    const distance = editDistance(typed[i]!, word, limit);
    if (distance >= limit) return null;
    sum += distance;
  }
  return sum;
}

function meant(name: string): string {
  return `did you mean "${name}"?`;
}
