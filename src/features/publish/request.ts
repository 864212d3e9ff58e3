import type { ObjectId } from "../../git/object-name";
import type { Ulid } from "../../kernel/ids";
import type { Lease } from "../../kernel/lease";
import type { Commands } from "../../platform/commands";
import type { CheckOutcome } from "./checks";
import type { Input } from "./draft";
import type { PushResult } from "./push";
import type { SettledIntent } from "./settlement";
import type { TidiedFile } from "./working-files";

export interface PublishRequest {
  readonly branch: string;
  /** Against what the changes are meant; null: the branch, here or on the remote, else the remote's default branch. */
  readonly base: string | null;
  readonly message: string;
  readonly author: string | null;
  readonly sign: boolean;
  /** None: the branch is only pushed. */
  readonly inputs: readonly Input[];
  /** The remote's name, null for the usual one; undefined: not at all. */
  readonly push?: string | null | undefined;
  /** Give back the leases that covered what was published. */
  readonly release: boolean;
  /** Put files of the working tree back to HEAD that are just as they were published. */
  readonly settle: boolean;
  readonly requestId: Ulid | null;
  /** Proves leases that this session has not kept the secret of. */
  readonly secret: string | null;
  /** For `publish.checks`. */
  readonly commands: Commands;
  readonly onProgress?: (line: string) => void;
}

export interface PublishedPath {
  readonly path: string;
  readonly change: "added" | "changed" | "deleted";
  readonly mode: string | null;
}

export interface Published {
  readonly publishId: Ulid;
  readonly ref: string;
  /** The branch's tip: the new commit, or where it was when there was nothing to do. */
  readonly commit: ObjectId | null;
  readonly parent: ObjectId | null;
  readonly base: ObjectId | null;
  readonly paths: readonly PublishedPath[];
  /** False where the branch had it all already. */
  readonly changed: boolean;
  readonly replayed: boolean;
  /** Whether the branch had moved on from the base. */
  readonly merged: boolean;
  readonly retries: number;
  readonly casFailures: number;
  readonly checks: readonly CheckOutcome[];
  readonly push: PushResult | null;
  readonly released: readonly Lease[];
  readonly tidied: readonly TidiedFile[];
  /** What others had left unfinished, and what became of it. */
  readonly recovered: readonly SettledIntent[];
}
