import type { Lease } from "../kernel/lease";

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
   * What has to be pushed together with a branch, as one: a new beat on the claim of each lease, guarded by what the
   * remote is expected to have there. Null where none of the leases is a claim that is shared. Throws `E_PROVISIONAL`.
   * Where the branch goes to another remote than the claims, or that one knows no atomic push: `E_POLICY`, unless
   * `publish.unfenced_remote` allows it.
   */
  fence(leases: readonly Lease[], remote: string): Promise<FencedPush | null>;
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
