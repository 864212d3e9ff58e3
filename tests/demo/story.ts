import { groundWith } from "../../src/demo/plan";
import { nodePlatform } from "../../src/platform/node/node";
import { claimPayload, encodeLine } from "../../src/store/envelope";
import { leaseFromWire } from "../../src/store/wire";

/** A log as the store writes it, told line by line: the checker reads what the store's own encoder wrote. */
export class Story {
  readonly lines: string[] = [];
  #sum = "";
  #ids = 0;

  constructor() {
    this.add("log.checkpoint", "agent:ann", {
      segment: 1,
      next_token: 1,
      leases: [],
      endings: [],
      requests: [],
    });
  }

  get sequence(): number {
    return this.lines.length;
  }

  lease(key: string, token: number, who: string, more: Readonly<Record<string, unknown>> = {}): Wire {
    const clock = { boot_id: "boot", monotonic_ms: token * 1000 };
    const at = "2026-01-01T00:00:00.000Z";
    return {
      lease_id: `01JZZZZZZZ${String(++this.#ids).padStart(16, "0")}`,
      key,
      agent_id: `agent:${who}`,
      session_id: "run-1",
      worktree_id: "wt:00000001",
      branch: null,
      holder: holder(pidOf(who)),
      ttl_secs: 10,
      acquired_at: at,
      acquired_at_clock: clock,
      renewed_at: at,
      renewed_at_clock: clock,
      expires_at: at,
      expires_at_clock: { boot_id: "boot", monotonic_ms: clock.monotonic_ms + 10_000 },
      last_beat: at,
      last_beat_clock: clock,
      max_total_secs: 100,
      fencing_token: token,
      secret_hash: "hash",
      reason: null,
      note: null,
      stop_idle_at: null,
      bind: "ttl",
      reach: "repository",
      ...more,
    };
  }

  ended(lease: Wire, cause: string): Wire {
    const { lease_id, key, reach, worktree_id, agent_id, fencing_token } = lease;
    return { lease_id, key, reach, worktree_id, agent_id, fencing_token, cause, successor: null };
  }

  claim(type: string, leases: readonly Wire[], ended: readonly Wire[] = [], actor?: string): this {
    const who = actor ?? String(leases[0]?.["agent_id"] ?? ended[0]?.["agent_id"]);
    // Through the store's own types and back: what it would not write, no test may make up.
    const event = {
      type: type as "claim.acquired",
      leases: leases.map(leaseFromWire),
      ended: [],
      reason: null,
    };
    const payload = { ...claimPayload(event, { requestId: null, operationId: "OP" }), ended };
    return this.add(type, who, payload);
  }

  add(
    type: string,
    agentId: string,
    payload: Readonly<Record<string, unknown>>,
    place: Partial<Place> = {},
  ): this {
    const actor = {
      agentId,
      sessionId: "run-1",
      worktreeId: "wt:00000001",
      host: "here",
      pid: pidOf(agentId.split(":")[1]!),
    };
    const where = { sequence: this.lines.length + 1, wallMs: 0, synced: 0, prev: this.#sum, ...place };
    const { text, sum } = encodeLine(nodePlatform().digest, { type, actor, payload }, where);
    this.lines.push(text.trimEnd());
    this.#sum = sum;
    return this;
  }
}

export type Wire = Readonly<Record<string, unknown>>;

interface Place {
  readonly sequence: number;
  readonly prev: string;
}

const PEOPLE = ["ann", "ben", "cleo", "grace"];

export function pidOf(who: string): number {
  return 101 + PEOPLE.indexOf(who);
}

function holder(pid: number): Wire {
  return {
    machine_id: "m",
    boot_id: "b",
    pid_namespace: "1",
    time_namespace: "2",
    user: "0",
    pid,
    start_time: "7",
  };
}

export const GROUND = groundWith(["01JZ0000000000000000000000"]);
export const FILE = GROUND.files[1]!;
