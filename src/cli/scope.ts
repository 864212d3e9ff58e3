import type { Workspace } from "../coordinator/workspace";
import { orThrow } from "../errors/cotenant-error";
import { scopeKey } from "../kernel/keys";

/** Long enough for any edit of ours, short enough that a killed one is no burden. */
const TTL_SECS = 60;

/** Does something that concerns everybody under its `scope:` lease, which is given back unless it was held before. */
export async function withScope<T>(workspace: Workspace, name: string, act: () => Promise<T>): Promise<T> {
  const session = await workspace.session("write");
  const key = orThrow(scopeKey(name));
  const { leases, changed } = await session.acquire([{ key, reach: "repository" }], {
    ttlSecs: TTL_SECS,
    reason: `changing ${name}`,
  });
  try {
    return await act();
  } finally {
    if (changed) await session.release(leases.map(({ leaseId }) => ({ key, leaseId })));
  }
}
