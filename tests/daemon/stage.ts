import * as fs from "node:fs";
import * as path from "node:path";
import { DaemonCoordinator } from "../../src/daemon/client";
import { Feed } from "../../src/daemon/feed";
import type { DaemonRecord } from "../../src/daemon/place";
import { RpcServer } from "../../src/daemon/server";
import { localEngine, Service, type ServiceParts } from "../../src/daemon/service";
import { DEFAULT_POLICY, type Policy } from "../../src/kernel/policy";
import type { Platform } from "../../src/platform/platform";
import { openParty, type Party, type PartyOptions } from "../store/stage";
import { scratch } from "../support/scratch";

export const BUILD = "test";
export const TOKEN = "a-token";

/** The daemon's service over a real socket, in this process, with clients that could go on without it. */
export class StageDaemon {
  readonly control = `${scratch()}/cotenant`;
  /** Sockets have short names, and scratch folders do not. */
  readonly socket = path.join(fs.mkdtempSync("/tmp/ct-"), "s");
  readonly platform: Platform;
  readonly engine: Party;
  readonly #server: RpcServer;
  readonly #feed: Feed;

  /** It can be connected to at once. */
  constructor(platform: Platform, more: Partial<ServiceParts> = {}) {
    this.platform = platform;
    this.engine = openParty(platform, "agent:daemon", { control: this.control, indexLagBytes: 4_096 });
    this.#feed = new Feed(this.engine.coordinator);
    this.#server = new RpcServer(
      new Service({
        store: this.engine.store,
        token: TOKEN,
        version: "0.0.0",
        build: BUILD,
        clockId: platform.clock.clockId(),
        feed: this.#feed,
        isHere: () => true,
        engineFor: async (_, policy) => localEngine(this.engine.store, policy),
        reader: async () => this.engine.coordinator,
        seen: () => {},
        others: new Map(),
        onOtherBuild: () => {},
        ...more,
      }),
    );
    void this.#server.listen(this.socket);
  }

  get record(): DaemonRecord {
    const { pid, startTime, bootId } = this.platform.processes.self();
    return {
      pid,
      startTime,
      bootId,
      socket: this.socket,
      token: TOKEN,
      protocol: 1,
      version: "0.0.0",
      build: BUILD,
      startedAt: "",
      controlInode: "",
    };
  }

  client(agent: string, options: PartyOptions = {}): { party: Party; coordinator: DaemonCoordinator } {
    const party = openParty(this.platform, agent, { control: this.control, ...options });
    const policy: Policy = { ...DEFAULT_POLICY, ...options.policy };
    const coordinator = new DaemonCoordinator({
      platform: this.platform,
      direct: party.coordinator,
      find: () => this.record,
      policy,
      build: BUILD,
      ledger: null,
    });
    return { party, coordinator };
  }

  async close(): Promise<void> {
    this.#feed.close();
    await this.#server.close(0);
    fs.rmSync(path.dirname(this.socket), { recursive: true, force: true });
  }
}
