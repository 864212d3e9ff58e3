import type { StandIn } from "../config/load";
import { isRecorded, markRecorded } from "../config/memory";
import type { ConfigMemory } from "../config/memory-place";
import { printable } from "../kernel/ids";
import type { LocalCoordinator } from "./local";
import type { Session } from "./session";

/** What people should know of a repository's file that cannot be read while rules are enforced. */
export function standInWarning({ problems, isRemembered }: StandIn): string {
  const [first] = problems;
  const others = problems.length === 1 ? "" : ` (and ${problems.length - 1} more)`;
  const holds = isRemembered ? "what it last said holds" : "only what can be understood of it holds";
  return `${wording(first!)}${others}: ${holds}; see 'cotenant config validate'`;
}

/**
 * On record, once for each damage, and whether that was now: whoever reads the log later knows which rules held, and why. Only where there is a log:
 * a clone that never used cotenant is left alone.
 */
export async function recordStandIn(
  coordinator: LocalCoordinator,
  memory: ConfigMemory,
  { problems, isRemembered }: StandIn,
  whoever: () => Promise<Session>,
): Promise<boolean> {
  const { store } = coordinator;
  const { platform } = store;
  if ((await platform.files.stat(store.layout.log)) === null) return false;
  const damage = platform.digest.sha256(problems.map(wording).join("\n"));
  if (await isRecorded(platform, memory, damage)) return false;
  try {
    const session = await whoever();
    const shown = problems.slice(0, MOST_SHOWN).map((problem) => printable(wording(problem), 300));
    await session.write([], {
      about: "a configuration that cannot be read",
      facts: [],
      body: async () => ({
        type: "policy.unreadable",
        payload: { problems: shown, in_force: isRemembered ? "last_read" : "understood" },
        facts: new Map(),
        answer: true,
      }),
    });
    await markRecorded(platform, memory, damage);
    return true;
  } catch {
    // A store that takes no records now must not keep the rules from being enforced.
    return false;
  }
}

const MOST_SHOWN = 5;

function wording({ place, line, message }: StandIn["problems"][number]): string {
  return `${line === null ? place : `${place}:${line}`}: ${message}`;
}
