import { expect, it } from "vitest";
import { Workspace } from "../../src/coordinator/workspace";
import { changeForAll } from "../../src/features/setup/shared-change";
import type { Ulid } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import { thisMachine } from "../../src/platform/node/this-machine";
import { TestRepo } from "../support/repo";
import { ulid } from "../support/ulid";

const KEY = "scope:gates" as LeaseKey;

it("a command of the same session that takes the lease over with a secret of its own is waited for", async () => {
  const repo = TestRepo.make();
  const workspace = await Workspace.open(
    { ...thisMachine(), cwd: repo.root, isTerminal: false },
    { agentId: "agent:a" },
  );
  const session = await workspace.session("write");
  const write = session.write.bind(session);
  let tries = 0;
  // It has read the session's secrets before ours was kept, and asks right after our grant.
  session.write = async (...args) => {
    if (tries++ === 0)
      await workspace.coordinator.acquire({
        actor: session.actor,
        keys: [{ key: KEY, reach: "repository" }],
        secrets: [],
        secretHash: "0".repeat(64),
        leaseIds: [ulid(Date.now()) as Ulid],
        ttlSecs: 60,
        bind: "ttl",
        reason: null,
        note: null,
        steal: false,
        wait: null,
        requestId: null,
      });
    return write(...args);
  };
  workspace.session = async () => session;
  const plan = async () => ({ answer: "changed", stage: async () => async () => {}, payload: {} });
  expect(await changeForAll(workspace, "gates", plan)).toBe("changed");
  expect(tries).toBe(2);
  expect(await workspace.coordinator.list()).toEqual([]);
});
