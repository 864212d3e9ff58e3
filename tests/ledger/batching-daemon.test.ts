import * as fs from "node:fs";
import { createRequire } from "node:module";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import type * as library from "../../src/index";
import { looksAfterDaemon } from "../support/daemon";
import { behindProxy, type Machine } from "../support/machines";
import { PROGRAM } from "../support/program";

/** As it was built: a daemon is the engine of programs of its own build only. */
const LIBRARY = path.join(path.dirname(path.dirname(PROGRAM)), "dist/index.cjs");
const { openRepository } = createRequire(import.meta.url)(LIBRARY) as typeof library;

/** A daemon does not go by the variables of whoever starts it: its settings are in a file. */
async function startDaemonOn(machine: Machine): Promise<void> {
  const folder = path.join(machine.home, ".config/cotenant");
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, "config.toml"), '[sync]\nledger_branch = "cotenant-sync"\n');
  looksAfterDaemon(machine.repo);
  const started = await machine.start(["daemon", "start"]).done;
  expect(started.status, String(started)).toBe(0);
}

function agentOf(machine: Machine, n: number) {
  return openRepository({
    cwd: machine.repo.root,
    agentId: `agent:crew-${n}`,
    env: machine.libraryEnv(),
  });
}

describe("agents of one machine that claim through its daemon", () => {
  it("share exchanges with the remote, whenever they connected", async () => {
    const { hub, proxy, first, ids } = await behindProxy(10);
    await startDaemonOn(first);
    const agents = [];
    for (const [n] of ids.entries()) {
      // Settings are read anew every second, and each of these agents has met the daemon at another time.
      if (n % 4 === 0) await new Promise((resolve) => setTimeout(resolve, 1_100));
      const agent = await agentOf(first, n);
      await agent.acquire({ resource: `greeting-${n}` });
      agents.push(agent);
    }
    // Slower than anything that happens here, on however busy a machine.
    proxy.weather = { delayMs: 400 };
    const before = proxy.connections;
    const grants = await Promise.all(agents.map((agent, n) => agent.acquire({ issue: ids[n]! })));
    for (const grant of grants) expect(grant.ledger).toMatchObject({ isOffline: false, retries: 0 });
    expect(proxy.connections - before).toBeLessThan(ids.length / 2);
    for (const [n, id] of ids.entries())
      expect(hub.claim(id)).toMatchObject({ status: "held", agent_id: `agent:crew-${n}` });
    const mid = proxy.connections;
    await Promise.all(agents.map((agent, n) => agent.release({ issue: ids[n]! })));
    expect(proxy.connections - mid).toBeLessThan(ids.length);
    for (const id of ids) expect(hub.claim(id)).toMatchObject({ status: "released" });
  });

  it("go to the remote that the clone has now", async () => {
    const { hub, first, ids } = await behindProxy(2);
    await startDaemonOn(first);
    const agent = await agentOf(first, 0);
    await agent.acquire({ issue: ids[0]! });
    first.repo.git("remote", "set-url", "origin", "git://127.0.0.1:1/nowhere.git");
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const later = await agentOf(first, 1);
    const grant = await later.acquire({ issue: ids[1]! });
    expect(grant.ledger).toMatchObject({ isOffline: true });
    expect(Object.keys(hub.refs("refs/cotenant/claims/"))).toEqual([`refs/cotenant/claims/${ids[0]}`]);
  });
});
