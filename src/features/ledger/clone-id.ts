import { type Coordinator, WITHOUT_LEASE } from "../../coordinator/contract";
import type { Actor } from "../../kernel/commands";
import { type Fact, factName } from "../../kernel/facts";
import { type Ulid, ulidIn } from "../../kernel/ids";
import { newUlid } from "../../platform/new-ulid";
import type { Platform } from "../../platform/platform";

/**
 * Who this clone is to others (PROTOCOL 26b): random, made at first use, and bound to the inode of its directory, which a
 * copy does not share. One that was moved keeps its inode. Neither the path nor the machine says anything: containers of
 * one image have both in common.
 */
const CLONE = factName("ledger-clone", "id");

/** Null until it has dealt with the ledger for the first time, and for a copy that has not. */
export async function readCloneId(
  platform: Platform,
  coordinator: Pick<Coordinator, "facts">,
  controlDir: string,
): Promise<Ulid | null> {
  const fact = (await coordinator.facts({ names: [CLONE] })).get(CLONE)?.value;
  return idIn(fact, await inodeOf(platform, controlDir));
}

/** The same, given where it has none yet, or was copied from one that has. */
export async function ensureCloneId(
  platform: Platform,
  coordinator: Pick<Coordinator, "facts" | "write">,
  controlDir: string,
  actor: Actor,
): Promise<Ulid> {
  const known = await readCloneId(platform, coordinator, controlDir);
  return known ?? give(platform, coordinator, controlDir, actor, null);
}

/** For one that has met its twin: another with the same id, and no way to tell which of them is the copy. */
export function renewCloneId(
  platform: Platform,
  coordinator: Pick<Coordinator, "write">,
  controlDir: string,
  actor: Actor,
  twin: { readonly old: Ulid; readonly ids: readonly Ulid[] },
): Promise<Ulid> {
  return give(platform, coordinator, controlDir, actor, twin);
}

async function give(
  platform: Platform,
  coordinator: Pick<Coordinator, "write">,
  controlDir: string,
  actor: Actor,
  twin: { readonly old: Ulid; readonly ids: readonly Ulid[] } | null,
): Promise<Ulid> {
  const inode = await inodeOf(platform, controlDir);
  const written = await coordinator.write<Ulid>({
    actor,
    ...WITHOUT_LEASE,
    about: "this clone's name in the ledger",
    facts: [CLONE],
    body: async ({ facts }) => {
      // Somebody else may have been faster.
      const there = idIn(facts.get(CLONE)?.value, inode);
      const isGiven = there !== null && there !== twin?.old;
      const given = isGiven ? there : newUlid(platform);
      const why = twin === null ? {} : { instead_of: twin.old, twin_on: twin.ids.slice(0, 20) };
      return {
        type: "sync.attached",
        payload: { clone_id: given, ...why },
        facts: new Map([[CLONE, { clone_id: given, inode }]]),
        answer: given,
      };
    },
  });
  if (written.replayed || written.answer === null)
    throw new Error("a write without a request id was replayed");
  return written.answer;
}

/** Not the device: that changes when the same disk is mounted anew. */
async function inodeOf(platform: Platform, controlDir: string): Promise<string> {
  return String((await platform.files.stat(controlDir))?.inode ?? 0);
}

function idIn(fact: Fact | undefined, inode: string): Ulid | null {
  return fact?.["inode"] === inode ? ulidIn(fact["clone_id"]) : null;
}
