import { readTrust, type Trusted, writeTrust } from "../config/trust";
import { agentType } from "../kernel/ids";
import type { Workspace } from "./workspace";

/**
 * Trust is a person's to give, or a machine's that persons set up; an agent could be talked into it, and inside its
 * program it could call itself a machine.
 */
export async function mayTrust(workspace: Workspace): Promise<boolean> {
  const { agentId, harness } = await workspace.agent();
  return agentType(agentId) !== "agent" && harness === null;
}

/** Trusts these as they are now, on record. Answers what was not trusted before. */
export async function addTrusted(
  workspace: Workspace,
  wanted: readonly Pick<Trusted, "subject" | "digest">[],
  trustedBy: string,
): Promise<readonly Trusted[]> {
  const isKnown = (entries: readonly Trusted[], { subject, digest }: Pick<Trusted, "subject" | "digest">) =>
    entries.some((entry) => entry.subject === subject && entry.digest === digest);
  return changeTrust(workspace, "policy.trusted", (entries, at) => {
    const trustedAt = new Date(at).toISOString();
    const added = wanted
      .filter((each) => !isKnown(entries, each))
      .map(({ subject, digest }) => ({ subject, digest, trustedAt, trustedBy }));
    return { entries: [...entries, ...added], changed: added };
  });
}

/** Trusts nothing any more, on record. Answers what was trusted before. */
export function revokeTrust(workspace: Workspace): Promise<readonly Trusted[]> {
  return changeTrust(workspace, "policy.distrusted", (entries) => ({ entries: [], changed: entries }));
}

type Change = (
  entries: readonly Trusted[],
  atMs: number,
) => { readonly entries: readonly Trusted[]; readonly changed: readonly Trusted[] };

/** In one critical section: two who trust at once both count, and the log has every change. */
async function changeTrust(workspace: Workspace, type: string, change: Change): Promise<readonly Trusted[]> {
  const { platform } = workspace.surroundings;
  const { controlDir } = workspace.repository;
  const look = async (atMs: number) => change((await readTrust(platform, controlDir)).entries, atMs);
  // Mostly there is nothing to change, and nobody to wait for.
  if ((await look(0)).changed.length === 0) return [];
  const session = await workspace.recorder();
  let changed: readonly Trusted[] = [];
  await session.write([], {
    about: "trust",
    facts: [],
    body: async ({ now }) => {
      const wanted = await look(now.wallMs);
      changed = wanted.changed;
      if (changed.length === 0) return null;
      const subjects = changed.slice(0, MOST_NAMED).map(({ subject, digest }) => ({ subject, digest }));
      return {
        type,
        payload: { count: changed.length, subjects },
        facts: new Map(),
        carryOut: () => writeTrust(platform, controlDir, wanted.entries),
        answer: true,
      };
    },
  });
  return changed;
}

/** Of many gates, what fits into a record. */
const MOST_NAMED = 200;
