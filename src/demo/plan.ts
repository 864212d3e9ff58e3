import type { Ground } from "../../testing/checker/things";
import type { Prng } from "../../testing/simulator/prng";
import type { Wish } from "./messages";

/** One agent each; the first letters are the alphabet's, so that a log is easy to follow. */
export const NAMES: readonly string[] = [
  ...["ann", "ben", "cleo", "dora", "eli", "fay", "gus", "hana", "ivo", "jun", "kai"],
  ...["lea", "milo", "nora", "otto", "pia", "quin", "rosa", "sam", "tess", "uma", "vito"],
  ...["wren", "xena", "yann", "zoe", "abel", "bea", "cara", "dan", "eva", "finn"],
];

export const ISSUE_TITLES: readonly string[] = [
  "passkey login",
  "dark mode",
  "flaky upload",
  "CSV export",
  "rate limits",
  "onboarding",
];

export const FILES: readonly string[] = [
  "docs/guide.md",
  "src/api/login.ts",
  "src/api/users.ts",
  "src/ui/button.tsx",
  "src/ui/menu.tsx",
  "src/ui/theme.css",
];

const DIRECTORIES: readonly string[] = ["dir:docs", "dir:src", "dir:src/api", "dir:src/ui"];
const RESOURCES: readonly string[] = ["resource:dev-server", "resource:migrations"];

export function groundWith(issueIds: readonly string[]): Ground {
  return {
    issues: issueIds.map((id) => `issue:${id}`),
    files: FILES.map((path) => `file:${path}`),
    directories: DIRECTORIES,
    resources: RESOURCES,
  };
}

/** One piece of work of an agent that is left to itself. */
export interface Job extends Wish {
  readonly steps: readonly { readonly ms: number; readonly renew: boolean }[];
  readonly restMs: number;
}

export function chooseJob(chance: Prng, ground: Ground, pace: number): Job {
  const keys = chooseKeys(chance, ground);
  const isIssue = keys[0]!.startsWith("issue:");
  return {
    keys,
    bind: !isIssue && chance.chance(0.5) ? "process" : "ttl",
    ttlSecs: chance.between(2, 4),
    waitMs: chance.chance(0.6) ? chance.between(400, 1500) : null,
    steps: Array.from({ length: chance.between(1, 3) }, () => ({
      ms: chance.between(20, 120) * pace,
      renew: chance.chance(0.15),
    })),
    restMs: chance.between(20, 200) * pace,
  };
}

function chooseKeys(chance: Prng, ground: Ground): string[] {
  const roll = chance.below(100);
  if (roll < 35) return [chance.pick(ground.issues)];
  if (roll < 70) return chance.shuffle([...ground.files]).slice(0, chance.between(1, 3));
  if (roll < 85) return [chance.pick(ground.directories)];
  return [chance.pick(ground.resources)];
}

const INCIDENTS = ["kill-process", "stop", "evict", "transfer", "kill-ttl", "kill-anywhere"] as const;
export type Incident = (typeof INCIDENTS)[number];

/** Each kind once, those that a short run must not miss first; then whatever chance says. */
export function* chooseIncidents(chance: Prng, canStop: boolean): Generator<Incident> {
  const kinds = INCIDENTS.filter((kind) => canStop || kind !== "stop");
  yield* kinds;
  for (;;) yield chance.pick(kinds);
}

/** What an incident is about: the victim's key, and what its rival asks for, which may lie around it. */
export function chooseStakes(
  kind: Incident,
  chance: Prng,
  ground: Ground,
): { readonly held: string; readonly wanted: string } {
  if (kind === "evict" || kind === "transfer") {
    const held = chance.pick(ground.issues);
    return { held, wanted: held };
  }
  const held = chance.pick([...ground.files, ...ground.resources]);
  const around = ground.directories.filter((dir) => held.startsWith(`file:${dir.slice("dir:".length)}/`));
  return { held, wanted: around.length > 0 && chance.chance(0.5) ? chance.pick(around) : held };
}
