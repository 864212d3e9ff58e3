import { sharesClaims } from "../../config/shared-claims";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { issueKeyOf, type LeaseKey } from "../../kernel/keys";
import { landingRightId } from "../../kernel/landing-right";
import type { Lease } from "../../kernel/lease";
import { shownBranch } from "./target";

/** What the right to land on a target is claimed as, the same in every clone. */
function landingRightKey(workspace: Workspace, target: string): LeaseKey {
  const { digest } = workspace.surroundings.platform;
  return issueKeyOf(landingRightId(digest.sha256(target)));
}

/**
 * PROTOCOL 36: takes the right to land on a target between machines, as a claim on the ledger; null where claims are not shared. The
 * commits that land name it in their trailers, so the fence of a push goes by it (PROTOCOL 24): a lander that slept past
 * its right is refused whole.
 */
export async function takeLandingRight(
  workspace: Workspace,
  session: Session,
  target: string,
  wait: { readonly timeoutMs: number; readonly onWait: (message: string) => void } | null,
  signal?: AbortSignal,
): Promise<{ readonly lease: Lease; readonly isNew: boolean } | null> {
  if (!sharesClaims(workspace.config)) return null;
  const key = landingRightKey(workspace, target);
  const name = `the landing right of ${shownBranch(target)}`;
  try {
    const grant = await session.acquire([{ key, reach: "repository" }], {
      ttlSecs: await workspace.usualTtlSecs("claim"),
      reason: name,
      ...(signal === undefined ? {} : { interrupted: signal }),
      wait:
        wait === null ? null : { timeoutMs: wait.timeoutMs, onWait: ({ message }) => wait.onWait(message) },
    });
    const lease = grant.leases.find((one) => one.key === key)!;
    if (grant.ledger?.isOffline !== true) return { lease, isNew: grant.isNew };
    await session.release([{ key, leaseId: lease.leaseId }]).catch(() => {});
  } catch (error) {
    throw named(error, name, key);
  }
  throw new CotenantError(
    "E_REMOTE_UNREACHABLE",
    `${name} cannot be taken: the ledger's remote does not answer`,
    {
      hint: "run the queue again when it can be reached; the entries stay",
      data: { target },
    },
  );
}

/** Nobody looks for an issue of that id. */
function named(error: unknown, name: string, key: LeaseKey): unknown {
  if (!(error instanceof CotenantError)) return error;
  const id = key.slice("issue:".length);
  const plain = (text: string) =>
    text.replaceAll(`issue ${id}`, name).replaceAll(key, name).replaceAll(id, name);
  const hint =
    error.code === "E_LOCK_CONFLICT"
      ? "one machine lands at a time: run it again when that one is done, or with --wait"
      : plain(error.hint);
  return error.with({ message: printable(plain(error.message), 500), hint });
}
