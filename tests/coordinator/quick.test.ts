import * as fs from "node:fs";
import { expect, it } from "vitest";
import { LocalCoordinator } from "../../src/coordinator/local";
import { Session } from "../../src/coordinator/session";
import type { AgentId, SessionId, WorktreeId } from "../../src/kernel/ids";
import { dirKey, fileKey, type LeaseKey } from "../../src/kernel/keys";
import { DEFAULT_POLICY } from "../../src/kernel/policy";
import { nodePlatform } from "../../src/platform/node/node";
import { SessionSecrets } from "../../src/store/secrets";
import { DEFAULT_STORE_OPTIONS, Store } from "../../src/store/store";
import { scratch } from "../support/scratch";

function open(dir: string, agent: string) {
  const platform = nodePlatform();
  const store = new Store(platform, { ...DEFAULT_STORE_OPTIONS, controlDirectory: dir + "/cotenant" });
  const coordinator = new LocalCoordinator(store, DEFAULT_POLICY);
  const actor = {
    agentId: agent as AgentId,
    sessionId: "default" as SessionId,
    worktreeId: "wt:00000001" as WorktreeId,
    branch: "main",
    holder: platform.processes.self(),
  };
  return new Session(
    platform,
    coordinator,
    actor,
    new SessionSecrets(platform, store.layout, actor, () => store.prepare()),
  );
}
const f = (p: string) => [{ key: fileKey(p) as LeaseKey, reach: "repository" as const }];
it("works", async () => {
  const dir = scratch();
  const a = open(dir, "agent:a"),
    b = open(dir, "agent:b");
  const g = await a.acquire(f("src/x.ts"), { ttlSecs: 600 });
  expect(g.leases[0]!.fencingToken).toBe(1);
  await expect(b.acquire(f("src/x.ts"), { ttlSecs: 600 })).rejects.toMatchObject({ code: "E_LOCK_CONFLICT" });
  await expect(
    b.acquire([{ key: dirKey("src") as LeaseKey, reach: "repository" }], { ttlSecs: 600 }),
  ).rejects.toMatchObject({ code: "E_LOCK_CONFLICT" });
  const again = await a.acquire(f("src/x.ts"), { ttlSecs: 600 });
  expect(again.leases[0]!.leaseId).toBe(g.leases[0]!.leaseId);
  const w = b.acquire(f("src/x.ts"), { ttlSecs: 600, wait: { timeoutMs: 5000 } });
  await new Promise((r) => setTimeout(r, 100));
  await a.release([{ key: f("src/x.ts")[0]!.key, leaseId: null }]);
  const gb = await w;
  expect(gb.leases[0]!.fencingToken).toBe(2);
  await expect(a.release([{ key: f("src/x.ts")[0]!.key, leaseId: null }])).rejects.toMatchObject({
    code: "E_LOCK_NOT_HELD",
  });
  console.log(
    fs
      .readFileSync(dir + "/cotenant/claims.jsonl", "utf8")
      .split("\n")
      .map((l) => l.length),
  );
  fs.rmSync(dir + "/cotenant/index", { recursive: true });
  expect((await a.coordinator.list()).length).toBe(1);
  await expect(a.acquire(f("src/x.ts"), { ttlSecs: 600 })).rejects.toMatchObject({ code: "E_LOCK_CONFLICT" });
  expect(fs.existsSync(dir + "/cotenant/index/file/src/x.ts/meta.json")).toBe(true);
});
