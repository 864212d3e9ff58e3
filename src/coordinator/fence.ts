import type { Ulid } from "../kernel/ids";
import type { Lease } from "../kernel/lease";

/** A commit that is to be pushed, and a claim that it says it was written under. */
export interface WrittenUnder {
  readonly commit: string;
  readonly issueId: Ulid;
  readonly leaseId: Ulid;
}

/**
 * Between a publish and the claims it relies on, where claims are shared between machines (PROTOCOL 24). A machine that
 * slept still believes in its lease; only the remote can say whether it is right, and only in the push itself.
 */
export interface ClaimFence {
  /** Throws `E_PROVISIONAL` when one of them is a claim that only this clone knows of. Asks nobody, writes nothing. */
  requireConfirmed(leases: readonly Lease[]): Promise<void>;
  /** Throws `E_POLICY` when a push to this remote could not be fenced, and nobody has allowed that. */
  requireFenced(remote: string): Promise<void>;
  /**
   * What has to be pushed together with these commits, as one: a new beat on each claim, guarded by what the remote is
   * expected to have there. A claim that has ended is made up for by a later one of this clone, if no other clone had the
   * issue in between; else `E_FENCING_MISMATCH`. `E_PROVISIONAL` where the ledger has not confirmed it. Where the branch
   * goes to another remote than the claims, or that one knows no atomic push: `E_POLICY`, unless
   * `publish.unfenced_remote` allows it. Null where nothing has to be pushed along.
   */
  fence(written: readonly WrittenUnder[], remote: string): Promise<FencedPush | null>;
}

export interface FencedPush {
  /** For `git push`, before the remote's name; `--atomic` among them. */
  readonly options: readonly string[];
  /** For `git push`, after the remote's name, beside the branch's own. */
  readonly refspecs: readonly string[];
  /** For the environment of `git push`: where it finds the beats. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * To be told how the push went. Of an unclear one the remote is asked: since it was one push, where the beats are the
   * branch is too. "again": it was refused, the claims are still ours, and one of them has moved since it was fenced.
   * Throws `E_FENCING_MISMATCH` when somebody else has a claim now; the lease has been ended then.
   */
  settle(outcome: "done" | "refused" | "unclear"): Promise<"done" | "not done" | "again" | "unclear">;
}
