import { CotenantError } from "../../errors/cotenant-error";
import { highestWithinReach } from "../../kernel/bounds";
import type { Ulid } from "../../kernel/ids";
import type { LedgerCopy } from "./copy";
import type { GitRemote } from "./git-remote";
import { type ClaimRef, tokenOf } from "./remote";

/** How the remote's ledger stands to what this machine has seen of it. */
export interface Examined {
  readonly isOnline: boolean;
  /** "not looked": it does not answer, or there is nothing here to hold against it. */
  readonly ledger: "whole" | "rewritten" | "not looked";
  /** What is wrong, or why nobody looked. */
  readonly why: string | null;
  /** Claims whose record nobody's cotenant can have written: they are nobody's to take. */
  readonly wild: readonly { readonly issueId: Ulid; readonly why: string }[];
}

/**
 * For people who ask how things stand: the remote is looked at, for a few seconds at most where it does not answer. A ledger
 * that was deleted or force-pushed is found by this as it would be by the next claim. Changes nothing but what this machine
 * remembers having seen.
 */
export async function examineLedger(copy: LedgerCopy, remote: GitRemote): Promise<Examined> {
  try {
    const probed = await copy.probe(`refs/heads/${remote.branch}`);
    if (probed.status !== 0) return notLooked(false, copy.failure("asking", probed).message);
    if (!(await copy.exists()) || (await remote.branchSeen()) === null)
      return notLooked(true, "this machine has not seen the ledger yet");
    await remote.fetchBranch();
    const { claims } = await remote.look("all");
    return { isOnline: true, ledger: "whole", why: null, wild: wildOnes(claims) };
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    if (error.code !== "E_LEDGER_REWRITTEN") return notLooked(false, error.message);
    return { isOnline: true, ledger: "rewritten", why: error.message, wild: [] };
  } finally {
    if (await copy.exists()) await remote.settle().catch(() => {});
  }
}

function notLooked(isOnline: boolean, why: string): Examined {
  return { isOnline, ledger: "not looked", why, wild: [] };
}

function wildOnes(claims: ReadonlyMap<Ulid, ClaimRef>): Examined["wild"] {
  const highest = highestWithinReach([...claims.values()].map(tokenOf), 0);
  return [...claims].flatMap(([issueId, ref]) => {
    if (!("record" in ref.reading)) return ref.reading.isNewer ? [] : [{ issueId, why: ref.reading.broken }];
    const { token } = ref.reading.record;
    return token <= highest ? [] : [{ issueId, why: `its fencing token ${token} is out of reach` }];
  });
}
