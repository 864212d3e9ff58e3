import { type HolderRequest, proofOf } from "../../coordinator/requests";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { branchName } from "./branch-rules";
import type { OpenFence } from "./claims";
import type { Input } from "./draft";
import { inputsNamed, type NamedChanges } from "./named-changes";
import { type Preview, preview } from "./preview";
import { Publisher } from "./publisher";
import type { Published, PublishRequest } from "./request";

/** One change of a tree; paths are seen from the repository's root. */
export type TreeChange =
  | {
      readonly op: "put";
      readonly path: string;
      readonly content: string | Uint8Array;
      /** `100644`, `100755` or `120000`; unset: as it is now, for a new file `100644`. */
      readonly mode?: string;
      /** What was there when the change was made: an object's id, or null for nothing. Refused if it is not so. */
      readonly baseBlob?: string | null;
    }
  | { readonly op: "delete"; readonly path: string; readonly baseBlob?: string | null }
  | { readonly op: "rename"; readonly from: string; readonly to: string }
  | { readonly op: "patch"; readonly patch: string | Uint8Array }
  | { readonly op: "from-worktree"; readonly path: string };

export interface PublishOptions extends HolderRequest {
  readonly branch: string;
  /** None, with `push`: the branch is pushed as it is. */
  readonly message?: string | undefined;
  readonly changes?: readonly TreeChange[];
  /** The same, named from where the caller stands. */
  readonly named?: NamedChanges;
  /** Against what the changes are meant. Default: the branch, else the remote's default branch. */
  readonly base?: string | undefined;
  readonly author?: string | undefined;
  readonly sign?: boolean;
  /** To the usual remote, or to the one named. A push that fails is told in the answer. */
  readonly push?: boolean | string;
  /** Give back the leases that covered what was published. */
  readonly release?: boolean;
  /** Put files of the working tree back to HEAD that are just as they were published. */
  readonly settle?: boolean;
  readonly onProgress?: (line: string) => void;
}

/**
 * Commits to a branch without a checkout, under leases that are proved at the commit. In a workspace that lives long, calls go
 * one after the other, and the Gits that they need are kept for the next one until `closePublisher`.
 */
export function publish(workspace: Workspace, options: PublishOptions): Promise<Published> {
  return withPublisher(workspace, async (publisher) => {
    const published = await publisher.publish(await requestOf(workspace, options));
    for (const { intent, fate } of published.recovered)
      workspace.warnings.push(
        `a publish of ${intent.agentId} to ${printable(branchName(intent.ref), 100)} was cut off: ${fate}`,
      );
    return published;
  });
}

/** What a publish would do, and what would refuse it. Publishes nothing. */
export function previewPublish(workspace: Workspace, options: PublishOptions): Promise<Preview> {
  return withPublisher(workspace, async (publisher) =>
    preview(workspace, publisher, await requestOf(workspace, options)),
  );
}

const kept = new WeakMap<Workspace, Promise<Publisher>>();

async function withPublisher<T>(workspace: Workspace, act: (publisher: Publisher) => Promise<T>): Promise<T> {
  const opened = kept.get(workspace) ?? openPublisher(workspace);
  kept.set(workspace, opened);
  try {
    return await act(await opened);
  } finally {
    if (!workspace.isLongLived) await closePublisher(workspace);
  }
}

async function openPublisher(workspace: Workspace): Promise<Publisher> {
  const session = await workspace.session("write");
  return new Publisher(workspace, session, claimFenceIn(workspace, session));
}

/** Ends what publishing has started. The workspace may be used again afterwards. */
export async function closePublisher(workspace: Workspace): Promise<void> {
  const opened = kept.get(workspace);
  kept.delete(workspace);
  await (await opened?.catch(() => null))?.close();
}

/** What stands between a push and the claims that it is made under, where they are shared. */
export function claimFenceIn(workspace: Workspace, session: Session): OpenFence {
  return async () => {
    const { claimFence } = await import("../ledger/fence");
    return claimFence(workspace, session);
  };
}

async function requestOf(workspace: Workspace, options: PublishOptions): Promise<PublishRequest> {
  const { message = "", push = false, onProgress } = options;
  const { secret = null, requestId = null } = await proofOf(workspace, options);
  const inputs = [
    ...(await inputsNamed(workspace, options.named ?? {})),
    ...(options.changes ?? []).map(inputOf),
  ];
  // The branch as it is can be pushed without anything new.
  if (inputs.length === 0 && (push === false || message !== ""))
    throw new CotenantError("E_USAGE", "nothing was named to publish", {
      hint: "give --patch, --put, --delete, --rename, --from-worktree or --changes",
    });
  return {
    ...{ branch: options.branch, message, inputs, secret, requestId },
    base: options.base ?? null,
    author: options.author ?? null,
    sign: options.sign ?? false,
    push: push === true ? null : push === false ? undefined : push,
    release: options.release ?? false,
    settle: options.settle ?? false,
    commands: await workspace.surroundings.tools.commands(),
    ...(onProgress === undefined ? {} : { onProgress }),
  };
}

function inputOf(change: TreeChange, at: number): Input {
  const bytes = (text: string | Uint8Array) =>
    typeof text === "string" ? new TextEncoder().encode(text) : text;
  switch (change.op) {
    case "put": {
      const { mode = null, content, ...rest } = change;
      return { ...rest, content: bytes(content), mode, newMode: "100644" };
    }
    case "patch":
      return { op: "patch", patch: bytes(change.patch), name: `change ${at + 1}` };
    case "delete":
    case "rename":
    case "from-worktree":
      return change;
    default:
      throw new CotenantError("E_USAGE", `change ${at + 1} has no operation that is known`, {
        hint: "its op is put, delete, rename, patch or from-worktree",
      });
  }
}
